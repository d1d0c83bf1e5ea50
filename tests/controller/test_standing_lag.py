"""What of a lag is a backlog: never more than the lag was in any moment of the last while."""

from hypothesis import given
from hypothesis import strategies as st

from controller.decide.standing_lag import PERIOD_S, StandingLag
from domain.partitions import TopicPartition

P = TopicPartition("orders", 0)


def test_what_a_consumer_gets_rid_of_in_each_cycle_is_no_backlog() -> None:
    lag = StandingLag()
    for second in range(100):
        lag.record(second, {P: 1000.0 * (second % 5)})
    assert lag.of(P) == 0.0


def test_a_lag_that_stays_is_a_backlog_after_two_periods_at_the_latest_and_one_that_falls_counts_at_once() -> None:
    lag = StandingLag()
    for second in range(20):
        lag.record(second, {P: 7.0})
    for second in range(20, 20 + 2 * round(PERIOD_S)):
        lag.record(second, {P: 900.0})
    lag.record(20 + 2 * PERIOD_S, {P: 900.0})
    assert lag.of(P) == 900.0
    lag.record(21 + 2 * PERIOD_S, {P: 100.0})
    assert lag.of(P) == 100.0


def test_the_first_lag_that_is_known_counts() -> None:
    lag = StandingLag()
    assert lag.of(P) is None
    lag.record(0, {P: 5.0})
    assert lag.of(P) == 5.0


def test_a_lag_that_is_not_told_any_more_stays_what_it_was() -> None:
    lag = StandingLag()
    lag.record(0, {P: 5.0})
    for second in range(1, 100):
        lag.record(second, {})
    assert lag.of(P) == 5.0
    lag.forget(P)
    assert lag.of(P) is None


def test_a_clock_that_goes_back_a_little_begins_no_period_and_one_that_goes_back_further_does() -> None:
    lag = StandingLag()
    lag.record(10 * PERIOD_S, {P: 5.0})
    for second in range(1, 9):
        lag.record(10 * PERIOD_S - second % 2, {P: 900.0})
        assert lag.of(P) == 5.0
    for second in range(3 * round(PERIOD_S)):
        lag.record(second, {P: 900.0})
    assert lag.of(P) == 900.0


@given(st.lists(st.tuples(st.floats(0, 20), st.floats(0, 1e12)), min_size=1, max_size=60))
def test_a_backlog_is_the_least_lag_of_one_to_two_periods(steps: list[tuple[float, float]]) -> None:
    lag = StandingLag()
    at, seen = 0.0, list[tuple[float, float]]()
    for passed, behind in steps:
        at += passed
        seen.append((at, behind))
        lag.record(at, {P: behind})
    backlog = lag.of(P)
    assert backlog is not None
    assert backlog <= min((behind for when, behind in seen if when > at - PERIOD_S), default=seen[-1][1])
    # No older than two periods, but for a gap in which nothing was told.
    if all(passed < PERIOD_S for passed, _ in steps):
        assert backlog >= min(behind for when, behind in seen if when >= at - 3 * PERIOD_S)


def test_whoever_has_listened_for_two_periods_remembers_the_same() -> None:
    controller, onlooker = StandingLag(), StandingLag()
    for second in range(100):
        behind = {P: abs(50.0 - second)}
        controller.record(second, behind)
        if second >= 100 - 3 * PERIOD_S:
            onlooker.record(second, behind)
            if second >= 100 - PERIOD_S:
                assert onlooker.of(P) == controller.of(P)
