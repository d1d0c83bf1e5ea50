"""When a component is begun anew, and when it is given up."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sandbox.decide.back_off import FIRST_WAIT_S, LONGEST_WAIT_S, MOST_FAILURES, STEADY_S, BackOff

SOON = st.floats(0, STEADY_S, exclude_max=True)
LATE = st.floats(STEADY_S, 1e9)


def test_who_ends_soon_waits_longer_each_time_and_is_given_up() -> None:
    back_off = BackOff()
    assert [back_off.wait_s(1.0) for _ in range(MOST_FAILURES)] == [0, 1, 2, 4, 8, None]
    assert FIRST_WAIT_S == 1


@given(st.lists(LATE))
def test_who_ran_for_long_is_begun_anew_at_once_however_often(runs: list[float]) -> None:
    back_off = BackOff()
    assert [back_off.wait_s(ran) for ran in runs] == [0] * len(runs)


@given(st.lists(SOON, max_size=MOST_FAILURES - 1), LATE, st.lists(SOON, max_size=MOST_FAILURES - 2))
def test_a_long_run_makes_good_what_was_before(before: list[float], long: float, after: list[float]) -> None:
    tried, fresh = BackOff(), BackOff()
    for ran in before:
        tried.wait_s(ran)
    assert [tried.wait_s(ran) for ran in [long, *after]] == [fresh.wait_s(ran) for ran in [long, *after]]


@given(st.lists(SOON, min_size=2, max_size=MOST_FAILURES - 1))
def test_no_wait_is_shorter_than_the_one_before_or_longer_than_the_bound(runs: list[float]) -> None:
    back_off = BackOff()
    waits = [back_off.wait_s(ran) for ran in runs]
    known = [wait for wait in waits if wait is not None]
    assert known[0] == 0
    assert all(shorter <= longer <= LONGEST_WAIT_S for shorter, longer in pairwise(known))
    assert len(known) == len(runs)
