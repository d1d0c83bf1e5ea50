import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.partitions import OffsetRange, TopicPartition
from monitor.measure.samples import AT_ONCE, RECENT_RECORDS, SAMPLE_BYTES, Sample, Sampling, sample_of

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def batch(base: int, records: int, in_bytes: int, magic: int = 2) -> bytes:
    header = struct.pack(">qiibIhi", base, in_bytes - 12, 0, magic, 0, 0, records - 1)
    return header.ljust(in_bytes, b"\0")


def looked_at(log: OffsetRange, found: bytes) -> Sampling:
    sampling = Sampling()
    sampling.starts({A0: log})
    sampling.take({A0: log}, {A0: found})
    return sampling


def test_batches_are_counted_as_they_lie_on_the_disk() -> None:
    fetched = batch(0, 10, 500) + batch(10, 1, 100) + batch(11, 40, 900)
    assert sample_of(fetched) == Sample(1_500, 51)


def test_a_batch_that_is_cut_off_counts_as_a_whole_if_its_header_is_there() -> None:
    assert sample_of(batch(0, 10, 500) + batch(10, 90, 4_000)[:27]) == Sample(4_500, 100)
    assert sample_of(batch(0, 10, 500) + batch(10, 90, 4_000)[:26]) == Sample(500, 10)


def test_what_follows_the_end_that_was_told_does_not_count() -> None:
    assert sample_of(batch(0, 10, 500) + batch(10, 90, 4_000), end=10) == Sample(500, 10)


@pytest.mark.parametrize(
    "fetched", [b"", b"\0" * 26, b"\0" * 100, batch(0, 5, 100, magic=1), batch(0, 0, 100), batch(0, 5, 12)]
)
def test_what_is_no_batch_tells_nothing(fetched: bytes) -> None:
    assert sample_of(fetched) is None


@given(st.binary(max_size=200))
def test_whatever_comes_is_a_sample_or_none(fetched: bytes) -> None:
    sample = sample_of(fetched)
    assert sample is None or (sample.bytes > 0 and sample.records > 0)


def test_all_that_was_appended_is_looked_at_where_it_is_no_more_than_a_sample() -> None:
    sampling = Sampling()
    assert sampling.starts({A0: OffsetRange(5, 20)}) == {A0: 5}
    sampling.take({A0: OffsetRange(5, 20)}, {A0: batch(5, 15, 1_500)})
    assert sampling.starts({A0: OffsetRange(5, 300)}) == {A0: 20}


def test_of_more_a_part_is_looked_at_that_lies_elsewhere_each_time() -> None:
    sampling, end, starts = looked_at(OffsetRange(0, 10_000), batch(0, 10, 1_000)), 10_000, []
    for _ in range(50):
        before, end = end, end + 10_000
        held = {A0: OffsetRange(0, end)}
        start = sampling.starts(held)[A0]
        assert before <= start <= end - SAMPLE_BYTES / 100
        starts.append((start - before) / (10_000 - SAMPLE_BYTES / 100))
        sampling.take(held, {A0: batch(start, 10, 1_000)})
    for fifth in range(5):
        assert 8 <= sum(fifth / 5 <= share < (fifth + 1) / 5 for share in starts) <= 12


def test_a_log_of_which_nothing_is_known_is_looked_at_near_its_end() -> None:
    assert Sampling().starts({A0: OffsetRange(5, 5_000), A1: OffsetRange(7, 7)}) == {A0: 5_000 - RECENT_RECORDS}


def test_a_log_that_does_not_grow_is_left_alone_and_keeps_its_sample() -> None:
    sampling, held = Sampling(), {A0: OffsetRange(0, 50)}
    assert sampling.starts(held) == {A0: 0}
    assert sampling.take(held, {}) == {}
    assert sampling.starts(held) == {A0: 0}
    assert sampling.take(held, {A0: batch(0, 50, 700)}) == {A0: Sample(700, 50)}
    assert sampling.starts(held) == {}
    assert sampling.take(held, {}) == {A0: Sample(700, 50)}


@pytest.mark.parametrize("again", [OffsetRange(0, 0), OffsetRange(0, 3)])
def test_the_sample_of_a_log_that_is_no_more_is_forgotten(again: OffsetRange) -> None:
    sampling = looked_at(OffsetRange(0, 50), batch(0, 50, 700))
    sampling.starts({A0: again})
    assert sampling.take({A0: again}, {}) == {}
    assert sampling.starts({A0: OffsetRange(0, 9)}) == {A0: 0}


def test_a_log_of_which_nothing_came_though_it_grew_has_no_sample_any_more() -> None:
    sampling, grown = looked_at(OffsetRange(0, 50), batch(0, 50, 700)), {A0: OffsetRange(0, 60)}
    assert sampling.starts(grown) == {A0: 50}
    assert sampling.take(grown, {}) == {}
    assert sampling.starts(grown) == {A0: 0}


def test_what_retention_deleted_is_not_asked_for() -> None:
    sampling = looked_at(OffsetRange(0, 50), batch(0, 50, 700))
    assert sampling.starts({A0: OffsetRange(60, 80)}) == {A0: 60}


def test_of_many_partitions_each_has_its_turn() -> None:
    held = {TopicPartition("a", number): OffsetRange(0, 9) for number in range(5 * AT_ONCE // 2)}
    sampling = Sampling()
    asked = [sampling.starts(held) for _ in range(5)]
    assert all(len(starts) == AT_ONCE for starts in asked)
    assert {partition for starts in asked for partition in starts} == held.keys()


def test_a_partition_whose_turn_has_not_come_keeps_its_sample() -> None:
    held = {TopicPartition("a", number): OffsetRange(0, 9) for number in range(2 * AT_ONCE)}
    sampling, sampled = Sampling(), dict[TopicPartition, Sample]()
    for _ in range(2):
        sampled = sampling.take(held, dict.fromkeys(sampling.starts(held), batch(0, 9, 90)))
    assert sampled.keys() == held.keys()


def test_producers_that_write_by_turns_small_and_large_are_measured_right_however_much_they_write() -> None:
    sampling, log, end, appended, estimated = Sampling(), bytearray(), 0, 0, 0.0
    for _ in range(30):
        starts_at, before = len(log), end
        positions = []
        for records, in_bytes in [(10, 1_000)] * 600 + [(20, 9_000)] * 100:
            positions.append((end, len(log)))
            log += batch(end, records, in_bytes)
            end += records
        start = sampling.starts({A0: OffsetRange(0, end)})[A0]
        at = max(at for base, at in positions if base <= max(start, before))
        sample = sampling.take({A0: OffsetRange(0, end)}, {A0: bytes(log[at : at + SAMPLE_BYTES])})[A0]
        estimated += (end - before) * sample.bytes / sample.records
        appended += len(log) - starts_at
    assert estimated / appended == pytest.approx(1, abs=0.1)
