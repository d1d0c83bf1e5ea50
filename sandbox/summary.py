"""What a run proves: its figures and whether they are as they must be."""

from collections.abc import Mapping
from types import MappingProxyType

from pydantic import BaseModel, ConfigDict

from app import figures
from domain.group_view.view import GroupView
from sandbox.readers import MostReaders


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Check(_Value):
    """One thing that has to hold."""

    name: str
    expected: str
    actual: str
    passed: bool
    detail: str | None = None
    """Where to look, if it failed."""


class ConsumersFrom(_Value):
    """How many consumers there were from a moment on, in seconds since the run began."""

    seconds: float
    consumers: int


class ClassCount(_Value):
    """How many consumers of a class came and read something, and how many of those went while the run lasted."""

    came: int
    went: int


class Summary(_Value):
    """A run in figures, as `--output json` prints it."""

    produced: int
    """Records that the producers had acknowledged; where they were begun anew, those that Kafka holds."""
    distinct: int
    """Records in the lake, each partition and offset counted once."""
    duplicates: int
    """Rows in the lake beyond that."""
    max_readers: int
    """The most readers that a partition had at one time."""
    scale_ups: int
    scale_downs: int
    migrations: int
    rscore: float
    """In consumers, over all plans carried out."""
    highest_lag: int | None
    """In records; null where it was never known."""
    ok: bool
    """All checks passed."""
    seconds: float
    bytes_written: int
    """Uncompressed."""
    decisions: int
    """Those that changed nothing included."""
    most_consumers: int
    consumers_over_time: tuple[ConsumersFrom, ...]
    faults: int = 0
    """Done on purpose."""
    restarts: Mapping[str, int] = {}
    """How many times components were begun anew, by their names; those that never were are left out."""
    classes: Mapping[str, ClassCount] = {}
    """Of consumers that are not ordinary, by their names; those that the settings have."""
    checks: tuple[Check, ...]


def summarize(
    view: GroupView,
    readers: MostReaders,
    *,
    produced: int,
    distinct: int,
    duplicates: int,
    whole_story: bool,
    faults: int = 0,
    restarts: Mapping[str, int] = MappingProxyType({}),
    classes: Mapping[str, ClassCount] = MappingProxyType({}),
) -> Summary:
    """The figures of a run that is over.

    Args:
        view: of all the run's messages.
        readers: of all the run's reports.
        produced: records that the producers had acknowledged.
        distinct: records in the lake, each partition and offset counted once.
        duplicates: rows in the lake beyond that.
        whole_story: the load rose and fell as a whole story does, so that the group must have grown, shrunk and moved,
            and a consumer of each class come and gone.
        faults: that were done on purpose.
        restarts: of components, by their names.
        classes: of consumers that are not ordinary, by their names.
    """
    totals = view.totals
    checks = [
        _check("records in the lake", produced > 0 and distinct == produced, _produced(produced), f"{distinct:,}"),
        _check("duplicates in the lake", duplicates == 0, "0", f"{duplicates:,}"),
        _check("readers at one time", readers.count == 1, "1", f"{readers.count:,}", _readers(readers, view.began)),
    ]
    if whole_story:
        checks += [
            _check("scale-ups", totals.scale_ups >= 1, "1 or more", f"{totals.scale_ups:,}"),
            _check("scale-downs", totals.scale_downs >= 1, "1 or more", f"{totals.scale_downs:,}"),
            _check("migrations", totals.migrations >= 1, "1 or more", f"{totals.migrations:,}"),
            *(
                _check(
                    f"{name} consumers",
                    count.went >= 1,
                    "1 or more that came and went",
                    f"{count.came:,} came, {count.went:,} went",
                )
                for name, count in classes.items()
            ),
        ]
    return Summary(
        produced=produced,
        distinct=distinct,
        duplicates=duplicates,
        max_readers=readers.count,
        scale_ups=totals.scale_ups,
        scale_downs=totals.scale_downs,
        migrations=totals.migrations,
        rscore=totals.rscore,
        highest_lag=view.highest_lag,
        ok=all(check.passed for check in checks),
        seconds=view.elapsed_s,
        bytes_written=view.bytes_written,
        decisions=len(view.decisions),
        most_consumers=max((int(sample.value) for sample in view.consumers_over_time), default=0),
        consumers_over_time=tuple(
            ConsumersFrom(seconds=max(0.0, sample.at - view.began), consumers=int(sample.value))
            for sample in view.consumers_over_time
        ),
        faults=faults,
        restarts=dict(restarts),
        classes=dict(classes),
        checks=tuple(checks),
    )


def _check(name: str, passed: bool, expected: str, actual: str, detail: str | None = None) -> Check:
    return Check(name=name, expected=expected, actual=actual, passed=passed, detail=None if passed else detail)


def _produced(produced: int) -> str:
    return f"{produced:,}, as produced" if produced else "more than 0"


def _readers(readers: MostReaders, began: float) -> str:
    if readers.at is None:
        return "no consumer has reported that it read anything"
    who = ", ".join(map(str, readers.readers))
    return f"{readers.readers[0].partition} at {figures.clock(readers.at - began)}: {who}"
