import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.decide.learned_capacity import learned_capacity, students_t
from domain.messages import Throughput


def capacity(told: list[Throughput], confidence: float = 0.95) -> float:
    learned = learned_capacity(told, 1e6, 20e6, confidence)
    assert learned is not None
    return learned


def throughput(rate: float, variation: float = 0.0, cycles: int = 30) -> Throughput:
    return Throughput(bytes_per_s=rate, variation=variation, cycles=cycles, record_bytes=1000.0)


throughputs = st.builds(throughput, st.floats(1.0, 1e9), st.floats(0.0, 2.0), st.integers(1, 100))


def test_until_somebody_has_told_nothing_is_known() -> None:
    assert learned_capacity([], 1e6, 20e6, 0.95) is None


def test_the_slowest_consumer_is_what_can_be_counted_on() -> None:
    assert capacity([throughput(9e6), throughput(7e6), throughput(12e6)]) == 7e6


def test_uneven_or_few_cycles_are_counted_on_less() -> None:
    even = capacity([throughput(10e6, variation=0.1)])
    assert even == pytest.approx(10e6 * (1 - 1.6991 * 0.1 / 29**0.5), rel=1e-4)
    assert capacity([throughput(10e6, variation=0.3)]) < even
    assert capacity([throughput(10e6, variation=0.1, cycles=3)]) < even


# National Institute of Standards and Technology, Engineering Statistics Handbook, 1.3.6.7.2.
@pytest.mark.parametrize(
    ("freedom", "at_90", "at_95", "at_99", "at_999"),
    [
        (1, 3.078, 6.314, 31.821, 318.309),
        (2, 1.886, 2.920, 6.965, 22.327),
        (3, 1.638, 2.353, 4.541, 10.215),
        (4, 1.533, 2.132, 3.747, 7.173),
        (9, 1.383, 1.833, 2.821, 4.297),
        (29, 1.311, 1.699, 2.462, 3.396),
        (100, 1.290, 1.660, 2.364, 3.174),
    ],
)
def test_the_quantiles_of_students_t_are_those_of_the_tables(
    freedom: int, at_90: float, at_95: float, at_99: float, at_999: float
) -> None:
    found = [students_t(confidence, freedom) for confidence in (0.9, 0.95, 0.99, 0.999)]
    assert found == pytest.approx([at_90, at_95, at_99, at_999], abs=6e-4)
    assert students_t(0.5, freedom) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("cycles", [3, 5, 10])
def test_the_mean_of_few_cycles_is_below_what_is_learned_no_more_often_than_stated(cycles: int) -> None:
    """By the normal distribution it was too high after three cycles in one of six runs, not in one of twenty."""
    chance, mean, too_high, runs = random.Random(cycles), 10e6, 0, 4_000
    for _ in range(runs):
        rates = [chance.gauss(mean, 0.05 * mean) for _ in range(cycles)]
        rate = statistics.fmean(rates)
        told = throughput(rate, statistics.pstdev(rates) / rate, cycles)
        learned = learned_capacity([told], 1.0, 1e9, 0.95)
        too_high += learned is not None and learned > mean
    assert too_high / runs == pytest.approx(0.05, abs=0.012)


def test_one_cycle_tells_nothing_of_how_they_vary() -> None:
    assert capacity([throughput(10e6, cycles=1)]) == 1e6


@given(st.lists(throughputs, min_size=1, max_size=5), st.floats(0.5, 0.999))
def test_it_stays_between_floor_and_ceiling(told: list[Throughput], confidence: float) -> None:
    assert 1e6 <= capacity(told, confidence) <= 20e6


@given(st.lists(throughputs, min_size=1, max_size=5), throughputs)
def test_who_else_tells_never_raises_it_but_from_the_floor_of_nobody(told: list[Throughput], other: Throughput) -> None:
    assert capacity([*told, other]) <= capacity(told)
