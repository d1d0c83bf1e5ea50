"""Spare consumers: ready before there is anything to read for them, so that a plan need not wait for a new one.

A spare is a consumer like any other, with its number and its process, that no plan gives a partition. The first ones
that a plan makes superfluous stay as spares; a plan that needs more consumers takes the spares first.
"""

from collections.abc import Iterable, Set
from itertools import islice

from domain.assignment import ConsumerId


def spares(
    wanted: int, needed: Set[ConsumerId], alive: Set[ConsumerId], most: int, free: Iterable[ConsumerId]
) -> Set[ConsumerId]:
    """The consumers without a partition that shall exist; in doubt those that do, then the lowest numbers.

    Args:
        wanted: how many.
        needed: the consumers that have a partition by the plan, or that partitions are pinned to.
        alive: the consumers that are counted on, as far as they can be spares: those that are ordinary.
        most: no more consumers are made than this, needed ones included.
        free: numbers that new ones may have, the best first.
    """
    kept = sorted(alive - needed)[:wanted]
    missing = max(0, min(wanted - len(kept), most - len(needed) - len(kept)))
    return {*kept, *islice(free, missing)}
