"""A deadline is a moment on a clock that is handed in."""

import math

from solver.deadline import Deadline


class Clock:
    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_what_remains_falls_with_the_clock_and_is_never_below_nothing() -> None:
    clock = Clock(100.0)
    deadline = Deadline.after(10.0, clock)
    assert (deadline.remaining, deadline.passed) == (10.0, False)
    clock.now = 109.5
    assert (deadline.remaining, deadline.passed) == (0.5, False)
    clock.now = 110.0
    assert (deadline.remaining, deadline.passed) == (0.0, True)
    clock.now = 200.0
    assert (deadline.remaining, deadline.passed) == (0.0, True)


def test_a_part_of_the_time_is_over_no_later_than_the_whole() -> None:
    clock = Clock(100.0)
    deadline = Deadline.after(10.0, clock)
    assert deadline.within(3.0).at == 103.0
    assert deadline.within(30.0).at == 110.0
    clock.now = 108.0
    assert deadline.within(3.0).at == 110.0
    assert deadline.within(3.0).clock is clock


def test_an_earlier_deadline_leaves_time_to_the_rest() -> None:
    clock = Clock(100.0)
    earlier = Deadline.after(10.0, clock).earlier(4.0)
    assert earlier.remaining == 6.0
    clock.now = 106.0
    assert earlier.passed


def test_a_clock_that_is_set_to_the_end_of_time_passes_every_deadline_that_was_handed_down() -> None:
    clock = Clock(0.0)
    deadlines = [
        Deadline.after(1e9, clock),
        Deadline.after(1e9, clock).within(1e8),
        Deadline.after(1e9, clock).earlier(1),
    ]
    assert not any(deadline.passed for deadline in deadlines)
    clock.now = math.inf
    assert all(deadline.passed and deadline.remaining == 0.0 for deadline in deadlines)
