"""What the controller's decisions add up to: plans carried out, scale-ups and scale-downs, migrations, Rscore.

A decision counts once, and at its place by epoch and number, whenever and however often its message comes.
"""

import math
from bisect import insort
from collections.abc import Mapping
from dataclasses import dataclass, field

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
    """Consumers that had a partition when it was decided."""

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
            migrations=sum(entry.previous not in (None, entry.consumer) for entry in decision.assignment),
            found=len({entry.previous for entry in decision.assignment} - {None}),
        )


@dataclass(frozen=True, slots=True)
class Planned:
    """What the newest plan carried out says of a partition."""

    consumer: ConsumerId
    previous: ConsumerId | None
    """Who read it when that was decided."""


@dataclass(frozen=True, slots=True)
class DecisionTotals:
    """Sums over the decisions that were carried out."""

    scale_ups: int = 0
    scale_downs: int = 0
    migrations: int = 0
    rscore: float = 0.0
    """In consumers."""

    def __add__(self, other: "DecisionTotals") -> "DecisionTotals":
        return DecisionTotals(
            self.scale_ups + other.scale_ups,
            self.scale_downs + other.scale_downs,
            self.migrations + other.migrations,
            self.rscore + other.rscore,
        )


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
        self._forgotten = DecisionTotals()
        """What the decisions that are no longer remembered add up to."""
        self._forgotten_to = (-1, -1)
        """The last of them."""
        self._consumers_before: int | None = None
        """Of the last plan among them that was carried out."""

    def add(self, decision: Decision) -> None:
        """Takes a decision in; one that is known, or from before those that are remembered, changes nothing."""
        place = (decision.epoch, decision.number)
        if place in self._known or place <= self._forgotten_to:
            return
        self._known.add(place)
        insort(self._records, DecisionRecord.of(decision))
        while len(self._records) > self._kept:
            self._forget(self._records.pop(0))
        if not decision.carried_out:
            return
        self._totals = self._forgotten + totals(self._records, self._consumers_before)
        if place > self._plan_of:
            self._plan_of = place
            self._plan = {entry.key: Planned(entry.consumer, entry.previous) for entry in decision.assignment}
            self._planned_consumers = frozenset(entry.consumer for entry in decision.assignment)

    def _forget(self, record: DecisionRecord) -> None:
        self._forgotten_to = (record.epoch, record.number)
        self._known.discard(self._forgotten_to)
        if record.carried_out:
            self._forgotten += totals([record], self._consumers_before)
            self._consumers_before = record.consumers

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


def totals(records: list[DecisionRecord], consumers_before: int | None = None) -> DecisionTotals:
    """The sums over `records`, which must be in the order in which they were decided.

    A scale-up is a plan with more consumers than the plan carried out before it (`consumers_before`, for the first
    one); where there is none before, the first one is compared with the consumers that it found. A plan that finds
    none is the start of the group, not a scale-up.
    """
    carried_out = [record for record in records if record.carried_out]
    before = [record.consumers for record in carried_out]
    first = (consumers_before or carried_out[0].found or carried_out[0].consumers) if carried_out else 0
    before = [first, *before[:-1]] if carried_out else []
    changes = [record.consumers - had for record, had in zip(carried_out, before, strict=True)]
    return DecisionTotals(
        scale_ups=sum(change > 0 for change in changes),
        scale_downs=sum(change < 0 for change in changes),
        migrations=sum(record.migrations for record in carried_out),
        rscore=math.fsum(record.rscore for record in carried_out),
    )
