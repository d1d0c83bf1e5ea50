"""Recurring times: quiet periods, at which nothing is changed that can stay as it is, and schedules of consumers."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from pydantic import BaseModel, ConfigDict, Field, field_validator

from domain.assignment import HIGHEST_CONSUMER

LONGEST_S = 31 * 24 * 3600.0


class Period(BaseModel):
    """From each moment that a cron expression names, for so long."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cron: str
    """Minute, hour, day of month, month, day of week: `0 8 * * MON-FRI`."""
    duration_s: Annotated[float, Field(gt=0, le=LONGEST_S, allow_inf_nan=False)]
    time_zone: str = "UTC"
    """Of the hours in `cron`, by its name in the time zone database: `Europe/Lisbon`."""

    @field_validator("cron")
    @classmethod
    def _is_expression(cls, cron: str) -> str:
        try:
            if len(cron.split()) != 5:
                raise CronSimError("it must have five fields")
            # Some expressions are well-formed and name no moment at all, such as 30 February.
            next(CronSim(cron, datetime(2024, 1, 1)))
        except (CronSimError, StopIteration) as error:
            why = str(error) or "it names no moment"
            raise ValueError(
                f"{cron!r} is no cron expression ({why[0].lower()}{why[1:]}): it must name minute, hour, day of month, "
                "month and day of week, such as 0 8 * * MON-FRI"
            ) from error
        return cron

    @field_validator("time_zone")
    @classmethod
    def _is_known(cls, time_zone: str) -> str:
        try:
            ZoneInfo(time_zone)
        except (OSError, ValueError, LookupError) as error:
            raise ValueError(
                f"{time_zone!r} is no time zone of this machine's database: it must be a name such as Europe/Lisbon"
            ) from error
        return time_zone

    def end(self, at: float) -> float | None:
        """When the period that holds at `at` is over, both in seconds since the epoch; None outside of one."""
        moment = datetime.fromtimestamp(at, ZoneInfo(self.time_zone)).replace(microsecond=0)
        began = next(CronSim(self.cron, moment + timedelta(seconds=1), reverse=True), None)
        if began is None:
            return None
        end = began.timestamp() + self.duration_s
        return end if at < end else None


class Schedule(Period):
    """While the period holds, a plan has so many consumers at least, as far as there are partitions for them."""

    min_consumers: Annotated[int, Field(ge=1, le=HIGHEST_CONSUMER)]


def scheduled(schedules: Iterable[Schedule], at: float) -> int:
    """The most consumers that schedules which hold at `at`, in seconds since the epoch, want at least; 0 by none."""
    return max((schedule.min_consumers for schedule in schedules if schedule.end(at) is not None), default=0)


def over_at(periods: Iterable[Period], at: float) -> float | None:
    """When the last of the periods that hold at `at` is over, in seconds since the epoch; None where none holds."""
    return max((end for period in periods if (end := period.end(at)) is not None), default=None)
