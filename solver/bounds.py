"""Lower bounds that need no engine."""

import math

import numpy as np

from solver.instance import FIT_TOLERANCE, Floats, Instance


def fewest_bins(instance: Instance) -> int:
    """How many consumers it takes at least: the bound L2 of Martello and Toth (1990), saturated partitions apart.

    Where consumers have different capacities, the bound is that of consumers that are all as large as the largest.
    """
    problem = instance.problem
    largest = max([1.0, *(bin_.capacity for bin_ in instance.bins)])
    sizes = instance.sizes / largest
    saturated = int((sizes > 1).sum())
    rest = saturated + _l2(sizes[sizes <= 1])
    return max(rest, 1 if problem.speeds else 0)


def _l2(sizes: Floats) -> int:
    """L2 for sizes in units of the capacity, in descending order: the best over all thresholds a of

    `|{s > 1 - a}| + |{1/2 < s <= 1 - a}|` and what `{a <= s <= 1/2}` needs beyond the room that the second leaves.
    """
    if not len(sizes):
        return 0
    ascending = sizes[::-1]
    total = np.concatenate([[0.0], np.cumsum(ascending)])
    half = int(np.searchsorted(ascending, 0.5 + FIT_TOLERANCE, side="right"))
    thresholds = np.unique(np.append(ascending[:half], 0.0))
    first = np.searchsorted(ascending, thresholds - FIT_TOLERANCE)
    beyond = np.maximum(np.searchsorted(ascending, 1 - thresholds + FIT_TOLERANCE, side="right"), half)
    large = len(sizes) - half
    in_between = beyond - half
    room = in_between - (total[beyond] - total[half])
    needed = np.ceil(total[half] - total[first] - room - len(sizes) * FIT_TOLERANCE)
    return large + max(0, int(needed.max(initial=0.0)))


def eviction_bound(instance: Instance) -> float:
    """The least migration penalty that overloaded consumers force, whatever the others do, by their excess alone."""
    forced = 0.0
    for bin_ in instance.bins:
        sizes = instance.sizes[list(bin_.own)]
        load = float(sizes.sum())
        if load <= bin_.capacity * (1 + FIT_TOLERANCE):
            continue
        too_fast = sizes[sizes > bin_.capacity]
        if len(too_fast):  # all leave but one of them, or all of them do
            forced += min(load - float(too_fast.max()), float(too_fast.sum()))
        else:
            forced += max(float(sizes.min()), load - bin_.capacity)
    return instance.weight * forced


def simple_bound(instance: Instance) -> float:
    """The fewest consumers, and what the overloaded ones cannot keep."""
    least = max(fewest_bins(instance), min(instance.problem.min_consumers, len(instance.problem.speeds)))
    return math.fsum((least, eviction_bound(instance)))
