"""The problem in the form that engines work on: sizes in units of a consumer's capacity, bins with what they hold.

Where consumers are of several classes, that is the capacity of the largest ("in capacities"): all others are smaller.

Also the way back: a *placement* (what each bin keeps, and sets of moved partitions with room for them) becomes an
assignment here. Partitions nobody writes to are left out of the instance: they cost nothing to move and take no room,
so they are added to the assignment at the end.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from domain.assignment import Assignment, ConsumerId
from domain.consumer_class import ConsumerClass
from domain.partitions import TopicPartition
from solver.problem import Problem

FIT_TOLERANCE = 1e-9
"""In capacities: how far a sum of sizes may be above a room and fit (see `problem.LOAD_TOLERANCE`)."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of consumers."""

    of: ConsumerClass
    capacity: float
    """In capacities."""
    packing_capacity: float
    """What a new consumer of it may hold, unless that is a single item, in capacities."""

    @property
    def price(self) -> float:
        return self.of.price

    @property
    def is_largest(self) -> bool:
        return self.capacity == 1


@dataclass(frozen=True, slots=True)
class Bin:
    """A consumer that has partitions, or must have some."""

    consumer: ConsumerId
    kind: int
    """The index of its class in `Instance.kinds`."""
    capacity: float
    """What it may hold if it is given nothing, in capacities: 1 at most."""
    packing_capacity: float
    """What it may hold if it is given something, in capacities."""
    own: tuple[int, ...]
    """The items it has now that may stay or leave, largest first."""
    required: tuple[int, ...]
    """The items that must be on it."""
    receives_required: bool
    """Whether one of `required` is not on it now."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A solution as engines find it: who keeps what, and which items go together into one room."""

    kept: Mapping[int, tuple[int, ...]]
    """The items that each bin keeps, `required` included, by its index in `Instance.bins`."""
    moved: Sequence[tuple[int, ...]]
    """Sets of other items, each of which goes into one bin that keeps something, or into an empty one."""
    alone: Sequence[int] = ()
    """Items that have an empty bin to themselves."""


