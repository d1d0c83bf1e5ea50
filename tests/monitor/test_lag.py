"""How far the group is behind, from what a log holds and what is committed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.partitions import OffsetRange, TopicPartition
from domain.speeds import Lag
from monitor.measure.estimates import SpeedEstimates
from monitor.measure.growth import LogMeasurement
from monitor.measure.lag import lag

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def test_the_lag_is_what_lies_between_the_commit_and_the_end() -> None:
    assert lag(OffsetRange(0, 50), 5_000, 40, bytes_per_record=90.0, bytes_per_s=300.0) == Lag(10, 900.0, 3.0)


def test_the_lag_of_a_partition_without_a_commit_is_unknown_and_not_its_whole_log() -> None:
    """Hole 4: commits of idle partitions expire after 7 days, and one consumer became 31."""
    assert lag(OffsetRange(10, 50), 4_000, None, bytes_per_record=100.0, bytes_per_s=1_000.0) is None
    assert lag(OffsetRange(50, 50), 0, None, bytes_per_record=None, bytes_per_s=None) == Lag(0, 0.0, 0.0)


def test_what_retention_deleted_before_it_was_read_is_no_lag() -> None:
    assert lag(OffsetRange(30, 50), 2_000, 10, bytes_per_record=100.0, bytes_per_s=None) == Lag(20, 2_000.0, None)


def test_what_a_transaction_that_is_open_holds_up_is_no_lag() -> None:
    """Among the holes that were not confirmed: a transaction that hangs at the tail was lag for ever."""
    held = OffsetRange(0, 1_000, open_from=45)
    assert lag(held, 100_000, 40, bytes_per_record=100.0, bytes_per_s=100.0) == Lag(5, 500.0, 5.0)
    assert lag(held, 100_000, 45, bytes_per_record=100.0, bytes_per_s=100.0) == Lag(0, 0.0, 0.0)


def test_without_recent_records_each_is_as_large_as_those_of_the_whole_log() -> None:
    assert lag(OffsetRange(0, 50), 5_000, 40, bytes_per_record=None, bytes_per_s=None) == Lag(10, 1_000.0, None)


def test_a_lag_on_a_partition_that_is_not_written_has_no_seconds() -> None:
    assert lag(OffsetRange(0, 50), 5_000, 40, bytes_per_record=100.0, bytes_per_s=0.0) == Lag(10, 1_000.0, None)


def test_a_commit_that_is_newer_than_the_end_is_no_lag() -> None:
    assert lag(OffsetRange(0, 50), 5_000, 51, bytes_per_record=100.0, bytes_per_s=0.0) == Lag(0, 0.0, 0.0)


def test_records_that_compaction_removed_take_no_place() -> None:
    assert lag(OffsetRange(0, 1_000), 5_000, 0, bytes_per_record=100.0, bytes_per_s=None) == Lag(1_000, 5_000.0, None)


@given(
    start=st.integers(0, 10**12),
    length=st.integers(0, 10**12),
    stored=st.integers(0, 10**15),
    held_up=st.none() | st.integers(0, 10**12),
    committed=st.integers(0, 2 * 10**12),
    bytes_per_record=st.none() | st.floats(0, 10**9),
    bytes_per_s=st.none() | st.floats(0, 10**12),
)
def test_a_lag_is_never_negative_and_never_larger_than_the_log(
    start: int,
    length: int,
    stored: int,
    held_up: int | None,
    committed: int,
    bytes_per_record: float | None,
    bytes_per_s: float | None,
) -> None:
    behind = lag(
        OffsetRange(start, start + length, None if held_up is None else start + min(held_up, length)),
        stored,
        committed,
        bytes_per_record=bytes_per_record,
        bytes_per_s=bytes_per_s,
    )
    assert behind is not None
    assert 0 <= behind.records <= length
    assert 0 <= behind.bytes <= stored
    assert behind.seconds is None or behind.seconds >= 0
    assert behind.records or not behind.bytes


def measured(at: float, stored: int, end: int | None, topic_id: str = "a") -> LogMeasurement:
    offsets = None if end is None else OffsetRange(0, end)
    return LogMeasurement(at, topic_id, leader=1, stored_bytes=stored, offsets=offsets)


@pytest.fixture
def estimates() -> SpeedEstimates:
    estimates = SpeedEstimates(window_s=6, hold_s=15)
    estimates.follow([A0, A1])
    return estimates


def test_lags_come_from_the_newest_ends_and_the_newest_commits(estimates: SpeedEstimates) -> None:
    estimates.add([(A0, measured(0, 0, 0)), (A0, measured(1, 500, 5)), (A0, measured(2, 1_000, None))])
    estimates.commit({A0: 3, A1: 3}, at=2)
    assert estimates.lags(at=2) == {A0: Lag(2, 200.0, 0.4)}


def test_a_lag_is_unknown_where_its_commit_or_its_end_was_not_told_for_long(estimates: SpeedEstimates) -> None:
    estimates.add([(A0, measured(0, 500, 5)), (A1, measured(10, 500, 5))])
    assert estimates.lags(at=10) == {}
    estimates.commit({A0: 0, A1: 0}, at=10)
    assert estimates.lags(at=15).keys() == {A0, A1}
    assert estimates.lags(at=16).keys() == {A1}
    estimates.commit({A0: 0}, at=16)
    assert estimates.lags(at=16).keys() == set()
    estimates.commit({A1: 0}, at=17)
    assert estimates.lags(at=25).keys() == {A1}
    estimates.add([(A1, measured(31, 500, 5))])
    assert estimates.lags(at=33).keys() == set()


def test_the_end_of_a_topic_that_was_created_again_is_not_that_of_the_old_one(estimates: SpeedEstimates) -> None:
    estimates.add([(A0, measured(0, 500, 5)), (A0, measured(1, 100, None, topic_id="b"))])
    estimates.commit({A0: 0}, at=1)
    assert estimates.lags(at=1) == {}
    estimates.add([(A0, measured(2, 100, 1, topic_id="b"))])
    assert estimates.lags(at=2) == {A0: Lag(1, 100.0, None)}
