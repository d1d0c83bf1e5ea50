from hypothesis import given
from hypothesis import strategies as st

from consumer.decide.rate import FEWEST, NEWEST, Pace, SaturatedRate


def rate_of(*cycles: tuple[int, float]) -> SaturatedRate:
    rate = SaturatedRate()
    for size_bytes, seconds in cycles:
        rate = rate.after(size_bytes, seconds)
    return rate


def test_too_few_cycles_tell_nothing() -> None:
    assert rate_of(*[(5_000_000, 1.0)] * (FEWEST - 1)).throughput(1000.0, None) is None


def test_the_rate_is_all_bytes_over_all_time() -> None:
    told = rate_of((6_000_000, 1.0), (6_000_000, 2.0), (6_000_000, 3.0)).throughput(940.0, 12.5)
    assert told is not None
    assert told.bytes_per_s == 3_000_000
    assert (told.cycles, told.record_bytes, told.compression) == (3, 940.0, 12.5)


def test_a_constant_rate_has_no_variation() -> None:
    told = rate_of(*[(5_000_000, 1.25)] * 5, (2_500_000, 0.625)).throughput(1000.0, None)
    assert told is not None
    assert told.variation == 0.0


def test_what_is_long_ago_is_forgotten() -> None:
    told = rate_of((1, 1000.0), *[(5_000_000, 1.0)] * NEWEST).throughput(1000.0, None)
    assert told is not None
    assert told.bytes_per_s == 5_000_000


@given(st.lists(st.tuples(st.integers(1, 10**9), st.floats(0.01, 1000.0)), min_size=FEWEST, max_size=NEWEST))
def test_the_rate_lies_between_the_slowest_and_the_fastest_cycle(cycles: list[tuple[int, float]]) -> None:
    told = rate_of(*cycles).throughput(1.0, None)
    assert told is not None
    rates = [size_bytes / seconds for size_bytes, seconds in cycles]
    assert min(rates) * (1 - 1e-9) <= told.bytes_per_s <= max(rates) * (1 + 1e-9)


def test_a_limit_keeps_batches_apart_by_what_they_take_and_makes_up_for_nothing() -> None:
    pace = Pace(2_000_000.0)
    assert pace.wait_s(100.0) == 0
    pace = pace.after(5_000_000, 100.0)
    assert pace.wait_s(101.0) == 1.5
    assert pace.wait_s(110.0) == 0
    assert pace.after(5_000_000, 110.0).wait_s(110.0) == 2.5


def test_without_a_limit_nothing_waits() -> None:
    assert Pace(None).after(5_000_000, 100.0).wait_s(100.0) == 0


def test_only_cycles_that_follow_one_another_without_a_break_count() -> None:
    rate = SaturatedRate()
    for at in range(4):
        rate = rate.ended(100, float(at), whole=True, saturated=True)
    told = rate.throughput(1.0, None)
    assert told is not None
    assert (told.cycles, told.bytes_per_s) == (3, 100.0), "before the first there was none"
    broken = rate.interrupted().ended(900, 4.0, whole=True, saturated=True)
    refused = rate.ended(900, 4.0, whole=False, saturated=True).ended(900, 5.0, whole=True, saturated=True)
    idle = rate.ended(900, 4.0, whole=True, saturated=False)
    assert [each.throughput(1.0, None) for each in (broken, refused, idle)] == [told] * 3
