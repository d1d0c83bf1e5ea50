"""What was foreseen, how that came out, and how often it does, in words."""

from domain.messages import Decision, Foresight, PlannedPartition, WriteSpeedReport

LATEST_S = 15.0
"""What is measured later than so long after the moment that was foreseen says nothing of it."""


def foresight_sentence(foresight: Foresight) -> str:
    """How far it looks, and how well it does."""
    return f"looks {foresight.horizon_s:g} s ahead, {foresight.partitions:,} partitions are to grow: {held(foresight)}"


def held(foresight: Foresight) -> str:
    """How often what was foreseen as the most was not exceeded."""
    if foresight.held_share is None:
        return "no forecast was due lately"
    return (
        f"{foresight.held:,} of {foresight.due:,} forecasts held lately, {foresight.held_share:.0%}; "
        f"{foresight.quantile:.0%} are to"
    )


def foreseen(decision: Decision) -> list[PlannedPartition]:
    """The partitions that the plan has grow."""
    return [entry for entry in decision.assignment if entry.foreseen > 0]


def due_at(decision: Decision) -> float | None:
    """When that is to be so, by the monitor's clock; None where nothing is foreseen."""
    if decision.foresight is None or decision.measured_at is None or not foreseen(decision):
        return None
    return decision.measured_at + decision.foresight.horizon_s


def came(decision: Decision, report: WriteSpeedReport) -> float | None:
    """How fast those partitions are written, in bytes/s, where the report is of the moment that was foreseen."""
    due, speeds = due_at(decision), report.speeds.bytes_per_s
    named = {entry.key for entry in foreseen(decision)}
    if due is None or not due <= report.measured_at <= due + LATEST_S or not named <= speeds.keys():
        return None
    return sum(speeds[partition] for partition in named)
