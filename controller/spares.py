"""Spare consumers: ready before there is anything to read for them, so that a plan need not wait for a new one.

A spare is a consumer like any other, with its number and its process, that no plan gives a partition. The first ones
that a plan makes superfluous stay as spares; a plan that needs more consumers takes the spares first.
"""

from collections.abc import Mapping, Set
from itertools import count, islice

from domain.assignment import Assignment, ConsumerId


def spares(wanted: int, needed: Set[ConsumerId], existing: Mapping[ConsumerId, bool], most: int) -> Set[ConsumerId]:
    """The consumers without a partition that shall exist; in doubt those that do, then the lowest numbers.

    Args:
        wanted: how many.
        needed: the consumers that have a partition by the plan, or that partitions are pinned to.
        existing: all consumers that are not gone, and whether each is counted on.
        most: no more consumers are made than this, needed ones included.
    """
    idle = sorted(consumer for consumer, counted_on in existing.items() if counted_on and consumer not in needed)
    kept = idle[:wanted]
    missing = max(0, min(wanted - len(kept), most - len(needed) - len(kept)))
    free = (number for number in count(1) if number not in needed and number not in existing)
    return {*kept, *islice(free, missing)}


def taking_spares(plan: Assignment, existing: Mapping[ConsumerId, bool], reserved: Set[ConsumerId]) -> Assignment:
    """The plan with consumers that exist and have nothing to read in place of new ones; lower numbers first.

    Args:
        plan: what the solver wants.
        existing: all consumers that are not gone, and whether each is counted on.
        reserved: numbers that partitions are pinned to: they are neither replaced nor given away.
    """
    idle = sorted(
        consumer
        for consumer, counted_on in existing.items()
        if counted_on and consumer not in plan.consumers and consumer not in reserved
    )
    new = sorted(plan.consumers - existing.keys() - reserved)
    instead = dict(zip(new, idle, strict=False))
    return Assignment({partition: instead.get(consumer, consumer) for partition, consumer in plan.items()})
