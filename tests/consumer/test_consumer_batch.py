import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.decide.batch import Batch, Record
from consumer.decide.reached import Reached
from domain.messages import Order, Read
from domain.partitions import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 1)


def record(partition: TopicPartition, offset: int, value: bytes | None = b"12345") -> Record:
    return Record(partition, offset, timestamp_ms=None, key=b"k", value=value, headers=())


def test_records_are_batched_by_topic_in_the_order_they_came() -> None:
    batch = Batch()
    batch.add([record(A, 4), record(B, 7), record(A, 5)], 1.0, 1.5)
    batch.add([record(A, 9)], 2.0, 2.5)
    assert [held.offset for held in batch.by_topic["a"]] == [4, 5, 9]
    assert [held.offset for held in batch.by_topic["b"]] == [7]
    assert (batch.records, batch.bytes) == (4, 24)


def test_a_record_without_a_value_has_the_bytes_of_its_key() -> None:
    assert record(A, 0, value=None).bytes == 1


def test_reading_goes_on_behind_the_last_record_of_each_partition() -> None:
    batch = Batch()
    batch.add([record(A, 4), record(B, 7), record(A, 9)], 1.0, 1.0)
    assert batch.positions == {A: Reached(10), B: Reached(8)}


def test_each_read_says_what_was_read_when_and_in_which_stint() -> None:
    batch = Batch()
    batch.add([record(B, 7), record(A, 4)], 1.0, 1.5)
    batch.add([record(A, 9)], 2.0, 2.5)
    first, second = batch.reads({A: Order(1, 11), B: Order(2, 12)})
    assert first == Read(
        topic="a",
        partition=0,
        stint=Order(1, 11),
        first_offset=4,
        last_offset=9,
        records=2,
        first_read_at=1.0,
        last_read_at=2.5,
    )
    assert (second.key, second.stint, second.last_read_at) == (B, Order(2, 12), 1.5)


def test_a_batch_reads_nothing_of_a_partition_that_is_not_held() -> None:
    batch = Batch()
    batch.add([record(A, 4)], 1.0, 1.0)
    with pytest.raises(KeyError):
        batch.reads({B: Order(1, 1)})


def test_what_is_dropped_was_never_there() -> None:
    kept, batch = Batch(), Batch()
    for each in (kept, batch):
        each.add([record(A, 4), record(B, 7), record(A, 5, value=b"a large one")], 1.0, 1.5)
    sibling = TopicPartition("a", 1)
    batch.add([record(sibling, 1), record(TopicPartition("c", 0), 1)], 2.0, 2.0)
    batch.drop([sibling, TopicPartition("c", 0), TopicPartition("d", 0)])
    assert batch.by_topic == kept.by_topic
    assert (batch.records, batch.bytes, batch.positions) == (kept.records, kept.bytes, kept.positions)


def test_the_account_of_a_batch_outlives_its_records() -> None:
    batch = Batch()
    batch.add([record(A, 4), record(B, 7)], 1.0, 1.5)
    assert batch.take() == {"a": [record(A, 4)], "b": [record(B, 7)]}
    assert batch.by_topic == {}
    assert (batch.records, batch.positions) == (2, {A: Reached(5), B: Reached(8)})


@given(st.lists(st.lists(st.sampled_from([A, B]), max_size=5), max_size=5))
def test_the_reads_account_for_every_record(requests: list[list[TopicPartition]]) -> None:
    batch = Batch()
    offset = 0
    for partitions in requests:
        batch.add([record(partition, offset := offset + 1) for partition in partitions], 1.0, 1.0)
    reads = batch.reads({A: Order(1, 1), B: Order(1, 2)})
    assert sum(read.records for read in reads) == batch.records == sum(map(len, requests))
    assert {read.key: Reached(read.last_offset + 1) for read in reads} == batch.positions
