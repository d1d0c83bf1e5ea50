"""The observer on a real broker."""

import time
from collections.abc import Callable, Iterable

import pytest
from confluent_kafka import Consumer, Producer

from app.errors import KcgaError
from app.topics import Cluster
from brokers import log_offsets
from domain.group_view.view import GroupView
from domain.messages import ConsumerState, ControllerClaim
from domain.partitions import TopicPartition
from domain.topics import TopicNames
from sandbox.observer import Observer
from tests.patience import PATIENCE_S, wait_until
from tests.sandbox.watch_messages import BEGAN, cycle, decision, partition, read, report, write_speeds
from tests.services import SharedBroker


@pytest.fixture
def names(unique_name: str) -> TopicNames:
    return TopicNames(f"{unique_name}.speed", f"{unique_name}.metadata", f"{unique_name}.decisions")


@pytest.fixture
def topics(broker: SharedBroker, names: TopicNames) -> TopicNames:
    Cluster(broker.bootstrap_servers).ensure_internal_topics(names, highest_consumer=2)
    return names


def producer(broker: SharedBroker, **settings: str) -> Producer:
    return Producer(
        {"bootstrap.servers": broker.bootstrap_servers, **{k.replace("_", "."): settings[k] for k in settings}}
    )


def publish(broker: SharedBroker, topic: str, *values: bytes, number: int = 0) -> None:
    sender = producer(broker)
    for value in values:
        sender.produce(topic, value, partition=number)
    assert sender.flush(PATIENCE_S) == 0


def eventually(observer: Observer, condition: Callable[[GroupView], bool]) -> GroupView:
    wait_until(lambda: condition(observer.snapshot()), observer.snapshot)
    return observer.snapshot()


def test_the_view_holds_what_was_said_before_and_after_it_began(broker: SharedBroker, topics: TopicNames) -> None:
    publish(broker, topics.write_speed, write_speeds(BEGAN, {"orders-0": 100.0, "orders-1": None}).encode())
    publish(broker, topics.decisions, decision(1, BEGAN + 1, {"orders-0": (None, 1)}).encode())
    publish(
        broker,
        topics.metadata,
        ControllerClaim(epoch=3, incarnation="c", sent_at=BEGAN).encode(),
        report(1, BEGAN + 2, "orders-0", cycle=cycle(read("orders-0", BEGAN, BEGAN + 1))).encode(),
    )
    with Observer(broker.bootstrap_servers, names=topics, silent_after_s=1e12) as observer:
        observer.catch_up(PATIENCE_S)
        before = observer.snapshot()
        publish(broker, topics.metadata, report(2, BEGAN + 3, state=ConsumerState.STARTING).encode())
        observer.catch_up(PATIENCE_S)
        after = observer.snapshot()
        most = observer.most_readers()
    assert before.total_speed == 100.0
    assert before.controller_epoch == 3
    assert [consumer.consumer for consumer in before.consumers] == [1]
    assert [(each.partition, each.reader, each.target) for each in before.unread] == [
        (partition("orders-1"), None, None)
    ]
    assert before.last_decision is not None
    assert before.records_written == 10
    assert [consumer.consumer for consumer in after.consumers] == [1, 2]
    assert most.count == 1


def test_what_is_no_message_is_counted_and_the_next_one_is_read(broker: SharedBroker, topics: TopicNames) -> None:
    publish(broker, topics.metadata, b"", b"{}", b'{"kind": "report"}', report(1, BEGAN, "orders-0").encode())
    publish(broker, topics.decisions, b"\xff\x00")
    publish(broker, topics.write_speed, b"[]", write_speeds(BEGAN, {"orders-0": 5.0}).encode())
    with Observer(broker.bootstrap_servers, names=topics, silent_after_s=1e12) as observer:
        observer.catch_up(PATIENCE_S)
        view = observer.snapshot()
    assert view.invalid_messages == 5
    assert [consumer.consumer for consumer in view.consumers] == [1]
    assert view.total_speed == 5.0


def test_commands_to_consumers_are_not_read(broker: SharedBroker, topics: TopicNames) -> None:
    publish(broker, topics.metadata, b"of consumer 1 alone", number=1)
    with Observer(broker.bootstrap_servers, names=topics) as observer:
        observer.catch_up(PATIENCE_S)
        assert observer.snapshot().invalid_messages == 0


