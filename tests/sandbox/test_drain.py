"""A run of `kcga up` ends when all is read, or when nobody reads what is left."""

import pytest

from sandbox.decide.drain import LAG_SETTLES_S, NO_PROGRESS_S, Drain

ENDED = 1_000.0


def test_all_is_read_once_a_lag_of_nothing_counts_the_last_record_in() -> None:
    drain = Drain(ENDED)
    assert not drain.is_over(ENDED, None, None)
    assert not drain.is_over(ENDED + 1, 0, ENDED + 1)
    assert not drain.is_over(ENDED + 9, 0, ENDED + LAG_SETTLES_S)
    assert drain.is_over(ENDED + 9, 0, ENDED + LAG_SETTLES_S + 0.1)


@pytest.mark.parametrize("left", [None, 7])
def test_what_nobody_reads_is_not_waited_for(left: int | None) -> None:
    drain = Drain(ENDED)
    assert not drain.is_over(ENDED, left, ENDED)
    assert not drain.is_over(ENDED + NO_PROGRESS_S - 1, left, ENDED)
    assert drain.is_over(ENDED + NO_PROGRESS_S, left, ENDED)


def test_a_group_that_has_only_begun_is_waited_for_while_readers_come() -> None:
    drain = Drain(ENDED)
    at = ENDED
    for came in ([], [(1, None)], [(1, None), (1, "orders-0")], [(2, None), (1, "orders-0")]):
        assert not drain.is_over(at, None, None, came)
        at += NO_PROGRESS_S - 1
    assert not drain.is_over(at, None, None, [(1, None)])
    assert drain.is_over(at + 1, None, None, [(1, None)]), "it was there before"


def test_a_lag_that_grows_since_more_of_it_is_known_is_waited_for_as_one_that_falls() -> None:
    drain = Drain(ENDED)
    at = ENDED
    for lag in (7_787, 28_236, 21_918, 24_352, 9_000, 1):
        assert not drain.is_over(at, lag, at)
        at += NO_PROGRESS_S - 1
        assert not drain.is_over(at, lag, at)
    assert drain.is_over(at, 0, at)
