"""The queues of the simulation, on cases that can be worked out by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.latency.queues import NOBODY, Delays, Figures, Queues, Readers, delays, fair_shares

TICK_S = 0.5


def flow(speeds: list[float], readers: list[int], seconds: float, queues: Queues) -> None:
    for _ in range(round(seconds / TICK_S)):
        queues.advance(np.array(speeds), np.array(readers))


def waits(queues: Queues, since: int = 0) -> Delays:
    return delays(queues.written, queues.read, TICK_S, since)


def test_what_all_want_is_given_where_there_is_enough() -> None:
    assert fair_shares(np.array([1.0, 2.0]), 3.0).tolist() == [1.0, 2.0]


def test_who_wants_more_gets_the_same_as_all_others_who_do() -> None:
    assert fair_shares(np.array([9.0, 1.0, 5.0]), 9.0).tolist() == [4.0, 1.0, 4.0]


def test_a_consumer_that_keeps_up_makes_nothing_wait() -> None:
    queues = Queues(2, 20, TICK_S, capacity=3.0)
    flow([1.0, 2.0], [1, 1], 10, queues)
    assert waits(queues).quantile(0.999) == 0.0
    assert queues.backlog.tolist() == [0.0, 0.0]


def test_behind_a_consumer_that_is_half_as_fast_the_wait_grows_by_a_second_each_second_of_reading() -> None:
    # Byte v is written at v / 2 and read at v: it waits for v / 2, from 0 to 10 s over the 20 bytes.
    queues = Queues(1, 40, TICK_S, capacity=1.0)
    flow([2.0], [1], 10, queues)
    flow([0.0], [1], 10, queues)
    assert waits(queues).quantile(0.5) == pytest.approx(5.0, abs=2e-3)
    assert waits(queues).quantile(0.99) == pytest.approx(9.9, abs=2e-3)


def test_what_is_written_while_nobody_reads_waits_until_it_is_caught_up() -> None:
    # Nobody reads for 10 s. Then byte v, written at v, is read at 10 + v / 2 until both curves meet at 20 s.
    queues = Queues(1, 80, TICK_S, capacity=2.0)
    flow([1.0], [NOBODY], 10, queues)
    assert queues.backlog.tolist() == [10.0]
    flow([1.0], [1], 30, queues)
    assert queues.backlog.tolist() == [0.0]
    of_twenty_in_forty = 0.5
    assert waits(queues).quantile(of_twenty_in_forty) == pytest.approx(0.0, abs=2e-3)
    assert waits(queues).quantile(0.75) == pytest.approx(5.0, abs=2e-3)
    assert waits(queues).quantile(1.0) == pytest.approx(10.0, abs=2e-3)


def test_what_is_never_read_counts_with_its_age() -> None:
    queues = Queues(1, 20, TICK_S, capacity=1.0)
    flow([1.0], [NOBODY], 10, queues)
    assert waits(queues).quantile(0.5) == pytest.approx(5.0, abs=2e-3)


def test_only_what_is_written_after_the_warm_up_counts() -> None:
    queues = Queues(1, 60, TICK_S, capacity=10.0)
    flow([1.0], [NOBODY], 10, queues)
    flow([1.0], [1], 20, queues)
    assert waits(queues, since=40).quantile(0.999) == 0.0


def test_a_partition_to_which_nothing_is_written_for_a_while_makes_nothing_wait() -> None:
    queues = Queues(1, 60, TICK_S, capacity=1.0)
    flow([1.0], [1], 10, queues)
    flow([0.0], [1], 10, queues)
    flow([1.0], [1], 10, queues)
    assert waits(queues).quantile(0.999) == 0.0


def test_the_monitor_sees_the_mean_of_its_window() -> None:
    queues = Queues(1, 100, TICK_S, capacity=9.0)
    flow([1.0], [1], 20, queues)
    flow([4.0], [1], 10, queues)
    assert queues.speeds(30.0).tolist() == [2.0]
    assert queues.speeds(10.0).tolist() == [4.0]


def test_what_is_read_and_not_committed_counts_as_lag_by_the_commits() -> None:
    queues = Queues(1, 20, TICK_S, capacity=9.0)
    flow([2.0], [1], 10, queues)
    assert queues.backlog.tolist() == [0.0]
    assert queues.uncommitted(4.0).tolist() == [8.0]


@st.composite
def runs(draw: st.DrawFn) -> list[tuple[list[float], Readers]]:
    speed = st.integers(0, 5).map(float)
    reader = st.sampled_from([NOBODY, 1, 2])
    tick = st.tuples(st.lists(speed, min_size=3, max_size=3), st.lists(reader, min_size=3, max_size=3).map(np.array))
    return draw(st.lists(tick, min_size=1, max_size=30))


@settings(deadline=None)
@given(runs())
def test_no_consumer_reads_more_than_it_can_and_nothing_is_read_before_it_is_written(
    ticks: list[tuple[list[float], Readers]],
) -> None:
    queues = Queues(3, len(ticks), TICK_S, capacity=2.0)
    for speeds, readers in ticks:
        queues.advance(np.array(speeds), readers)
    reading = np.diff(queues.read, axis=0)
    for now, (_, readers) in enumerate(ticks):
        assert reading[now][readers == NOBODY].sum() == 0.0
        for consumer in (1, 2):
            assert reading[now][readers == consumer].sum() <= 2.0 * TICK_S * (1 + 1e-9)
    assert (queues.read <= queues.written).all()


def moment_of(curve: Figures, level: float) -> float:
    """When a curve passes a level that is none of its corners; the end of the run where it does not."""
    for tick in range(len(curve) - 1):
        if curve[tick] < level <= curve[tick + 1]:
            return TICK_S * float(tick + (level - curve[tick]) / (curve[tick + 1] - curve[tick]))
    return TICK_S * (len(curve) - 1)


@settings(deadline=None)
@given(runs(), st.sampled_from([0.1, 0.5, 0.9, 0.99]))
def test_the_quantile_is_that_of_all_bytes_one_by_one(ticks: list[tuple[list[float], Readers]], share: float) -> None:
    queues = Queues(3, len(ticks), TICK_S, capacity=2.0)
    for speeds, readers in ticks:
        queues.advance(np.array(speeds), readers)
    each = []
    for written, read in zip(queues.written.T, queues.read.T, strict=True):
        levels = np.arange(0.005, written[-1], 0.01)
        each += [moment_of(read, level) - moment_of(written, level) for level in levels]
    if not each:
        return
    exact = waits(queues).quantile(share)
    ordered = np.sort(each)
    near = 0.01 * len(each) + 2
    low = ordered[max(0, int(share * len(each) - near))]
    high = ordered[min(len(each) - 1, int(share * len(each) + near))]
    assert low - 0.01 <= exact <= high + 0.01