def test_messages_of_another_group_are_left_aside(broker: SharedBroker, topics: TopicNames) -> None:
    """Issue 18: two groups on the same topics were shown as one."""
    publish(
        broker,
        topics.metadata,
        *(
            report(n, BEGAN + n).model_copy(update={"group": group}).encode()
            for n, group in ((1, "mine"), (2, "other"))
        ),
    )
    with Observer(broker.bootstrap_servers, names=topics, group="mine", silent_after_s=1e12) as observer:
        observer.catch_up(PATIENCE_S)
        assert [consumer.consumer for consumer in observer.snapshot().consumers] == [1]


def test_messages_from_before_the_run_are_left_aside(broker: SharedBroker, topics: TopicNames) -> None:
    late = report(1, BEGAN + 9, "orders-0", sequence=2, cycle=cycle(read("orders-0", BEGAN + 8, BEGAN + 9)))
    publish(
        broker,
        topics.metadata,
        report(2, BEGAN, "orders-0", cycle=cycle(read("orders-0", BEGAN, BEGAN + 9))).encode(),
        late.encode(),
    )
    with Observer(broker.bootstrap_servers, names=topics, since=BEGAN + 5, silent_after_s=1e12) as observer:
        observer.catch_up(PATIENCE_S)
        assert [consumer.consumer for consumer in observer.snapshot().consumers] == [1]
        assert observer.most_readers().count == 1


def test_topics_that_are_created_later_are_read_from_their_beginning(broker: SharedBroker, names: TopicNames) -> None:
    with Observer(broker.bootstrap_servers, names=names) as observer:
        with pytest.raises(KcgaError, match=r"not all messages .* within 1 s: time ran out"):
            observer.catch_up(1)
        Cluster(broker.bootstrap_servers).ensure_internal_topics(names, highest_consumer=2)
        publish(broker, names.write_speed, write_speeds(BEGAN, {"orders-0": 5.0}).encode())
        observer.catch_up(PATIENCE_S)
        assert observer.snapshot().total_speed == 5.0


def test_partitions_that_have_no_leader_yet_are_waited_for(
    broker: SharedBroker, topics: TopicNames, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(broker, topics.write_speed, write_speeds(BEGAN, {"orders-0": 5.0}).encode())
    ends, asked = log_offsets.ends, []

    def leaderless_at_first(
        reader: Consumer, partitions: Iterable[TopicPartition], timeout_s: float
    ) -> dict[TopicPartition, int]:
        asked.append(partitions)
        told = ends(reader, partitions, timeout_s)
        return told if len(asked) > 2 else dict(list(told.items())[1:])

    monkeypatch.setattr(log_offsets, "ends", leaderless_at_first)
    with Observer(broker.bootstrap_servers, names=topics) as observer:
        observer.catch_up(PATIENCE_S)
        assert observer.snapshot().total_speed == 5.0
        assert len(asked) == 3
        asked.clear()
        with pytest.raises(KcgaError, match=r"within 0 s: time ran out"):
            observer.catch_up(0)


def test_messages_sent_in_transactions_are_caught_up_with(
    broker: SharedBroker, topics: TopicNames, unique_name: str
) -> None:
    sender = producer(broker, transactional_id=unique_name)
    sender.init_transactions(PATIENCE_S)
    for number, commit in ((1, True), (2, False)):
        sender.begin_transaction()
        sender.produce(topics.decisions, decision(number, BEGAN, {"orders-0": (None, 1)}).encode(), partition=0)
        sender.flush(PATIENCE_S)
        sender.commit_transaction() if commit else sender.abort_transaction()
    with Observer(broker.bootstrap_servers, names=topics) as observer:
        observer.catch_up(PATIENCE_S)
        assert [each.number for each in observer.snapshot().decisions] == [1]


@pytest.mark.slow
def test_time_goes_on_and_nothing_is_known_where_no_broker_answers() -> None:
    with Observer("127.0.0.1:1", since=time.time()) as observer:
        view = eventually(observer, lambda view: view.elapsed_s > 0)
        assert view.lag is None
        assert view.total_speed is None
        with pytest.raises(KcgaError, match="not all messages of the run could be read from Kafka"):
            observer.catch_up(0.1)
