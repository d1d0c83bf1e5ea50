"""Commits on a real broker."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from app.jars import KAFKA, obtain
from app.java import find_java
from brokers.transactions import FencedError
from consumer import offsets as commits
from consumer.decide.claims import Committed
from consumer.kafka import common_config, reading_config
from consumer.offsets import DELETED_AFTER_REFUSALS, GroupOffsets
from domain.partitions import OffsetRange, TopicPartition
from sandbox.broker import Broker
from tests.consumer.consumer_driver import Driver
from tests.patience import PATIENCE_S, wait_until
from tests.services import SharedBroker

OpenOffsets = Callable[[str], GroupOffsets]

pytestmark = pytest.mark.usefixtures("brokers_take_their_time")


@pytest.fixture
def open_offsets(broker: SharedBroker, unique_name: str) -> Iterator[OpenOffsets]:
    opened = []

    def open_offsets(writer: str) -> GroupOffsets:
        common = common_config(broker.bootstrap_servers, 1, {"topic.metadata.propagation.max.ms": "1000"})
        opened.append(GroupOffsets(common, reading_config(common, unique_name), unique_name, writer))
        opened[-1].open()
        return opened[-1]

    yield open_offsets
    for offsets in opened:
        offsets.close()


@pytest.fixture
def partitions(data_topic: str) -> list[TopicPartition]:
    return [TopicPartition(data_topic, number) for number in range(4)]


def succeeds(call: Callable[[], None]) -> bool:
    with suppress(KafkaException):
        call()
        return True
    return False


def test_what_is_committed_is_seen_by_everybody_with_its_note(
    open_offsets: OpenOffsets, partitions: list[TopicPartition]
) -> None:
    first, second = open_offsets("1/a"), open_offsets("2/b")
    first.commit({partitions[0]: Committed(7, "a note", epoch=3), partitions[1]: Committed(0)})
    second.commit({partitions[1]: Committed(3, "another")})
    assert second.committed(partitions[:3]) == {
        partitions[0]: Committed(7, "a note", epoch=3),
        partitions[1]: Committed(3, "another"),
        partitions[2]: None,
    }
    assert first.committed([]) == {}


def test_a_fenced_writer_commits_nothing_more_and_learns_it(
    open_offsets: OpenOffsets, partitions: list[TopicPartition]
) -> None:
    former, successor = open_offsets("1/a"), open_offsets("1/b")
    former.commit({partitions[0]: Committed(7)})
    successor.fence("1/a")
    for _ in range(2):
        with pytest.raises(FencedError, match="taken over"):
            former.commit({partitions[0]: Committed(8)})
    successor.fence("1/a")
    assert successor.committed(partitions[:1]) == {partitions[0]: Committed(7)}
    successor.commit({partitions[0]: Committed(9)})
    assert successor.committed(partitions[:1]) == {partitions[0]: Committed(9)}


def test_a_partition_that_is_deleted_does_not_keep_the_others_from_being_committed(
    open_offsets: OpenOffsets,
    partitions: list[TopicPartition],
    create_topic: Callable[..., str],
    admin: AdminClient,
    unique_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commits, "COMMIT_LIMIT_S", 5.0)
    doomed = TopicPartition(create_topic(f"{unique_name}.doomed"), 0)
    offsets = open_offsets("1/a")
    admin.delete_topics([doomed.topic])[doomed.topic].result()
    wait_until(lambda: doomed.topic not in admin.list_topics(timeout=PATIENCE_S).topics)
    positions = {doomed: Committed(1), partitions[0]: Committed(2)}
    refusals = 0

    def is_committed() -> bool:
        """What is not answered in time is no refusal."""
        nonlocal refusals
        try:
            offsets.commit(positions)
        except KafkaException as error:
            refusals += error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
            assert refusals <= DELETED_AFTER_REFUSALS
            return False
        return True

    wait_until(is_committed)
    assert refusals == DELETED_AFTER_REFUSALS
    assert offsets.committed(partitions[:1]) == {partitions[0]: Committed(2)}


def test_the_range_of_a_partition_follows_retention(
    driver: Driver, open_offsets: OpenOffsets, create_topic: Callable[..., str], unique_name: str
) -> None:
    partition = TopicPartition(create_topic(f"{unique_name}.short"), 0)
    driver.produce(partition, 0, 10)
    offsets = open_offsets("1/a")
    assert offsets.ranges([partition]) == {partition: OffsetRange(0, 10)}
    driver.delete_before(partition, 7)
    assert offsets.ranges([partition]) == {partition: OffsetRange(7, 10)}


@pytest.mark.slow(20)
def test_what_brokers_that_stand_still_did_not_answer_to_is_settled_before_what_comes_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "COMMIT_LIMIT_S", 1.0)
    left, right = (TopicPartition("orders", number) for number in range(2))
    with Broker(tmp_path, jars=obtain(KAFKA), java=find_java()) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic("orders", num_partitions=2)])["orders"].result()
        common = common_config(broker.bootstrap_servers, 1, {})
        offsets = GroupOffsets(common, reading_config(common, "group"), "group", "1/a")
        faults: list[KafkaError] = []

        def commits_or_tells(positions: dict[TopicPartition, Committed]) -> bool:
            try:
                offsets.commit(positions)
            except KafkaException as exception:
                faults.append(exception.args[0])
                return False
            return True

        wait_until(lambda: succeeds(offsets.open))  # brokers that are new may still be loading
        wait_until(lambda: succeeds(lambda: offsets.commit({left: Committed(1), right: Committed(1)})))
        os.kill(broker.child.pid, signal.SIGSTOP)
        for _ in range(2):
            assert not commits_or_tells({left: Committed(2)})
        os.kill(broker.child.pid, signal.SIGCONT)
        wait_until(lambda: commits_or_tells({right: Committed(3)}))
        given_up = any(error.txn_requires_abort() for error in faults)  # so the client says, on a slow machine
        assert offsets.committed([left, right]) == {left: Committed(1 if given_up else 2), right: Committed(3)}
        wait_until(lambda: succeeds(lambda: offsets.commit({left: Committed(2)})))
        assert offsets.committed([left]) == {left: Committed(2)}
        offsets.close()
