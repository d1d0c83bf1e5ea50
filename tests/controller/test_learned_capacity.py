import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.learned_capacity import CapacityLimits, learned_capacity
from domain.messages import Throughput

LIMITS = CapacityLimits(floor=1e6, ceiling=20e6, confidence=0.95)


def throughput(rate: float, variation: float = 0.0, cycles: int = 30) -> Throughput:
    return Throughput(bytes_per_s=rate, variation=variation, cycles=cycles, record_bytes=1000.0)


throughputs = st.builds(throughput, st.floats(1.0, 1e9), st.floats(0.0, 2.0), st.integers(1, 100))


def test_until_somebody_has_told_it_is_the_floor() -> None:
    learned = learned_capacity([], LIMITS)
    assert (learned.bytes_per_s, learned.consumers, learned.cycles) == (1e6, 0, 0)


def test_the_slowest_consumer_is_what_can_be_counted_on() -> None:
    learned = learned_capacity([throughput(9e6), throughput(7e6), throughput(12e6)], LIMITS)
    assert (learned.bytes_per_s, learned.consumers, learned.cycles) == (7e6, 3, 90)


def test_uneven_or_few_cycles_are_counted_on_less() -> None:
    even = learned_capacity([throughput(10e6, variation=0.1)], LIMITS).bytes_per_s
    assert even == pytest.approx(10e6 * (1 - 1.6449 * 0.1 / 30**0.5), rel=1e-4)
    assert learned_capacity([throughput(10e6, variation=0.3)], LIMITS).bytes_per_s < even
    assert learned_capacity([throughput(10e6, variation=0.1, cycles=3)], LIMITS).bytes_per_s < even


@given(st.lists(throughputs, max_size=5), st.floats(0.5, 0.999))
def test_it_stays_between_floor_and_ceiling(told: list[Throughput], confidence: float) -> None:
    learned = learned_capacity(told, CapacityLimits(1e6, 20e6, confidence))
    assert 1e6 <= learned.bytes_per_s <= 20e6


@given(st.lists(throughputs, min_size=1, max_size=5), throughputs)
def test_who_else_tells_never_raises_it_but_from_the_floor_of_nobody(told: list[Throughput], other: Throughput) -> None:
    assert learned_capacity([*told, other], LIMITS).bytes_per_s <= learned_capacity(told, LIMITS).bytes_per_s
