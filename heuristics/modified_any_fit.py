"""The paper's algorithm 1: any fit that takes the consumers one after the other instead of the items by size.

Each consumer first gives what it can to those that are open already, smallest items first, then keeps the largest of
the rest; what fits nowhere is assigned last. So few partitions move, and most of those are slow.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heuristics.any_fit import Openings, assign
from heuristics.fits import Fit
from heuristics.items import Items

SortKey = Callable[[Sequence[float]], float]
"""What the consumers are sorted by, of the sizes of a consumer's items, largest first."""


def total_speed(sizes: Sequence[float]) -> float:
    """The cumulative sort. Correctly rounded, so that consumers with the same sizes are equal."""
    return math.fsum(sizes)


def largest_partition(sizes: Sequence[float]) -> float:
    """The max partition sort."""
    return sizes[0]


@dataclass(frozen=True, slots=True)
class ModifiedAnyFit:
    """Modified worst or best fit, by total speed or (P) by largest partition."""

    fit: type[Fit]
    key: SortKey

    def __call__(self, items: Items, _seed: int) -> list[int]:
        """The consumer of each item. Consumers are taken by descending key, equal ones in ascending order."""
        sizes, owned_by, unassigned = items.sizes, items.owned_by, items.unassigned
        bins, openings = self.fit(items), Openings(items)
        consumer_of = [0] * len(sizes)

        keys = {consumer: self.key([sizes[item] for item in owned]) for consumer, owned in owned_by.items()}
        for consumer in sorted(keys, key=keys.__getitem__, reverse=True):
            owned = owned_by[consumer]
            while owned and (target := bins.place(sizes[owned[-1]])) is not None:
                consumer_of[owned.pop()] = target
            if not owned:
                continue

            openings.open(consumer)
            load, kept = sizes[owned[0]], 1
            while kept < len(owned) and load + sizes[owned[kept]] <= items.capacity:
                load += sizes[owned[kept]]
                kept += 1
            bins.open(consumer, load)
            for item in owned[:kept]:
                consumer_of[item] = consumer
            unassigned += owned[kept:]

        assign(items, sorted(unassigned), bins, openings, consumer_of)
        return consumer_of
