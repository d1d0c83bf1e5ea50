"""Lower bounds that need no engine."""

import math

import numpy as np

from solver.exact.instance import FIT_TOLERANCE, Floats, Instance


def fewest_bins(instance: Instance) -> int:
    """How many consumers it takes at least: the bound L2 of Martello and Toth (1990), saturated partitions apart.

    With several classes, as if all were of the largest.
    """
    sizes = instance.sizes
    saturated = int((sizes > 1).sum())
    shared = _l2(sizes[sizes <= 1])
    # Partitions that nobody writes to need a consumer as well, and none that is saturated.
    return saturated + max(shared, 1 if instance.idle else 0)


def lowest_price(instance: Instance) -> float:
    """What consumers cost at least, of however many there must be.

    With several classes the larger of two bounds. A load costs no less than on the class that has the most capacity for
    its price, of those that are large enough for the partition. And there is a least number of consumers that are large
    enough for the largest partitions (L2): each costs what it does beyond the worth of its capacity, and all load costs
    what it does on the class that has the most capacity for its price of all.
    """
    problem, prices = instance.problem, instance.prices
    cheapest = float(prices.min())
    fewest = max(fewest_bins(instance), min(problem.min_consumers, len(problem.speeds)))
    if len(instance.kinds) == 1:
        return cheapest * fewest
    sizes = np.minimum(instance.sizes, 1.0)
    capacities = np.array([kind.capacity for kind in instance.kinds])
    rates = prices / capacities
    # What is fixed may be on a consumer that is too small for it, alone.
    free = np.ones(len(sizes), dtype=np.bool_)
    free[[item for bin_ in instance.bins for item in bin_.required]] = False
    fixed = float(np.minimum(sizes[~free] * rates.min(), cheapest).sum())
    sizes = sizes[free]
    # Of the classes from each on, which are no smaller.
    best_rates = np.minimum.accumulate(rates[::-1])[::-1]
    by_rate = float((sizes * best_rates[np.searchsorted(capacities, sizes - FIT_TOLERANCE)]).sum())
    beyond = np.minimum.accumulate((prices - rates.min() * capacities)[::-1])[::-1]
    smaller = np.concatenate([[0.0], capacities[:-1]])
    needed = np.array([_l2(sizes[sizes > below + FIT_TOLERANCE]) for below in smaller])
    needed = np.maximum.accumulate(needed[::-1])[::-1]
    by_count = float(sizes.sum() * rates.min()) + float((beyond * (needed - np.append(needed[1:], 0))).sum())
    priced = (fixed + max(by_rate, by_count)) * (1 - len(sizes) * FIT_TOLERANCE)
    return max(cheapest * fewest, float(priced))


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


def pooled_bound(instance: Instance) -> float:
    """A bound that lets everything that moves go anywhere where there is room in total.

    With `m` consumers, the penalty is at least that of what overloaded consumers cannot keep, and of all that is on
    those that are closed: at least the ones with the least to lose.
    """
    forced, whole, prices = [], [], []
    for bin_ in instance.bins:
        own = instance.sizes[list(bin_.own)]
        least = _least_eviction(own, bin_.capacity)
        forced.append(least)
        if not bin_.required:
            whole.append(float(own.sum()) - least)
            prices.append(instance.kinds[bin_.kind].price)
    # By number of consumers that are closed: those with the least to lose, and the dearest.
    more = np.concatenate([[0.0], np.cumsum(np.sort(whole))])
    saved = np.concatenate([[0.0], np.cumsum(np.sort(prices)[::-1])])
    every = math.fsum(instance.kinds[bin_.kind].price for bin_ in instance.bins)
    price = np.maximum(every - saved, lowest_price(instance))
    return float((price + instance.weight * (math.fsum(forced) + more)).min())


def _least_eviction(sizes: Floats, capacity: float) -> float:
    """The least that a consumer with these partitions has to lose, or less."""
    load = float(sizes.sum())
    if load <= capacity * (1 + FIT_TOLERANCE):
        return 0.0
    too_fast = sizes[sizes > capacity]
    if len(too_fast):  # all leave but one of them, or all of them do
        return min(load - float(too_fast.max()), float(too_fast.sum()))
    return max(float(sizes.min()), load - capacity)
