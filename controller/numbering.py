"""Which numbers new consumers get."""

from collections.abc import Set
from itertools import count

from domain.assignment import Assignment, ConsumerId


def avoid(plan: Assignment, taken: Set[ConsumerId], reserved: Set[ConsumerId]) -> Assignment:
    """The plan with the lowest free numbers in place of those that no new consumer can have just now.

    Args:
        plan: what the solver wants.
        taken: numbers of processes that are not counted on any more and are not gone yet: a node that hangs may never
            let go of its own.
        reserved: numbers that partitions are pinned to: they are neither replaced nor given away.
    """
    free = (number for number in count(1) if number not in taken | reserved | plan.consumers)
    instead = {number: next(free) for number in sorted(plan.consumers & taken - reserved)}
    return Assignment({partition: instead.get(consumer, consumer) for partition, consumer in plan.items()})
