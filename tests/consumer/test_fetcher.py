"""Reads real partitions."""

import time
from collections.abc import Callable, Iterator

import pytest
from kafka import KafkaProducer

from consumer.decide.batch import Record
from consumer.decide.out_of_range import PassedOver
from consumer.decide.reached import Reached
from consumer.fetcher import Fetcher
from consumer.kafka import common_config, fetching_config
from domain.partitions import TopicPartition
from tests.consumer.consumer_driver import Driver
from tests.patience import PATIENCE_S, wait_until
from tests.services import SharedBroker

BATCH_BYTES = 1_000_000

pytestmark = pytest.mark.usefixtures("brokers_take_their_time")


@pytest.fixture
def open_fetcher(broker: SharedBroker, unique_name: str) -> Iterator[Callable[[], Fetcher]]:
    opened = []

    def open_fetcher() -> Fetcher:
        common = common_config(broker.bootstrap_servers, 1, {})
        opened.append(Fetcher(fetching_config(common, unique_name, BATCH_BYTES)))
        return opened[-1]

    yield open_fetcher
    for fetcher in opened:
        fetcher.close()


@pytest.fixture
def partitions(data_topic: str) -> list[TopicPartition]:
    return [TopicPartition(data_topic, number) for number in range(4)]


def fetch(fetcher: Fetcher, count: int) -> list[Record]:
    """The next so many records, or as many as there are."""
    records: list[Record] = []
    while len(records) < count:
        fetcher.settle()
        fetched = fetcher.fetch(min(500, count - len(records)), PATIENCE_S)
        assert fetched.first_at <= fetched.last_at
        assert fetched.records, "nothing came"
        records += fetched.records
    return records


def read(fetcher: Fetcher, *partitions: TopicPartition, offset: int = 0) -> None:
    """Starts partitions, all from the same offset."""
    assert fetcher.settle(set(partitions)) == partitions
    fetcher.place(dict.fromkeys(partitions, Reached(offset)))


def test_a_partition_is_read_from_where_it_is_placed(
    driver: Driver, open_fetcher: Callable[[], Fetcher], partitions: list[TopicPartition]
) -> None:
    driver.produce(partitions[0], 0, 10)
    fetcher = open_fetcher()
    read(fetcher, partitions[0], offset=3)
    records = fetch(fetcher, 7)
    assert [record.offset for record in records] == list(range(3, 10))
    assert {record.partition for record in records} == {partitions[0]}
    assert all(record.timestamp_ms for record in records)


class Latin1(str):
    """A header's key that is sent as other clients may send it; this one takes text alone, and makes UTF-8 of it."""

    __slots__ = ()

    def encode(self, *_: object) -> bytes:
        return super().encode("latin-1")


def test_a_record_whose_header_has_a_key_that_is_no_text_is_read_without_its_headers(
    broker: SharedBroker, open_fetcher: Callable[[], Fetcher], partitions: list[TopicPartition]
) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    sound, spoilt = [("plain", b"1")], [("plain", b"1"), (Latin1("caf\u00e9"), b"2")]
    for headers in [sound, spoilt] * 20:  # what is called often is called otherwise
        producer.send(partitions[0].topic, b"value", partition=partitions[0].partition, headers=headers)
    producer.flush()
    producer.close()
    fetcher = open_fetcher()
    read(fetcher, partitions[0])
    records = fetch(fetcher, 40)
    assert {record.value for record in records} == {b"value"}
    assert {(record.headers, record.amiss) for record in records[::2]} == {((("plain", b"1"),), None)}
    said = "its headers are left out: a key is no UTF-8: b'caf\\xe9'"
    assert {(record.headers, record.amiss) for record in records[1::2]} == {((), said)}


def test_a_partition_that_was_stopped_has_to_be_placed_anew(
    driver: Driver, open_fetcher: Callable[[], Fetcher], partitions: list[TopicPartition]
) -> None:
    driver.produce(partitions[0], 0, 20)
    fetcher = open_fetcher()
    read(fetcher, partitions[0])
    fetch(fetcher, 5)
    fetcher.stop(partitions[:1])
    assert fetcher.settle() == ()
    read(fetcher, partitions[0], offset=10)
    assert [record.offset for record in fetch(fetcher, 10)] == list(range(10, 20))


def test_nothing_more_is_handed_out_of_a_partition_that_was_stopped(
    driver: Driver, open_fetcher: Callable[[], Fetcher], partitions: list[TopicPartition]
) -> None:
    driver.produce(partitions[0], 0, 2000)
    driver.produce(partitions[1], 0, 2000)
    fetcher = open_fetcher()
    read(fetcher, *partitions[:2])
    fetch(fetcher, 10)
    fetcher.stop(partitions[:1])
    driver.produce(partitions[1], 2000, 2000)
    left = [record for record in fetch(fetcher, 3500) if record.partition == partitions[0]]
    assert left == []