@dataclass(frozen=True)
class Instance:
    """The items are numbered from the largest to the smallest; ties by topic and partition."""

    problem: Problem
    partitions: tuple[TopicPartition, ...]
    sizes: Floats
    """The speed of each item, in capacities."""
    home: Ints
    """The index of the bin that has the item now, or -1."""
    bins: tuple[Bin, ...]
    """By ascending consumer."""
    idle: tuple[TopicPartition, ...]
    """The partitions of speed 0 that may be anywhere."""
    constant: float
    """Lambda times the size of all items that have a home: the migration penalty if all of them move."""
    kinds: tuple[Kind, ...]
    """All classes, by capacity; of equal ones the cheapest last."""
    offered: tuple[int, ...]
    """The indices of those that a new consumer may as well be of: the others are no larger than a cheaper one."""

    @cached_property
    def weight(self) -> float:
        """Lambda, by capacities as sizes are."""
        return self.problem.migration_weight * (self.problem.largest / self.problem.capacity)

    @property
    def packing_capacity(self) -> float:
        """Of a new consumer of the largest class, in capacities."""
        return self.kinds[-1].packing_capacity

    @cached_property
    def prices(self) -> Floats:
        """Of a consumer of each kind."""
        return np.array([kind.price for kind in self.kinds])

    @classmethod
    def of(cls, problem: Problem, *, idle_too: bool = False) -> "Instance":
        """The instance of `problem`; with partitions that nobody writes to among its items, if they are to be."""
        fixed = problem.fixed
        speeds = problem.speeds
        idle = () if idle_too else tuple(sorted(p for p, speed in speeds.items() if speed == 0 and p not in fixed))
        partitions = tuple(sorted(speeds.keys() - set(idle), key=lambda p: (-speeds[p], p)))
        unit = problem.largest
        sizes = np.array([speeds[p] / unit for p in partitions], dtype=np.float64)
        kinds = tuple(
            Kind(of, problem.limit_of(of, 1) / unit, problem.limit_of(of, 2) / unit)
            for of in sorted(problem.every_class, key=lambda of: (of.capacity, -of.price))
        )
        number_of = {kind.of.name: number for number, kind in enumerate(kinds)}

        own: dict[ConsumerId, list[int]] = {}
        required: dict[ConsumerId, list[int]] = {}
        for item, partition in enumerate(partitions):
            if partition in fixed:
                required.setdefault(fixed[partition], []).append(item)
            elif partition in problem.current:
                own.setdefault(problem.current[partition], []).append(item)
        bins = tuple(
            Bin(
                consumer=consumer,
                kind=number_of[(problem.known_class(consumer) or kinds[-1].of).name],
                capacity=problem.capacity_of(consumer) / unit,
                packing_capacity=problem.packing_capacity_of(consumer) / unit,
                own=tuple(own.get(consumer, ())),
                required=tuple(required.get(consumer, ())),
                receives_required=any(
                    problem.current.get(partitions[item]) != consumer for item in required.get(consumer, ())
                ),
            )
            for consumer in sorted(own.keys() | required.keys())
        )
        index = {bin_.consumer: number for number, bin_ in enumerate(bins)}
        home = np.array([index.get(problem.current.get(p, -1), -1) for p in partitions], dtype=np.int64)
        return cls(
            problem=problem,
            partitions=partitions,
            sizes=sizes,
            home=home,
            bins=bins,
            idle=idle,
            constant=problem.migration_weight
            * (unit / problem.capacity)
            * float(sizes[[p in problem.current for p in partitions]].sum()),
            kinds=kinds,
            offered=tuple(
                number
                for number, kind in enumerate(kinds)
                if all(kind.price < other.price for other in kinds[number + 1 :])
            ),
        )

    def kind_for(self, size: float, items: int) -> int:
        """The kind of a new consumer with so many items of that size together, in capacities."""
        limits = (self._limit(number, items) for number in self.offered)
        fitting = (n for n, limit in zip(self.offered, limits, strict=True) if size <= limit + FIT_TOLERANCE)
        return next(fitting, self.offered[-1])

    def _limit(self, number: int, items: int) -> float:
        return self.kinds[number].capacity if items == 1 else self.kinds[number].packing_capacity

    @cached_property
    def _size_of(self) -> Callable[[int], float]:
        """A list is read faster than an array, number by number."""
        sizes: list[float] = self.sizes.tolist()
        return sizes.__getitem__

    def load_of(self, items: Iterable[int]) -> float:
        """The size of so many items together, in capacities."""
        return sum(map(self._size_of, items))

    def room_beside(self, bin_: Bin, kept: Iterable[int]) -> float | None:
        """What `bin_` may be given while it keeps `kept`, in capacities; None where it cannot keep them at all."""
        items = tuple(kept)
        load = self.load_of(items)
        alone = len(items) == 1 and load > bin_.capacity
        if alone:
            too_fast_for_all = load > 1 and self.kinds[bin_.kind].is_largest
            return 0.0 if too_fast_for_all or items == bin_.required else None
        limit = bin_.packing_capacity if bin_.receives_required and len(items) > 1 else bin_.capacity
        if load > limit + FIT_TOLERANCE * bin_.capacity:
            return None
        return max(0.0, bin_.packing_capacity - load)

    def assignment(self, placement: Placement) -> Assignment:
        """Gives every set of moved items a bin with room for it, the largest set first, and places idle partitions.

        An item that is in several sets counts in the first: where it is kept, if it is.
        """
        placed: dict[int, ConsumerId] = {}
        rooms: list[tuple[float, ConsumerId]] = []
        used: set[ConsumerId] = set()
        for number in sorted(placement.kept):
            bin_ = self.bins[number]
            kept = placement.kept[number]
            for item in kept:
                placed[item] = bin_.consumer
            room = self.room_beside(bin_, kept)
            if kept:
                used.add(bin_.consumer)
                if room:
                    insort(rooms, (room, bin_.consumer))
        groups = []
        for group in placement.moved:
            new = tuple(item for item in group if item not in placed)
            if new:
                groups.append(new)
                placed.update(dict.fromkeys(new, -1))
        size_of = {group: self.load_of(group) for group in groups}
        empty: list[tuple[int, ...]] = []
        # Best fit is as good as any: the rooms that a smaller set could also have taken are never larger.
        for group in sorted(groups, key=lambda group: (-size_of[group], group)):
            index = bisect_left(rooms, (size_of[group] - FIT_TOLERANCE, -1))
            if index == len(rooms):
                empty.append(group)
                continue
            _, consumer = rooms.pop(index)
            placed.update(dict.fromkeys(group, consumer))
        names = self.free_consumers(used)
        for group in empty:
            placed.update(dict.fromkeys(group, names.take(group, size_of[group])))
        for item in placement.alone:
            if item not in placed:
                placed[item] = names.take((item,), float(self.sizes[item]))
        return self.complete(placed)

    def free_consumers(self, used: Iterable[ConsumerId]) -> "FreeConsumers":
        """The consumers that are not in use, to be handed out."""
        return FreeConsumers(self, used)

    def complete(self, placed: Mapping[int, ConsumerId]) -> Assignment:
        """The assignment of these items, with idle partitions added."""
        placed = self._spread(placed)
        loads: dict[ConsumerId, float] = {}
        for item, consumer in placed.items():
            loads[consumer] = loads.get(consumer, 0.0) + float(self.sizes[item])
        consumers = {self.partitions[item]: consumer for item, consumer in placed.items()}
        self._place_idle(consumers, loads)
        return Assignment(consumers)

    def _spread(self, placed: Mapping[int, ConsumerId]) -> Mapping[int, ConsumerId]:
        """Gives partitions a consumer of their own until there can be as many consumers as there must be.

        Idle ones are added later, where they are needed. The first to go are those that move anyway, then the smallest;
        of equals the last.
        """
        wanted = min(self.problem.min_consumers, len(self.problem.speeds))
        missing = wanted - len(self.idle) - len(set(placed.values()))
        if missing <= 0:
            return placed
        result = dict(placed)
        together = Counter(placed.values())
        names = self.free_consumers(together)
        fixed = {item for bin_ in self.bins for item in bin_.required}

        def cost(item: int) -> tuple[float, int]:
            at_home = self.home[item] >= 0 and self.bins[self.home[item]].consumer == placed[item]
            return (float(self.sizes[item]) if at_home else 0.0, -item)

        for item in sorted(placed.keys() - fixed, key=cost):
            if missing and together[placed[item]] > 1:
                together[placed[item]] -= 1
                result[item] = names.take((item,), float(self.sizes[item]))
                missing -= 1
        return result

    def _limits(self, consumer: ConsumerId, load: float, items: int) -> tuple[float, float]:
        """What a consumer with so many items of that load keeps, and is given, at most, in capacities."""
        problem = self.problem
        of = problem.known_class(consumer) or self.kinds[self.kind_for(load, items)].of
        capacity, packing = problem.capacity_of(consumer, of), problem.packing_capacity_of(consumer, of)
        return capacity / problem.largest, packing / problem.largest

    def _place_idle(self, consumers: dict[TopicPartition, ConsumerId], loads: dict[ConsumerId, float]) -> None:
        """Leaves idle partitions where they are if that consumer is in use, else adds them to the least loaded one."""
        if not self.idle:
            return
        problem = self.problem
        counts = Counter(consumers.values())
        limits = {c: self._limits(c, load, counts[c]) for c, load in loads.items()}
        closed = {c for c, load in loads.items() if load > limits[c][0] + FIT_TOLERANCE}
        open_ = [(load, consumer) for consumer, load in loads.items() if load <= limits[consumer][1] + FIT_TOLERANCE]
        refuge = min(open_)[1] if open_ else None
        missing = min(problem.min_consumers, len(problem.speeds)) - len(loads)

        cheapest = self.kinds[self.kind_for(0.0, 1)].of

        def costs_more(consumer: ConsumerId) -> bool:
            of = problem.known_class(consumer)
            return of is not None and of.price > cheapest.price

        def opened(preferred: ConsumerId | None) -> ConsumerId:
            free = preferred is not None and preferred not in loads and not costs_more(preferred)
            consumer = preferred if free and preferred is not None else problem.first_consumer
            while consumer in loads or costs_more(consumer):
                consumer += 1
            loads[consumer] = 0.0
            return consumer

        for number, partition in enumerate(self.idle):
            current = problem.current.get(partition)
            if number < missing:
                consumers[partition] = opened(current)
            elif current is not None and current in loads and current not in closed:
                consumers[partition] = current
            else:
                refuge = opened(current) if refuge is None else refuge
                consumers[partition] = refuge


