"""Recurring moments, as cron expressions name them."""

from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError
from pydantic import BaseModel, ConfigDict, field_validator


class Moments(BaseModel):
    """Those of one cron expression."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    cron: str
    """Minute, hour, day of month, month, day of week: `0 8 * * MON-FRI`."""
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
        # Not by asking for it: what the machine does not have is looked for as a module, by whatever name was written.
        if time_zone not in available_timezones():
            raise ValueError(
                f"{time_zone!r} is no time zone of this machine's database: it must be a name such as Europe/Lisbon"
            )
        return time_zone

    def last(self, at: float) -> float | None:
        """The last of them until `at`, and at it; both in seconds since the epoch."""
        return _last(self.cron, self.time_zone, at // 60 * 60)


@lru_cache(maxsize=256)
def _last(cron: str, time_zone: str, minute: float) -> float | None:
    """It is asked for at every turn, and within a minute the same: no time zone is off by seconds since 1972."""
    moment = datetime.fromtimestamp(minute, ZoneInfo(time_zone))
    began = next(CronSim(cron, moment + timedelta(seconds=1), reverse=True), None)
    return None if began is None else began.timestamp()
