"""Mends a plan in which partitions have no consumer: best fit, the largest first. What has a consumer stays there.

It takes no time, so nobody waits for the solver to be read; what the solver finds later is better, or is let be.
"""

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import chain
from math import inf

from domain.assignment import Assignment, ConsumerId
from domain.partitions import TopicPartition


def mended(
    plan: Assignment,
    unread: Set[TopicPartition],
    speeds: Mapping[TopicPartition, float],
    packing_capacity: float,
    able: Sequence[Set[ConsumerId]],
    new: Iterable[ConsumerId],
    pinned: Mapping[TopicPartition, ConsumerId],
    most: int,
) -> Assignment:
    """The plan with a consumer for each of the `unread` partitions, as far as there can be any.

    Each goes where it is pinned if that consumer can take it, or else to the fullest that it fits, or to a new one, or
    to the least loaded: that it is read goes before how much a consumer is to be given.

    Args:
        plan: who shall read what.
        unread: partitions that are not in it.
        speeds: bytes/s of the partitions; one of the plan that has none fills its consumer.
        packing_capacity: what a consumer is given at most, in bytes/s.
        able: the consumers that can take partitions, those that can at once before those that begin.
        new: numbers that more consumers may have.
        pinned: where partitions are to be.
        most: of how many consumers the plan may be, those that partitions are pinned to first.
    """
    loads = plan.loads({partition: speeds.get(partition, packing_capacity) for partition in plan})
    ranks = [sorted((loads.get(consumer, 0.0), consumer) for consumer in consumers) for consumers in able]
    more = iter(new)
    consumers = dict(plan)
    used = {*plan.consumers, *(set(pinned.values()) & set().union(*able))}
    full = False
    for partition in sorted(unread, key=lambda each: (-speeds[each], each)):
        if not full and len(used) >= most:
            full, more = True, iter(())
            ranks = [[each for each in rank if each[1] in used] for rank in ranks]
        place = _place(speeds[partition], pinned.get(partition), packing_capacity, ranks)
        if place is None and (number := next(more, None)) is not None:
            place = (ranks[-1], (0.0, number))
        elif place is None:
            place = min(((rank, rank[0]) for rank in ranks if rank), key=lambda each: each[1], default=None)
        if place is None:
            return Assignment(consumers)
        rank, (load, consumer) = place
        if (load, consumer) in rank:
            rank.remove((load, consumer))
        insort(rank, (load + speeds[partition], consumer))
        consumers[partition] = consumer
        used.add(consumer)
    return Assignment(consumers)


_Rank = list[tuple[float, ConsumerId]]


def _place(
    speed: float, pinned_to: ConsumerId | None, capacity: float, ranks: Sequence[_Rank]
) -> tuple[_Rank, tuple[float, ConsumerId]] | None:
    """The consumer that it is pinned to, or the fullest that it fits, of the first rank that has one."""
    for rank in ranks:
        for each in rank:
            if each[1] == pinned_to:
                return rank, each
    for rank in ranks:
        if (at := bisect_right(rank, (capacity - speed, inf))) > 0:
            return rank, rank[at - 1]
        if rank and rank[0][0] == 0:  # one that has nothing to read takes whatever there is
            return rank, rank[0]
    return None


def numbered(
    plan: Assignment, kept: Set[ConsumerId], idle: Iterable[ConsumerId], free: Iterable[ConsumerId]
) -> Assignment:
    """The plan with numbers that its consumers can have; where none is left, their partitions are left out.

    Args:
        plan: what the solver wants.
        kept: numbers of consumers that are, or are about to be, or that partitions are pinned to.
        idle: consumers that are and have nothing to read, which go before new ones.
        free: numbers that new ones may have, the best first.
    """
    others = chain((consumer for consumer in idle if consumer not in plan.consumers), free)
    instead = dict(zip(sorted(plan.consumers - kept), others, strict=False))
    return Assignment({p: instead.get(c, c) for p, c in plan.items() if c in kept or c in instead})
