"""What is to be solved: the packing problem of one iteration."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from domain.assignment import Assignment, ConsumerId
from domain.consumer_class import ORDINARY, ConsumerClass
from domain.partitions import TopicPartition
from domain.speeds import require_speed

LOAD_TOLERANCE = 1e-9
"""What a load may be above a capacity, as a share of it, and be taken as equal: sums of floats are no exact sums."""


class ProblemError(ValueError):
    """A problem that says nothing that could be solved: a value is outside its range, or two of them disagree."""


@dataclass(frozen=True)
class Problem:
    """Minimise `consumers + migration_weight * Rscore` over the assignments that give each partition one consumer.

    The paper's model (section Problem Formulation) with a price on migration. No consumer is given more than its
    capacity, unless a single partition is more than that: such a partition has a consumer of its own and is reported
    as saturated.

    With `classes`, each consumer counts as its price, and a plan chooses the class of each new one: the cheapest that
    may hold what it is given. A partition is saturated where no class is as fast, and has one of the largest. A new
    consumer that partitions are pinned to is of the cheapest class that may hold these.

    Raises:
        ProblemError: a value is outside its range, or two of them disagree.
    """

    speeds: Mapping[TopicPartition, float]
    """Bytes/s of every partition that must have a consumer."""
    capacity: float
    """What an ordinary consumer reads at most, in bytes/s, unless `capacities` says less; the unit of the Rscore."""
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
    its own is packed to the same share of it, and so is one of another class.
    """
    capacities: Mapping[ConsumerId, float] = field(default_factory=dict)
    """Bytes/s of the consumers whose capacity is lower than that of their class, as where a part of what they read is
    not known."""
    classes: tuple[ConsumerClass, ...] = ()
    """What consumers there may be beside ordinary ones, which have `capacity` and a price of 1."""
    class_names: Mapping[ConsumerId, str] = field(default_factory=dict)
    """The class of each consumer that there is; those in `current` that are left out are ordinary."""
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
        self._require_classes()
        for consumer, capacity in self.capacities.items():
            right = f"a number of bytes/s above 0 and not above that of its class, {self._class(consumer).capacity}"
            within = 0 < capacity <= self._class(consumer).capacity
            _require(within, f"the capacity of consumer {consumer}", capacity, right)
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

    def _require_classes(self) -> None:
        names = [each.name for each in self.every_class]
        for each in self.classes:
            if names.count(each.name) > 1:
                raise ProblemError(f"there are two classes {each.name!r}: each must have a name of its own")
            _require(each.capacity > 0, f"the capacity of {each.name}", each.capacity, "a number of bytes/s above 0")
            _require(each.price > 0, f"the price of {each.name}", each.price, "a number of consumers above 0")
        for consumer, name in self.class_names.items():
            if name not in names:
                raise ProblemError(
                    f"consumer {consumer} is of the class {name!r}: it must be one of {', '.join(names)}"
                )

    @property
    def is_plain(self) -> bool:
        """Whether it is the paper's problem: equal consumers, as many as it takes, and every partition may move."""
        return (
            not self.classes
            and (self.packing_capacity is None or self.packing_capacity == self.capacity)
            and all(capacity == self.capacity for capacity in self.capacities.values())
            and self.min_consumers <= 1
            and self.max_consumers is None
            and not self.fixed
        )

    @cached_property
    def fixed(self) -> Mapping[TopicPartition, ConsumerId]:
        """The partitions that can be on one consumer only, and which: those pinned, and those that must not move."""
        fixed = {p: self.current[p] for p in self.immovable if p in self.current and p in self.speeds}
        fixed.update((p, consumer) for p, consumer in self.pinned.items() if p in self.speeds)
        return fixed

    @cached_property
    def every_class(self) -> tuple[ConsumerClass, ...]:
        """The classes that consumers may be of, the ordinary one first."""
        return (ConsumerClass(ORDINARY, self.capacity, 1.0), *self.classes)

    @cached_property
    def largest(self) -> float:
        """The capacity of the largest class, in bytes/s: a partition that is faster is saturated."""
        return max(each.capacity for each in self.every_class)

    def known_class(self, consumer: ConsumerId) -> ConsumerClass | None:
        """The class of a consumer that there is, or that partitions are pinned to; None where a plan may choose it."""
        ordinary = self.every_class[0]
        if not self.classes:
            return ordinary
        if (name := self.class_names.get(consumer)) is not None:
            return next(each for each in self.every_class if each.name == name)
        if consumer in self.current.by_consumer:
            return ordinary
        pinned = [self.speeds[p] for p, pinned_to in self.pinned.items() if pinned_to == consumer and p in self.speeds]
        return self.cheapest_class(math.fsum(pinned), len(pinned)) if pinned else None

    def cheapest_class(self, load: float, partitions: int) -> ConsumerClass:
        """The cheapest class of which a new consumer may hold so many partitions of this load, in bytes/s.

        Of equals the largest. Where none may, the cheapest of the largest.
        """
        holding = [each for each in self.every_class if load <= self.limit_of(each, partitions) * (1 + LOAD_TOLERANCE)]
        if not holding:
            holding = [each for each in self.every_class if each.capacity == self.largest]
        return min(holding, key=lambda each: (each.price, -each.capacity))

    def limit_of(self, of: ConsumerClass, partitions: int) -> float:
        """What a new consumer of a class may hold, in bytes/s: one that has a single partition need not have room."""
        return of.capacity if partitions == 1 else self._packed(of.capacity)

    def class_of(self, consumer: ConsumerId, load: float, partitions: int) -> ConsumerClass:
        """The class of a consumer that has so many partitions of this load, in bytes/s, by a plan."""
        return self.known_class(consumer) or self.cheapest_class(load, partitions)

    def capacity_of(self, consumer: ConsumerId, of: ConsumerClass | None = None) -> float:
        """What `consumer` reads at most, in bytes/s; where it is new, one of the class `of`."""
        if not self.classes:
            return self.capacities.get(consumer, self.capacity)
        return self.capacities.get(consumer, (of or self._class(consumer)).capacity)

    def packing_capacity_of(self, consumer: ConsumerId, of: ConsumerClass | None = None) -> float:
        """What `consumer` may hold after it was given a partition, in bytes/s; where it is new, one of `of`."""
        return self._packed(self.capacity_of(consumer, of))

    def _packed(self, capacity: float) -> float:
        return capacity if self.packing_capacity is None else capacity * (self.packing_capacity / self.capacity)

    def _class(self, consumer: ConsumerId) -> ConsumerClass:
        return self.known_class(consumer) or self.every_class[0]


def _require(holds: bool, name: str, value: float, right: str) -> None:
    if not (holds and math.isfinite(value)):
        raise ProblemError(f"{name} is {value}: it must be {right}")