class FreeConsumers:
    """Hands out consumers that are not in use: where most of a set of items is now, else the lowest number."""

    def __init__(self, instance: Instance, used: Iterable[ConsumerId]) -> None:
        self._instance = instance
        self._taken = set(used)
        self._next = dict.fromkeys(instance.offered, instance.problem.first_consumer)

    def take(self, group: tuple[int, ...], size: float) -> ConsumerId:
        """A consumer that may hold `group`, of that size in capacities, and that nobody else is given.

        Of those where a part of it is now, and that cost no more than a new one, the one with the largest part, then
        the lowest; else the lowest number that is free.
        """
        instance = self._instance
        kind = instance.kind_for(size, len(group))
        at_home: dict[ConsumerId, float] = {}
        for item in group:
            if instance.home[item] >= 0:
                consumer = instance.bins[instance.home[item]].consumer
                at_home[consumer] = at_home.get(consumer, 0.0) + float(instance.sizes[item])
        homes = [c for c in at_home if c not in self._taken and self._may_hold(c, size, len(group), kind)]
        if homes:
            chosen = min(homes, key=lambda c: (-at_home[c], c))
        else:
            while self._next[kind] in self._taken or not self._is_like_new(self._next[kind], kind):
                self._next[kind] += 1
            chosen = self._next[kind]
        self._taken.add(chosen)
        return chosen

    def _is_like_new(self, consumer: ConsumerId, kind: int) -> bool:
        """Whether a consumer of that number is, or would be, one of that kind and of all its capacity."""
        problem, of = self._instance.problem, self._instance.kinds[kind].of
        return problem.known_class(consumer) in (None, of) and problem.capacity_of(consumer, of) == of.capacity

    def _may_hold(self, consumer: ConsumerId, size: float, count: int, kind: int) -> bool:
        problem, kinds = self._instance.problem, self._instance.kinds
        of = problem.known_class(consumer) or kinds[kind].of
        limit = problem.capacity_of(consumer, of) if count == 1 else problem.packing_capacity_of(consumer, of)
        fits = size <= limit / problem.largest + FIT_TOLERANCE
        alone = count == 1 and size > 1 and of.capacity == problem.largest
        return (fits or alone) and of.price <= kinds[kind].price
