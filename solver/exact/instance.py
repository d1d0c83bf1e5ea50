"""The problem in the form that engines work on: sizes in units of a consumer's capacity, bins with what they hold.

Also the way back: a *placement* (what each bin keeps, and sets of moved partitions with room for them) becomes an
assignment here. Partitions nobody writes to are left out of the instance: they cost nothing to move and take no room,
so they are added to the assignment at the end.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.assignment import Assignment, ConsumerId
from domain.partitions import TopicPartition
from solver.problem import Problem

FIT_TOLERANCE = 1e-9
"""In capacities: how far a sum of sizes may be above a room and fit (see `evaluation.LOAD_TOLERANCE`)."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Bin:
    """A consumer that has partitions, or must have some."""

    consumer: ConsumerId
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


@dataclass(frozen=True, slots=True)
class Instance:
    """The items are numbered from the largest to the smallest; ties by topic and partition."""

    problem: Problem
    partitions: tuple[TopicPartition, ...]
    sizes: Floats
    """The speed of each item in units of the problem's capacity."""
    home: Ints
    """The index of the bin that has the item now, or -1."""
    bins: tuple[Bin, ...]
    """By ascending consumer."""
    idle: tuple[TopicPartition, ...]
    """The partitions of speed 0 that may be anywhere."""
    constant: float
    """Lambda times the size of all items that have a home: the migration penalty if all of them move."""
    packing_capacity: float
    """Of a new consumer, in capacities."""

    @property
    def weight(self) -> float:
        return self.problem.migration_weight

    @classmethod
    def of(cls, problem: Problem, *, idle_too: bool = False) -> "Instance":
        """The instance of `problem`; with partitions that nobody writes to among its items, if they are to be."""
        fixed = problem.fixed
        speeds = problem.speeds
        idle = () if idle_too else tuple(sorted(p for p, speed in speeds.items() if speed == 0 and p not in fixed))
        partitions = tuple(sorted(speeds.keys() - set(idle), key=lambda p: (-speeds[p], p)))
        sizes = np.array([speeds[p] / problem.capacity for p in partitions], dtype=np.float64)

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
                capacity=problem.capacity_of(consumer) / problem.capacity,
                packing_capacity=problem.packing_capacity_of(consumer) / problem.capacity,
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
            constant=problem.migration_weight * float(sizes[[p in problem.current for p in partitions]].sum()),
            packing_capacity=problem.packing_capacity_of(-1) / problem.capacity,
        )

    def room_beside(self, bin_: Bin, kept: Iterable[int]) -> float | None:
        """What `bin_` may be given while it keeps `kept`, in capacities; None where it cannot keep them at all."""
        items = tuple(kept)
        load = float(self.sizes[list(items)].sum())
        alone = len(items) == 1 and load > bin_.capacity
        if alone:
            return 0.0 if load > 1 or items == bin_.required else None
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
        size_of = {group: float(self.sizes[list(group)].sum()) for group in groups}
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

    def _place_idle(self, consumers: dict[TopicPartition, ConsumerId], loads: dict[ConsumerId, float]) -> None:
        """Leaves idle partitions where they are if that consumer is in use, else adds them to the least loaded one."""
        if not self.idle:
            return
        problem = self.problem
        closed = {c for c, load in loads.items() if load > problem.capacity_of(c) / problem.capacity + FIT_TOLERANCE}
        open_ = [
            (load, consumer)
            for consumer, load in loads.items()
            if load <= problem.packing_capacity_of(consumer) / problem.capacity + FIT_TOLERANCE
        ]
        refuge = min(open_)[1] if open_ else None
        missing = min(problem.min_consumers, len(problem.speeds)) - len(loads)

        def opened(preferred: ConsumerId | None) -> ConsumerId:
            consumer = problem.first_consumer if preferred is None or preferred in loads else preferred
            while consumer in loads:
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
        self._next = instance.problem.first_consumer

    def take(self, group: tuple[int, ...], size: float) -> ConsumerId:
        """A consumer that may hold `group`, of that size in capacities, and that nobody else is given.

        Of those where a part of it is now, the one with the largest part, then the lowest; else the lowest number that
        is free.
        """
        instance, problem = self._instance, self._instance.problem
        at_home: dict[ConsumerId, float] = {}
        for item in group:
            if instance.home[item] >= 0:
                consumer = instance.bins[instance.home[item]].consumer
                at_home[consumer] = at_home.get(consumer, 0.0) + float(instance.sizes[item])
        homes = [c for c in at_home if c not in self._taken and self._may_hold(c, size, len(group))]
        if homes:
            chosen = min(homes, key=lambda c: (-at_home[c], c))
        else:
            while self._next in self._taken or problem.capacity_of(self._next) != problem.capacity:
                self._next += 1
            chosen = self._next
        self._taken.add(chosen)
        return chosen

    def _may_hold(self, consumer: ConsumerId, size: float, count: int) -> bool:
        problem = self._instance.problem
        limit = problem.capacity_of(consumer) if count == 1 else problem.packing_capacity_of(consumer)
        return size <= limit / problem.capacity + FIT_TOLERANCE or (count == 1 and size > 1)
