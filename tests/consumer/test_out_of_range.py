"""Where reading goes on from a position that the log does not hold, by decision and by the fetcher."""

import time

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as Position

from consumer import fetcher
from consumer.decide.out_of_range import BeyondEnd, PassedOver, cut_at, go_on
from consumer.decide.reached import Reached
from consumer.fetcher import Fetcher
from consumer.kafka import common_config, fetching_config
from domain.partitions import OffsetRange, TopicPartition
from tests.conftest import CreateTopic
from tests.patience import PATIENCE_S, wait_until
from tests.services import SharedBroker

ORDERS = TopicPartition("orders", 0)
HELD = OffsetRange(10, 70)
RECORDS = 9

pytestmark = pytest.mark.usefixtures("brokers_take_their_time")


def test_a_position_in_the_log_is_read_on_from() -> None:
    assert go_on(ORDERS, Reached(10, 3), HELD, None, "continue") == (Reached(10), None)
    assert go_on(ORDERS, Reached(70, 3), HELD, None, "hold") == (Reached(70), None)


def test_what_was_deleted_unread_is_lost_and_told() -> None:
    position, passed_over = go_on(ORDERS, Reached(4, 3), HELD, None, "hold")
    assert position == Reached(10)
    assert passed_over == PassedOver(ORDERS, 4, 10, were_read=False)
    assert passed_over.lost == 6
    assert "offsets 4 to 9 were deleted before they were read" in str(passed_over)


def test_beyond_the_end_nothing_is_read_twice() -> None:
    assert go_on(ORDERS, Reached(71), HELD, None, "hold") == (None, None)
    position, passed_over = go_on(ORDERS, Reached(75), HELD, None, "continue")
    assert position == Reached(70)
    assert passed_over is not None
    assert passed_over.lost == 0
    assert "offsets 70 to 74 were read and are no more in the log" in str(passed_over)


@pytest.mark.parametrize("position", [Reached(65, 3), Reached(75, 3)], ids=["grown beyond it", "still shorter"])
def test_a_log_that_was_cut_off_is_read_on_from_there_however_far_it_has_grown_since(position: Reached) -> None:
    cut = Reached(40, 2)
    assert go_on(ORDERS, position, HELD, cut, "hold") == (None, None)
    assert go_on(ORDERS, position, HELD, cut, "continue") == (
        cut,
        PassedOver(ORDERS, 40, position.offset, were_read=True),
    )


def test_nothing_is_lost_where_the_log_was_cut_off_behind_what_was_read() -> None:
    assert go_on(ORDERS, Reached(40, 2), HELD, Reached(50, 2), "hold") == (Reached(40, 2), None)


def test_where_a_log_was_cut_off_is_told_by_no_other_error() -> None:
    assert cut_at("fetch failed: offset 109 (leader epoch 3) is out of range") is None
    assert cut_at("no epoch found: broker end offset is -1 (offset leader epoch -1)") is None


@pytest.fixture
def brokers() -> Producer:
    """Simulated by the client; the partition has some records."""
    producer = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    for number in range(RECORDS):
        producer.produce(ORDERS.topic, str(number).encode(), partition=0)
    producer.flush(PATIENCE_S)
    return producer


def placed(brokers: Producer, beyond_end: BeyondEnd, position: Reached) -> Fetcher:
    known = brokers.list_topics(timeout=PATIENCE_S).brokers.values()
    servers = ",".join(f"{broker.host}:{broker.port}" for broker in known)
    config = fetching_config(common_config(servers, 1, {"log_level": "0"}), "group", 1_000_000)
    fetcher = Fetcher(config, beyond_end)
    assert fetcher.settle({ORDERS}) == (ORDERS,)
    fetcher.place({ORDERS: position})
    return fetcher


