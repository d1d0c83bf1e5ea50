"""When a quiet period or a schedule holds."""

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from controller.decide.periods import Period, Schedule, over_at, scheduled

WEEKDAYS = Period(cron="0 8 * * MON-FRI", duration_s=3600, time_zone="Europe/Lisbon")


def at(year: int, month: int, day: int, hour: int, minute: int, second: int = 0) -> float:
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("moment", "holds"),
    [
        (at(2026, 7, 1, 6, 59, 59), False),
        (at(2026, 7, 1, 7, 0, 0), True),  # summer time: an hour before UTC
        (at(2026, 7, 1, 7, 59, 59), True),
        (at(2026, 7, 1, 8, 0, 0), False),
        (at(2026, 1, 7, 8, 0, 0) + 0.5, True),
        (at(2026, 7, 4, 7, 30, 0), False),  # a Saturday
    ],
)
def test_a_period_holds_from_its_moment_for_its_duration(moment: float, holds: bool) -> None:
    assert (WEEKDAYS.end(moment) is not None) == holds


def test_a_period_may_go_past_midnight() -> None:
    night = Period(cron="0 22 * * *", duration_s=8 * 3600)
    assert night.end(at(2026, 3, 2, 3, 0)) == at(2026, 3, 2, 6, 0)


def test_of_periods_that_overlap_the_last_to_end_counts() -> None:
    other = Period(cron="30 7 * * *", duration_s=7200)
    moment = at(2026, 7, 1, 7, 45)
    assert over_at((WEEKDAYS, other), moment) == at(2026, 7, 1, 9, 30)
    assert over_at((), moment) is None


def test_of_schedules_that_overlap_the_most_consumers_count() -> None:
    morning = Schedule(cron="0 8 * * *", duration_s=4 * 3600, min_consumers=3)
    rush = Schedule(cron="0 9 * * *", duration_s=3600, min_consumers=8)
    hours = [scheduled((rush, morning), at(2026, 7, 1, hour, 30)) for hour in range(7, 13)]
    assert hours == [0, 3, 8, 3, 3, 0]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"cron": "hourly"}, "'hourly' is no cron expression"),
        ({"cron": "0 0 30 2 *"}, "is no cron expression"),
        ({"cron": "61 * * * *"}, "bad minute"),
        ({"cron": "0 8 * *"}, "five fields"),
        ({"duration_s": 0}, "duration_s"),
        ({"time_zone": "Mars/Olympus"}, "no time zone"),
        ({"time_zone": "../etc/passwd"}, "no time zone"),
        ({"time_zone": ""}, "no time zone"),
    ],
)
def test_what_is_no_period_is_refused(change: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        Period.model_validate({"cron": "0 8 * * *", "duration_s": 60, "time_zone": "UTC"} | change)
