"""Recurring times: quiet periods, at which nothing is changed that can stay as it is, and schedules of consumers."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from domain.assignment import HIGHEST_CONSUMER
from domain.moments import Moments

LONGEST_S = 31 * 24 * 3600.0


class Period(Moments):
    """From each moment that a cron expression names, for so long."""

    duration_s: Annotated[float, Field(gt=0, le=LONGEST_S, allow_inf_nan=False)]

    def end(self, at: float) -> float | None:
        """When the period that holds at `at` is over, both in seconds since the epoch; None outside of one."""
        began = self.last(at)
        return began + self.duration_s if began is not None and at < began + self.duration_s else None


class Schedule(Period):
    """While the period holds, a plan has so many consumers at least, as far as there are partitions for them."""

    min_consumers: Annotated[int, Field(ge=1, le=HIGHEST_CONSUMER)]


def scheduled(schedules: Iterable[Schedule], at: float) -> int:
    """The most consumers that schedules which hold at `at`, in seconds since the epoch, want at least; 0 by none."""
    return max((schedule.min_consumers for schedule in schedules if schedule.end(at) is not None), default=0)


def over_at(periods: Iterable[Period], at: float) -> float | None:
    """When the last of the periods that hold at `at` is over, in seconds since the epoch; None where none holds."""
    return max((end for period in periods if (end := period.end(at)) is not None), default=None)
