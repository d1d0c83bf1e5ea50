import math
from dataclasses import replace

import pytest

from domain.partitions import OffsetRange
from domain.speeds import Method
from monitor.measure.growth import RECORD_SIZE_MEMORY_S, Growth, LogMeasurement, RecordSize, growth
from monitor.measure.samples import Sample

BEFORE = LogMeasurement(at=0, topic_id="a", leader=1, stored_bytes=1000, offsets=OffsetRange(10, 20))


def after(stored: int, start: int, end: int, **changed: object) -> LogMeasurement:
    measurement = replace(BEFORE, at=1, stored_bytes=stored, offsets=OffsetRange(start, end))
    return replace(measurement, **changed)  # type: ignore[arg-type]


def test_the_difference_of_sizes_counts_where_nothing_was_deleted() -> None:
    assert growth(BEFORE, after(1500, 10, 25), 77.0) == Growth(500, Method.STORED_BYTES)


def test_a_log_to_which_nothing_was_written_grew_by_nothing() -> None:
    assert growth(BEFORE, after(1000, 10, 20), None) == Growth(0, Method.STORED_BYTES)


@pytest.mark.parametrize(
    "measurement",
    [
        pytest.param(after(1100, 15, 25), id="retention deleted a segment"),
        pytest.param(after(400, 15, 25), id="retention deleted more than was written"),
        pytest.param(after(900, 10, 25), id="the log shrank in the middle"),
        pytest.param(after(1000, 15, 25), id="retention deleted as much as was written"),
        pytest.param(after(1500, 10, 25, leader=2), id="another replica leads"),
        pytest.param(after(1500, 10, 25, compacted=True), id="the topic is compacted"),
    ],
)
def test_records_are_counted_where_stored_bytes_mislead(measurement: LogMeasurement) -> None:
    assert growth(BEFORE, measurement, 80.0) == Growth(5 * 80.0, Method.END_OFFSETS)
    assert growth(BEFORE, measurement, None) is None


def test_a_record_that_came_between_the_question_for_the_size_and_that_for_the_end_is_counted_once() -> None:
    between = after(1000, 10, 21)
    assert growth(BEFORE, between, 100.0) == Growth(0, Method.STORED_BYTES)
    assert growth(between, after(1100, 10, 21), 100.0) == Growth(100, Method.STORED_BYTES)


def test_no_new_record_means_no_growth_whatever_was_deleted() -> None:
    assert growth(BEFORE, after(100, 18, 20), None) == Growth(0, Method.END_OFFSETS)


@pytest.mark.parametrize(
    "measurement",
    [
        pytest.param(after(5000, 0, 50, topic_id="b"), id="another topic of that name"),
        pytest.param(after(900, 10, 19), id="the log lost its end"),
    ],
)
def test_two_logs_have_no_difference(measurement: LogMeasurement) -> None:
    assert growth(BEFORE, measurement, 80.0) is None


def test_without_offsets_only_a_log_that_did_not_shrink_tells() -> None:
    bare = replace(BEFORE, offsets=None)
    assert growth(bare, replace(bare, at=1, stored_bytes=1200), 80.0) == Growth(200, Method.STORED_BYTES)
    assert growth(bare, replace(bare, at=1, stored_bytes=999), 80.0) is None
    assert growth(bare, replace(bare, at=1, stored_bytes=1200, leader=2), 80.0) is None
    assert growth(bare, replace(bare, at=1, stored_bytes=1200, compacted=True), 80.0) is None


def test_the_size_of_a_record_is_unknown_until_one_was_seen() -> None:
    assert RecordSize().bytes_per_record is None
    assert RecordSize().observe(BEFORE, after(1500, 10, 25)).bytes_per_record == 100


@pytest.mark.parametrize(
    "measurement",
    [
        after(1500, 11, 25),
        after(900, 10, 25),
        after(1500, 10, 20),
        after(1500, 10, 25, leader=2),
        after(1500, 10, 25, topic_id="b"),
        after(1500, 10, 25, offsets=None),
    ],
)
def test_the_size_of_a_record_is_learnt_only_where_one_log_grew(measurement: LogMeasurement) -> None:
    assert RecordSize().observe(BEFORE, measurement) == RecordSize()


def test_the_size_of_a_record_follows_what_producers_send_now() -> None:
    size = RecordSize(bytes=100.0 * 1000, records=1000)
    later = after(1000 + 300 * 1000, 10, 1020, at=RECORD_SIZE_MEMORY_S)
    faded = math.exp(-1)
    assert size.observe(BEFORE, later).bytes_per_record == pytest.approx((100 * faded + 300) / (faded + 1))


def test_the_size_of_records_follows_samples_within_seconds() -> None:
    before = replace(BEFORE, stored_bytes=None, sample=Sample(1_000, 10))
    size = RecordSize.of(before)
    assert size.bytes_per_record == 100
    for at in range(1, 31):
        after = replace(before, at=at, sample=Sample(4_000, 10))
        size = size.observe(before, after)
        assert size.bytes_per_record is not None
        assert 100 < size.bytes_per_record < 400
        before = after
    assert size.bytes_per_record == pytest.approx(400, rel=0.05)
    assert size.observe(before, replace(before, at=31, sample=None)) == size
