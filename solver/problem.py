"""What is to be solved: the packing problem of one iteration."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from domain.assignment import Assignment, ConsumerId
from domain.partitions import TopicPartition
from domain.speeds import require_speed


class ProblemError(ValueError):
    """A problem that says nothing that could be solved: a value is outside its range, or two of them disagree."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Minimise `consumers + migration_weight * Rscore` over the assignments that give each partition one consumer.

    The paper's model (section Problem Formulation) with a price on migration. No consumer is given more than its
    capacity, unless a single partition is more than that: such a partition has a consumer of its own and is reported
    as saturated.

    Raises:
        ProblemError: a value is outside its range, or two of them disagree.
    """

    speeds: Mapping[TopicPartition, float]
    """Bytes/s of every partition that must have a consumer."""
    capacity: float
    """What a consumer reads at most, in bytes/s, unless `capacities` says less. The Rscore is in this unit."""
    current: Assignment = field(default_factory=Assignment)
    """Who reads what now; partitions that have no speed here are left aside."""
    migration_weight: float = 0.5
    """Lambda, in consumers per unit of Rscore."""
    first_consumer: ConsumerId = 1
    """The lowest number that a new consumer may have."""
    time_limit_s: float = 1.0
    """Of the whole call."""
    absolute_gap: float = 0.0
    """In consumers: an exact engine is done with a plan whose objective is above the optimum by no more than this."""
    seed: int = 0
    packing_capacity: float | None = None
    """What a consumer that is given a partition may hold afterwards, in bytes/s; `capacity` where there is none.

    A consumer that only keeps what it has may be full up to `capacity`, and a partition that has a consumer to itself
    may be as fast as that: room is left for growth without anything being moved for it. A consumer with a capacity of
    its own is packed to the same share of it.
    """
    capacities: Mapping[ConsumerId, float] = field(default_factory=dict)
    """Bytes/s of the consumers whose capacity is lower, as where a part of what they read is not known."""
    min_consumers: int = 0
    """At least this many consumers have a partition, as far as there are partitions."""
    max_consumers: int | None = None
    """At most this many consumers have a partition."""
    pinned: Mapping[TopicPartition, ConsumerId] = field(default_factory=dict)
    """Partitions that must be on one consumer, whoever reads them now."""
    immovable: frozenset[TopicPartition] = frozenset()
    """Partitions that must stay where they are, if they are anywhere."""

    def __post_init__(self) -> None:
        for partition, speed in self.speeds.items():
            try:
                require_speed(speed, partition)
            except ValueError as error:
                raise ProblemError(str(error)) from None
        _require(self.capacity > 0, "capacity", self.capacity, "a number of bytes/s above 0")
        for consumer, capacity in self.capacities.items():
            right = f"a number of bytes/s above 0 and not above capacity, {self.capacity}"
            _require(0 < capacity <= self.capacity, f"the capacity of consumer {consumer}", capacity, right)
        if self.packing_capacity is not None:
            right = f"a number of bytes/s above 0 and not above capacity, {self.capacity}"
            _require(0 < self.packing_capacity <= self.capacity, "packing_capacity", self.packing_capacity, right)
        _require(self.migration_weight >= 0, "migration_weight", self.migration_weight, "a number, 0 or more")
        _require(self.time_limit_s > 0, "time_limit_s", self.time_limit_s, "a number of seconds above 0")
        _require(self.absolute_gap >= 0, "absolute_gap", self.absolute_gap, "a number of consumers, 0 or more")
        _require(self.min_consumers >= 0, "min_consumers", self.min_consumers, "0 or more")
        if self.max_consumers is not None:
            right = f"at least 1 and at least min_consumers, {self.min_consumers}"
            _require(self.max_consumers >= max(1, self.min_consumers), "max_consumers", self.max_consumers, right)
        for partition, consumer in sorted(self.pinned.items()):
            if partition in self.immovable and self.current.get(partition, consumer) != consumer:
                raise ProblemError(
                    f"{partition} is pinned to consumer {consumer} and must not leave consumer "
                    f"{self.current[partition]}: it must be one of the two"
                )

    @property
    def is_plain(self) -> bool:
        """Whether it is the paper's problem: equal consumers, as many as it takes, and every partition may move."""
        return (
            (self.packing_capacity is None or self.packing_capacity == self.capacity)
            and all(capacity == self.capacity for capacity in self.capacities.values())
            and self.min_consumers <= 1
            and self.max_consumers is None
            and not self.fixed
        )

    @property
    def fixed(self) -> dict[TopicPartition, ConsumerId]:
        """The partitions that can be on one consumer only, and which: those pinned, and those that must not move."""
        fixed = {p: self.current[p] for p in self.immovable if p in self.current and p in self.speeds}
        fixed.update((p, consumer) for p, consumer in self.pinned.items() if p in self.speeds)
        return fixed

    def capacity_of(self, consumer: ConsumerId) -> float:
        """What `consumer` reads at most, in bytes/s."""
        return self.capacities.get(consumer, self.capacity)

    def packing_capacity_of(self, consumer: ConsumerId) -> float:
        """What `consumer` may hold after it was given a partition, in bytes/s."""
        if self.packing_capacity is None:
            return self.capacity_of(consumer)
        return self.capacity_of(consumer) * (self.packing_capacity / self.capacity)


def _require(holds: bool, name: str, value: float, right: str) -> None:
    if not (holds and math.isfinite(value)):
        raise ProblemError(f"{name} is {value}: it must be {right}")