@pytest.mark.parametrize(
    ("backlogs", "records", "batch_bytes", "most_bytes"),
    [(1, 30_000, BATCH_BYTES, 6 * BATCH_BYTES), (12, 3_000, 4 * BATCH_BYTES, 12 * BATCH_BYTES)],
    ids=["of another", "of twelve others"],
)
def test_a_partition_does_not_wait_behind_the_backlog(
    driver: Driver,
    broker: SharedBroker,
    create_topic: Callable[..., str],
    unique_name: str,
    backlogs: int,
    records: int,
    batch_bytes: int,
    most_bytes: int,
) -> None:
    """Once all of them are read: until the client asks for one the first time, any number of others may pass."""
    topic = create_topic(f"{unique_name}.behind", partitions=backlogs + 3)
    partitions = [TopicPartition(topic, number) for number in range(backlogs + 3)]
    behind, slow = partitions[:backlogs], partitions[backlogs:]
    for partition in partitions:
        driver.produce(partition, 0, 1)
    fetcher = Fetcher(fetching_config(common_config(broker.bootstrap_servers, 1, {}), unique_name, batch_bytes))
    read(fetcher, *partitions)
    assert {record.partition for record in fetch(fetcher, len(partitions))} == set(partitions)
    for partition in behind:
        driver.produce(partition, 1, records, size=1_000)
    fetch(fetcher, 2_000)
    for partition in slow:
        driver.produce(partition, 1, 10)
    waited_for: set[TopicPartition] = set()
    passed_bytes = 0
    while len(waited_for) < len(slow):
        time.sleep(0.0005)  # slower than the brokers are: the client's queue is full
        (record,) = fetch(fetcher, 1)
        waited_for |= {record.partition} & set(slow)
        passed_bytes += record.bytes
    fetcher.close()
    assert passed_bytes < most_bytes


def test_what_is_gone_by_now_is_passed_over(
    driver: Driver,
    open_fetcher: Callable[[], Fetcher],
    create_topic: Callable[..., str],
    unique_name: str,
) -> None:
    partition = TopicPartition(create_topic(f"{unique_name}.short"), 0)
    driver.produce(partition, 0, 10)
    fetcher = open_fetcher()
    driver.delete_before(partition, 7)
    read(fetcher, partition, offset=4)

    def passed_over() -> tuple[PassedOver, ...]:
        assert fetcher.fetch(1, 0.1).records == ()
        fetcher.settle()
        return fetcher.take_passed_over()

    told = wait_until(passed_over)
    assert told == (PassedOver(partition, 4, 7, were_read=False),)
    assert [record.offset for record in fetch(fetcher, 3)] == [7, 8, 9]


def test_records_of_an_aborted_transaction_are_not_read(
    driver: Driver, open_fetcher: Callable[[], Fetcher], partitions: list[TopicPartition]
) -> None:
    driver.produce_aborted(partitions[0], 3)
    driver.produce(partitions[0], 0, 1)
    fetcher = open_fetcher()
    read(fetcher, partitions[0])
    (record,) = fetch(fetcher, 1)
    assert record.offset >= 3, "the aborted ones come before it"


def test_how_well_records_are_compressed_is_known_once_they_are_many(
    driver: Driver, broker: SharedBroker, create_topic: Callable[..., str], unique_name: str
) -> None:
    partition = TopicPartition(create_topic(f"{unique_name}.gzip", compression_type="gzip"), 0)
    driver.produce(partition, 0, 5_000, size=1_000)
    common = common_config(broker.bootstrap_servers, 1, {"statistics.interval.ms": "100"})
    fetcher = Fetcher(fetching_config(common, unique_name, 10_000_000))
    read(fetcher, partition)
    assert fetcher.compression is None
    fetch(fetcher, 5_000)

    def compression() -> float | None:
        fetcher.fetch(1, 0.1)
        return fetcher.compression

    assert (wait_until(compression) or 0) > 5, "dots compress well"
    fetcher.close()


def test_a_start_of_nothing_that_exists_says_so(
    open_fetcher: Callable[[], Fetcher], partitions: list[TopicPartition]
) -> None:
    fetcher = open_fetcher()
    beyond = TopicPartition(partitions[0].topic, 9)
    assert fetcher.settle({beyond}) == ()
    assert fetcher.fault is not None
    assert str(beyond) in fetcher.fault
    assert "4 partitions" in fetcher.fault
    fetcher.stop([beyond])
    assert fetcher.fault is None
