"""The write of a batch: all its topics at once, only what failed again, always under one version."""

import threading
from concurrent.futures import Future, wait
from datetime import date

import pyarrow as pa
import pytest

from consumer.batch import Batch, Record
from consumer.session import LakeError, SparkGoneError
from consumer.writing import BatchWrite, fault_of
from domain.partitions import TopicPartition

DAY = date(2026, 11, 22)
PATIENTLY_S = 60.0


class FakeLake:
    """Takes what it is given, but for topics that are to fail, and those that are not let through yet."""

    def __init__(self) -> None:
        self.appended: list[tuple[str, int, int]] = []
        self.failures: dict[str, list[Exception]] = {}
        self.gate = threading.Event()
        self.gate.set()

    def append(self, topic: str, version: int, table: pa.Table) -> None:
        assert self.gate.wait(PATIENTLY_S)
        if self.failures.get(topic):
            raise self.failures[topic].pop(0)
        self.appended.append((topic, version, table.num_rows))


def batch(**records: int) -> Batch:
    """So many records of each topic."""
    made = Batch()
    for topic, count in records.items():
        name = TopicPartition(topic, 0)
        made.add([Record(name, offset, 1_000, b"k", b"v", ()) for offset in range(count)], 1.0, 2.0)
    return made


def write(lake: FakeLake, given: Batch, limit_s: float = PATIENTLY_S) -> BatchWrite:
    return BatchWrite(lake, 7, given, DAY, limit_s)  # type: ignore[arg-type]


def settled(writing: BatchWrite) -> str | None:
    writing.begin()
    wait(writing.under_way)
    return writing.settle()


def test_all_topics_of_a_batch_are_written_under_its_version() -> None:
    lake, given = FakeLake(), batch(orders=3, clicks=2)
    assert settled(write(lake, given)) is None
    assert sorted(lake.appended) == [("clicks", 7, 2), ("orders", 7, 3)]


def test_the_batch_lets_its_records_go_and_keeps_its_account() -> None:
    given = batch(orders=3)
    write(FakeLake(), given)
    assert given.by_topic == {}
    assert given.next_offsets == {TopicPartition("orders", 0): 3}


def test_only_what_was_not_written_is_written_again_under_the_same_version() -> None:
    lake = FakeLake()
    lake.failures = {"orders": [LakeError("the disk is full"), LakeError("still full")]}
    writing = write(lake, batch(orders=3, clicks=2))
    assert settled(writing) == "the disk is full"
    assert settled(writing) == "still full"
    assert settled(writing) is None
    assert lake.appended == [("clicks", 7, 2), ("orders", 7, 3)]
    assert settled(writing) is None
    assert len(lake.appended) == 2


def test_topics_are_written_side_by_side() -> None:
    lake = FakeLake()
    lake.gate.clear()
    writing = write(lake, batch(orders=1, clicks=1))
    writing.begin()
    assert len(writing.under_way) == 2
    lake.gate.set()
    wait(writing.under_way)
    assert list(writing.under_way) == []
    assert writing.settle() is None


def test_what_takes_too_long_has_failed_and_is_written_again() -> None:
    lake = FakeLake()
    lake.gate.clear()
    writing = write(lake, batch(orders=1), limit_s=0.0)
    writing.begin()
    assert writing.under_way == ()
    assert writing.settle() == "no answer within 0 s"
    lake.gate.set()
    writing.begin()
    for attempt in list(writing._writes.values()):
        attempt.result(PATIENTLY_S)
    assert writing.settle() is None


@pytest.mark.parametrize("error", [SparkGoneError("the JVM has ended"), ZeroDivisionError("a bug")])
def test_what_no_further_attempt_can_mend_is_raised(error: Exception) -> None:
    lake = FakeLake()
    lake.failures = {"orders": [error]}
    with pytest.raises(type(error), match=str(error)):
        settled(write(lake, batch(orders=1)))


def ended(error: Exception | None = None) -> "Future[None]":
    future: Future[None] = Future()
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
    return future


def test_the_fault_of_what_was_asked_is_what_the_lake_said_or_that_it_said_nothing() -> None:
    assert fault_of(ended(), 5.0) is None
    assert fault_of(ended(LakeError("refused")), 5.0) == "refused"
    assert fault_of(Future(), 2.5) == "no answer within 2.5 s"
    with pytest.raises(SparkGoneError):
        fault_of(ended(SparkGoneError("gone")), 5.0)