def test_a_log_that_ends_before_the_position_is_read_on_at_its_end(brokers: Producer) -> None:
    """Hole 9: it was read again from its beginning, and every record doubled."""
    fetcher = placed(brokers, "continue", Reached(RECORDS + 100))
    deadline = time.monotonic() + PATIENCE_S
    told: tuple[PassedOver, ...] = ()
    read: list[int] = []
    while not told:
        assert time.monotonic() < deadline
        read += [record.offset for record in fetcher.fetch(100, 0.1).records]
        fetcher.settle()
        told = fetcher.take_passed_over()
    assert told == (PassedOver(ORDERS, RECORDS, RECORDS + 100, were_read=True),)
    brokers.produce(ORDERS.topic, b"new", partition=0)
    brokers.flush(PATIENCE_S)
    while not read:
        assert time.monotonic() < deadline
        read += [record.offset for record in fetcher.fetch(100, 0.1).records]
    fetcher.close()
    assert read == [RECORDS]


def test_one_that_is_to_hold_is_not_read_and_says_so(brokers: Producer) -> None:
    """Hole 9: no fault was shown."""
    fetcher = placed(brokers, "hold", Reached(RECORDS + 100))
    deadline = time.monotonic() + PATIENCE_S
    while "its log ends at 9: is not read" not in (fetcher.fault or ""):
        assert time.monotonic() < deadline
        assert fetcher.fetch(100, 0.1).records == ()
        fetcher.settle()
    fetcher.close()
    assert fetcher.take_passed_over() == ()


def test_where_reading_begins_the_leader_is_asked_whether_its_log_was_cut_off(
    brokers: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client does so where it is told to seek."""
    sought: list[tuple[str, int, int, int | None]] = []

    class Told(Consumer):
        def seek(self, position: Position) -> None:
            sought.append((position.topic, position.partition, position.offset, position.leader_epoch))
            super().seek(position)

    monkeypatch.setattr(fetcher, "Consumer", Told)
    placed(brokers, "continue", Reached(RECORDS - 1, 0)).close()
    assert sought == [(ORDERS.topic, ORDERS.partition, RECORDS - 1, 0)]


def test_a_partition_that_is_given_back_at_once_is_read_as_soon_as_the_client_has_ended_reading_it(
    brokers: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client refuses to seek in the meantime."""
    refusals = [KafkaException(KafkaError(KafkaError._STATE))] * 2

    class Ending(Consumer):
        def seek(self, position: Position) -> None:
            if refusals:
                raise refusals.pop()
            super().seek(position)

    monkeypatch.setattr(fetcher, "Consumer", Ending)
    reader = placed(brokers, "continue", Reached(0, 0))
    assert (reader.fault, refusals) == (None, [])
    reader.close()


@pytest.mark.integration
def test_a_leader_tells_where_its_log_was_cut_off_though_it_has_been_the_leader_for_long(
    broker: SharedBroker, create_topic: CreateTopic, unique_name: str
) -> None:
    topic = create_topic(unique_name)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(RECORDS):
        producer.produce(topic, str(number).encode(), partition=0)
    assert producer.flush(PATIENCE_S) == 0
    common = common_config(broker.bootstrap_servers, 1, {})
    reader = Fetcher(fetching_config(common, unique_name, 1_000_000), "continue")
    partition = TopicPartition(topic, 0)
    deadline = time.monotonic() + PATIENCE_S
    reader.place({partition: Reached(0, 0)})
    while not reader.fetch(100, 0.1).records:
        assert time.monotonic() < deadline
    reader.stop([partition])
    reader.place({partition: Reached(RECORDS + 100, 0)})
    while reader.fault is None:
        assert time.monotonic() < deadline
        assert reader.fetch(100, 0.1).records == ()
    assert "truncation" in reader.fault

    def passed_over() -> tuple[PassedOver, ...]:
        reader.settle()
        return reader.take_passed_over()

    assert wait_until(passed_over) == (PassedOver(partition, RECORDS, RECORDS + 100, were_read=True),)
    reader.close()


def test_a_log_that_was_not_cut_off_is_read_on(brokers: Producer) -> None:
    fetcher = placed(brokers, "continue", Reached(RECORDS - 1, 0))
    deadline = time.monotonic() + PATIENCE_S
    while not (records := fetcher.fetch(100, 0.1).records):
        assert time.monotonic() < deadline
        assert fetcher.fault is None
    fetcher.close()
    assert [(record.offset, record.epoch) for record in records] == [(RECORDS - 1, 0)]
