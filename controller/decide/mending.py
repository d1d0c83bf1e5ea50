"""Mends a plan in which partitions have no consumer: best fit, the largest first. What has a consumer stays there.

It takes no time, so nobody waits for the solver to be read; what the solver finds later is better, or is let be.
"""

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence, Set
from math import inf

from domain.assignment import Assignment, ConsumerId
from domain.consumer_class import ORDINARY, ConsumerClass
from domain.partitions import TopicPartition
from solver.problem import Problem


def mended(
    problem: Problem,
    plan: Assignment,
    able: Sequence[Set[ConsumerId]],
    new: Iterable[ConsumerId],
    pinned: Mapping[TopicPartition, ConsumerId],
    most: int,
) -> Assignment:
    """The plan with a consumer for each partition of the problem, as far as there can be any.

    Each goes where it is pinned if that consumer can take it, or else to the fullest that it fits, or to a new one, or
    to the one with most room: that it is read goes before how much a consumer is to be given.

    Args:
        problem: the speeds, and the class of each consumer of the plan and of those that are able.
        plan: who shall read what; a partition that has no speed fills its consumer.
        able: the consumers that can take partitions, those that can at once before those that begin.
        new: numbers that more consumers may have, each of the class that `class_for` says of its first partition.
        pinned: where partitions are to be.
        most: of how many consumers the plan may be, those that partitions are pinned to first.
    """
    speeds, filled = problem.speeds, _Filled(problem)
    loads = plan.loads({partition: speeds.get(partition, filled.packing) for partition in plan})
    ranks = [sorted((filled.level(c, loads.get(c, 0.0)), c) for c in consumers) for consumers in able]
    more = iter(new)
    consumers = dict(plan)
    used = {*plan.consumers, *(set(pinned.values()) & set().union(*able))}
    full = False
    for partition in sorted(speeds.keys() - plan.keys(), key=lambda each: (-speeds[each], each)):
        if not full and len(used) >= most:
            full, more = True, iter(())
            ranks = [[each for each in rank if each[1] in used] for rank in ranks]
        place = _place(speeds[partition], pinned.get(partition), filled, ranks)
        if place is None and (number := next(more, None)) is not None:
            filled.opened(number, class_for(problem, speeds[partition]))
            place = (ranks[-1], (filled.level(number, 0.0), number))
        elif place is None:
            place = min(((rank, rank[0]) for rank in ranks if rank), key=lambda each: each[1], default=None)
        if place is None:
            return Assignment(consumers)
        rank, (level, consumer) = place
        if (level, consumer) in rank:
            rank.remove((level, consumer))
        insort(rank, (level + speeds[partition], consumer))
        consumers[partition] = consumer
        used.add(consumer)
    return Assignment(consumers)


def class_for(problem: Problem, speed: float) -> ConsumerClass:
    """Of which class a new consumer is whose first, and fastest, partition has this speed (bytes/s).

    An ordinary one, which has room for more, unless it has to be larger; what fits best the solver finds later.
    """
    ordinary = problem.every_class[0]
    return ordinary if speed <= ordinary.capacity else problem.cheapest_class(speed, 1)


class _Filled:
    """How full consumers are: a smaller one begins with what it is smaller than one of the largest class."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._largest = max(problem.every_class, key=lambda each: each.capacity)
        self._opened: dict[ConsumerId, ConsumerClass] = {}
        self.packing = problem.limit_of(self._largest, 2)
        """Up to where consumers are filled that get more than one partition, in bytes/s."""

    def opened(self, consumer: ConsumerId, of: ConsumerClass) -> None:
        """There is a new one, of that class."""
        self._opened[consumer] = of

    def level(self, consumer: ConsumerId, load: float) -> float:
        return load + (self.packing - self._problem.limit_of(self._class(consumer), 2))

    def takes_anything(self, level: float, consumer: ConsumerId, speed: float) -> bool:
        """Whether it has nothing to read, and no other could do more with so fast a partition."""
        of = self._class(consumer)
        return level == self.level(consumer, 0.0) and (speed <= of.capacity or of.capacity == self._largest.capacity)

    def _class(self, consumer: ConsumerId) -> ConsumerClass:
        return self._opened.get(consumer) or self._problem.known_class(consumer) or self._problem.every_class[0]


_Rank = list[tuple[float, ConsumerId]]
"""Consumers by how full they are."""


def _place(
    speed: float, pinned_to: ConsumerId | None, filled: _Filled, ranks: Sequence[_Rank]
) -> tuple[_Rank, tuple[float, ConsumerId]] | None:
    """The consumer that it is pinned to, or the fullest that it fits, of the first rank that has one."""
    for rank in ranks:
        for each in rank:
            if each[1] == pinned_to:
                return rank, each
    for rank in ranks:
        if (at := bisect_right(rank, (filled.packing - speed, inf))) > 0:
            return rank, rank[at - 1]
        if rank and filled.takes_anything(*rank[0], speed):
            return rank, rank[0]
    return None


def numbered(
    plan: Assignment,
    kept: Set[ConsumerId],
    idle: Mapping[ConsumerId, str],
    free: Iterable[ConsumerId],
    classes: Mapping[ConsumerId, str],
) -> Assignment:
    """The plan with numbers that its consumers can have; where none is left, their partitions are left out.

    Args:
        plan: what the solver wants.
        kept: numbers of consumers that are, or are about to be, or that partitions are pinned to.
        idle: consumers that are and have nothing to read, which go before new ones of their class; and which that is.
        free: numbers that new ones may have, the best first.
        classes: of the plan's consumers; those that are left out are ordinary.
    """
    unused = {consumer: name for consumer, name in idle.items() if consumer not in plan.consumers}
    more = iter(free)
    instead: dict[ConsumerId, ConsumerId] = {}
    for consumer in sorted(plan.consumers - kept):
        wanted = classes.get(consumer, ORDINARY)
        number = next((each for each, name in unused.items() if name == wanted), None)
        number = next(more, None) if number is None else number
        if number is not None:
            unused.pop(number, None)
            instead[consumer] = number
    return Assignment({p: instead.get(c, c) for p, c in plan.items() if c in kept or c in instead})
