"""What the controller's decisions add up to: plans carried out, scale-ups and scale-downs, migrations, Rscore.

A decision counts once, and at its place by epoch and number, whenever and however often its message comes.
"""

from bisect import insort
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field

from domain.assignment import ConsumerId
from domain.messages import Decision
from domain.partitions import TopicPartition


@dataclass(frozen=True, slots=True, order=True)
class DecisionRecord:
    """One decision without its assignment; ordered by epoch, then number."""

    epoch: int
    number: int
    decided_at: float = field(compare=False)
    """Seconds since the epoch (of time)."""
    triggers: tuple[str, ...] = field(compare=False)
    carried_out: bool = field(compare=False)
    reason: str = field(compare=False)
    consumers: int = field(compare=False)
    """Of the plan."""
    rscore: float = field(compare=False)
    """Of the plan, in consumers."""
    migrations: int = field(compare=False)
    """Partitions that have a reader and get another one by the plan."""
    found: int = field(compare=False)
    """Consumers that there were before."""

    @classmethod
    def of(cls, decision: Decision) -> "DecisionRecord":
        return cls(
            epoch=decision.epoch,
            number=decision.number,
            decided_at=decision.decided_at,
            triggers=decision.triggers,
            carried_out=decision.carried_out,
            reason=decision.reason,
            consumers=decision.plan.consumers,
            rscore=decision.plan.rscore,
            migrations=decision.migrations,
            found=decision.found,
        )


@dataclass(frozen=True, slots=True)
class Planned:
    """What the newest plan carried out says of a partition."""

    consumer: ConsumerId
    previous: ConsumerId | None
    """Who read it when that was decided."""


@dataclass(frozen=True, slots=True)
class DecisionTotals:
    """Sums over decisions: changes, and what they cost, count of those that were carried out."""

    carried_out: int = 0
    held_back: int = 0
    scale_ups: int = 0
    scale_downs: int = 0
    migrations: int = 0
    rscore: float = 0.0
    """In consumers."""
    solve_s: float = 0.0

    @classmethod
    def of(cls, decision: Decision) -> "DecisionTotals":
        if not decision.carried_out:
            return cls(held_back=1, solve_s=decision.solve_s)
        return cls(
            carried_out=1,
            scale_ups=0 < decision.found < decision.plan.consumers,
            scale_downs=decision.plan.consumers < decision.found,
            migrations=decision.migrations,
            rscore=decision.plan.rscore,
            solve_s=decision.solve_s,
        )

    def __add__(self, other: "DecisionTotals") -> "DecisionTotals":
        return DecisionTotals(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))


class DecisionLog:
    """The decisions so far, in the order in which they were made.

    Args:
        kept: so many are remembered one by one; of those before them only what they add up to.
    """

    def __init__(self, kept: int = 5_000) -> None:
        self._kept = kept
        self._records: list[DecisionRecord] = []
        self._known: set[tuple[int, int]] = set()
        self._plan: Mapping[TopicPartition, Planned] = {}
        self._plan_of = (-1, -1)
        self._planned_consumers: frozenset[ConsumerId] = frozenset()
        self._totals = DecisionTotals()
        self._forgotten_to = (-1, -1)
        """The last of those that are no longer remembered."""

    def add(self, decision: Decision) -> None:
        """Takes a decision in; one that is known, or from before those that are remembered, changes nothing."""
        place = (decision.epoch, decision.number)
        if place in self._known or place <= self._forgotten_to:
            return
        self._known.add(place)
        insort(self._records, DecisionRecord.of(decision))
        self._totals += DecisionTotals.of(decision)
        if len(self._records) > self._kept:
            oldest = self._records.pop(0)
            self._forgotten_to = (oldest.epoch, oldest.number)
            self._known.discard(self._forgotten_to)
        if decision.carried_out and place > self._plan_of:
            self._plan_of = place
            self._plan = {entry.key: Planned(entry.consumer, entry.previous) for entry in decision.assignment}
            self._planned_consumers = frozenset(entry.consumer for entry in decision.assignment)

    @property
    def records(self) -> tuple[DecisionRecord, ...]:
        """In ascending order of epoch and number."""
        return tuple(self._records)

    @property
    def plan(self) -> Mapping[TopicPartition, Planned]:
        """The newest plan carried out; empty before the first."""
        return self._plan

    @property
    def planned_consumers(self) -> frozenset[ConsumerId]:
        """Those that the newest plan carried out gives something."""
        return self._planned_consumers

    @property
    def totals(self) -> DecisionTotals:
        return self._totals
