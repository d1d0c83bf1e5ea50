"""The message on `controller.decisions`: what was decided, and why."""

from typing import Annotated, Literal

from pydantic import Field

from domain.messages.codec import Count, EpochSeconds, Message, Part, PartitionRef, SpeedBytesPerS
from domain.messages.metadata import ConsumerNumber

Figure = Annotated[float, Field(ge=0)]


class PlannedPartition(PartitionRef):
    """Where a partition goes; `previous` is null where nobody read it."""

    speed: SpeedBytesPerS
    consumer: ConsumerNumber
    previous: ConsumerNumber | None


class PlanFigures(Part):
    """What a plan costs, in consumers: `objective = consumers + lambda * rscore`."""

    consumers: Count
    rscore: Figure
    objective: Figure


class Decision(Message):
    """One passage through Reassign, whether or not it changed anything."""

    kind: Literal["decision"] = "decision"
    number: Count
    """Counts the decisions of an epoch; commands name it as their `plan`."""
    epoch: Count
    decided_at: EpochSeconds
    triggers: tuple[str, ...]
    """Why Sentinel was left, one sentence each."""
    carried_out: bool
    reason: str
    """Why the plan is, or is not, carried out."""
    engine: str
    status: str
    solve_s: Figure
    lower_bound: Figure
    plan: PlanFigures
    keeping: PlanFigures | None
    """What changing nothing would cost; null where it is no choice (a consumer above capacity, a partition unread)."""
    assignment: tuple[PlannedPartition, ...]
