"""The moment by which a call must have answered, handed down to everything that takes time."""

import time
from collections.abc import Callable
from dataclasses import dataclass

now = time.perf_counter
"""Seconds on the clock of deadlines."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment on a clock."""

    at: float
    """Seconds on `clock`."""
    clock: Callable[[], float] = now

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = now) -> "Deadline":
        return cls(clock() + seconds, clock)

    @property
    def remaining(self) -> float:
        """Seconds that are left, 0 or more."""
        return max(0.0, self.at - self.clock())

    @property
    def passed(self) -> bool:
        return self.clock() >= self.at

    def earlier(self, seconds: float) -> "Deadline":
        """The same, `seconds` before: what is left to a part of the work when the rest takes that long."""
        return Deadline(self.at - seconds, self.clock)

    def within(self, seconds: float) -> "Deadline":
        """At most `seconds` from now."""
        return Deadline(min(self.at, self.clock() + seconds), self.clock)
