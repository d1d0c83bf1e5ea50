"""The message on `controller.decisions`: what was decided, and why."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from domain.messages.codec import Count, EpochSeconds, Message, Part, PartitionRef, SpeedBytesPerS, Topic, Words
from domain.messages.metadata import ConsumerNumber, ConsumersByClass, Foresight

Figure = Annotated[float, Field(ge=0, le=1e100)]


class DecisionKind(StrEnum):
    """On what grounds the assignment was considered."""

    FORCED = "forced"
    """It could not stay as it was: a consumer above its capacity, a partition without one, a rule that is broken."""
    VOLUNTARY = "voluntary"
    """It could stay, and something cheaper was looked for."""
    MANUAL = "manual"
    """An operator asked for a plan."""


class Restraint(StrEnum):
    """What can hold a plan back."""

    NOT_BETTER = "not better"
    RULES = "rules"
    """It breaks one: the most consumers, or another that the engine did not keep."""
    CREATION = "failed creation"
    """It has no more consumers than could be created, and they do not suffice."""
    PAUSED = "paused"
    QUIET = "quiet period"
    MISSING_DATA = "missing data"
    WINDOW = "scale-down window"
    BUDGET = "migration budget"


class HeldBack(Part):
    """One thing that held the plan back, and a sentence that says why."""

    by: Restraint
    why: Words


class PlannedPartition(PartitionRef):
    """Where a partition goes; `previous` is null where nobody read it."""

    speed: SpeedBytesPerS
    """What it was planned with: its write speed and, where backlogs count, what it takes to drain its own in time."""
    backlog: SpeedBytesPerS = 0.0
    """The latter part of `speed`."""
    foreseen: SpeedBytesPerS = 0.0
    """What of `speed` is not there yet, and is to come within the horizon of `foresight`."""
    consumer: ConsumerNumber
    previous: ConsumerNumber | None
    reason: Words | None = None
    """Why it goes to another consumer than before; null where it stays."""


class PlanFigures(Part):
    """What a plan costs, in ordinary consumers: `objective = cost + lambda * rscore`."""

    consumers: Count
    rscore: Figure
    objective: Figure
    price: Figure | None = None
    """Of all consumers, in ordinary ones; null where there are no others."""

    @property
    def cost(self) -> float:
        """Of all consumers, in ordinary ones."""
        return self.consumers if self.price is None else self.price


class SaturatedPartition(PartitionRef):
    """A partition that is faster than a consumer: no plan can keep up with it."""

    speed: SpeedBytesPerS
    partitions_needed: Count
    """How many partitions its topic would need so that each part of this one fits a consumer as plans fill it."""


class Shortfall(Part):
    """The rules cannot all be kept."""

    excess: Figure
    """What is above the consumers' capacities, over all of them, in bytes/s."""
    reason: Words


class Asked(Part):
    """When a controller put its question, and what it had taken in by then."""

    at: EpochSeconds
    heard_to: Count
    """The offset of partition 0 of `consumer.metadata` before which it had heard everything."""
    speeds_heard_to: Count
    """The same of `monitor.writeSpeed`."""


class Decision(Message):
    """One passage through Reassign, whether or not it changed anything."""

    kind: Literal["decision"] = "decision"
    number: Count
    """Counts the decisions of an epoch; commands name it as their `plan`."""
    epoch: Count
    decided_at: EpochSeconds
    asked: Asked | None = None
    """What it rests on; null in records of version 0.1."""
    triggers: tuple[Words, ...]
    """Why Sentinel was left, one sentence each."""
    grounds: DecisionKind | None = None
    carried_out: bool
    reason: Words
    """Why the plan is, or is not, carried out."""
    held_back: tuple[HeldBack, ...] = ()
    """All that would have held the plan back, where it is not carried out."""
    measured_at: EpochSeconds | None = None
    """When the newest of the speeds that were planned with was measured."""
    window_s: Figure | None = None
    """The plan is for the highest speeds of a window so long; null where it is for the present ones."""
    capacity: SpeedBytesPerS | None = None
    """What a consumer reads at most, in bytes/s."""
    packing_capacity: SpeedBytesPerS | None = None
    """What a plan gives a consumer at most, in bytes/s."""
    recovery_time_s: Figure | None = None
    """Within what time backlogs are to be drained; null where they do not count."""
    migration_weight: Figure | None = None
    """Lambda."""
    engine: Words
    status: Words
    solve_s: Figure
    lower_bound: Figure
    gap: Figure | None = None
    """How far, at most, the plan's objective is above the optimum, as a share of it."""
    plan: PlanFigures
    keeping: PlanFigures | None
    """What changing nothing would cost; null where it is no choice."""
    not_keepable: tuple[Words, ...] = ()
    """Why changing nothing is no choice, a sentence for each rule that it breaks; at most a few."""
    lost: tuple[ConsumerNumber, ...] = ()
    """The consumers that are gone, and that read partitions which nobody reads since."""
    shortfall: Shortfall | None = None
    saturated: tuple[SaturatedPartition, ...] = ()
    consumers_before: Count | None = None
    """By the plan before, with those that were lost since; null in records of version 0.1."""
    price_before: Figure | None = None
    """What those cost, in ordinary consumers; null where there are no others."""
    classes: ConsumersByClass = Field(default_factory=dict)
    """Of the consumers that the plan gives partitions."""
    parked: dict[Topic, Words] = Field(default_factory=dict)
    """Topics that the plan leaves out, because their tables take nothing, and what these say."""
    foresight: Foresight | None = None
    """How far ahead the plan looks; null where it does not."""
    assignment: tuple[PlannedPartition, ...]

    @property
    def found(self) -> int:
        """How many consumers there were for the group's partitions: a plan with more is a scale-up, unless it is 0."""
        if self.consumers_before is not None:
            return self.consumers_before
        return len({*self.lost, *(entry.previous for entry in self.assignment)} - {None})

    @property
    def shrinks(self) -> bool:
        """Whether the plan's consumers cost less than those that there were."""
        return self.plan.cost < (self.found if self.price_before is None else self.price_before)

    @property
    def migrations(self) -> int:
        """How many partitions have a reader, and get another one by the plan."""
        return sum(entry.previous not in (None, entry.consumer) for entry in self.assignment)
