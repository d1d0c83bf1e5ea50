"""What a consumer may keep: the subsets of its partitions that fit it."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from solver.instance import FIT_TOLERANCE, Bin, Floats, Instance
from solver.knapsack import best_sets, best_values


@dataclass(frozen=True, slots=True)
class KeptSet:
    """Items that stay together on the bin that has them, and what that leaves."""

    bin: int
    items: tuple[int, ...]
    """Required ones included, in ascending order."""
    saving: float
    """Lambda times the size of those that are at home, in the unit of the objective."""
    room: float
    """What the bin may be given beside them, in capacities."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The kept sets of an instance, as far as they can be listed."""

    sets: tuple[KeptSet, ...]
    """Without those that are no better than a new consumer."""
    partial: frozenset[int]
    """The bins that could keep other sets as well: so many that only a few of them are here."""


def kept_sets(instance: Instance, at_most: int) -> Listing:
    """Every kept set of every bin, up to `at_most` of them, the bins with the fewest partitions first.

    Of the bins for which there is no room any more there is the set that leaves least behind.
    """
    found: list[KeptSet] = []
    partial: set[int] = set()
    by_count = sorted(range(len(instance.bins)), key=lambda number: (len(instance.bins[number].own), number))
    for number in by_count:
        subsets = None if partial else _subsets(instance, instance.bins[number], at_most - len(found))
        if subsets is None:
            partial.add(number)
            continue
        found += [kept for items in subsets if (kept := kept_set(instance, number, items)) is not None]
    found += most_kept(instance, partial)
    return Listing(tuple(sorted(found, key=lambda kept: kept.bin)), frozenset(partial))


def _subsets(instance: Instance, bin_: Bin, at_most: int) -> list[tuple[int, ...]] | None:
    """The sets of a bin's own items that fit it together with those it must have; None where they are too many."""
    sizes = instance.sizes
    limit = bin_.capacity * (1 + FIT_TOLERANCE)
    subsets: list[tuple[tuple[int, ...], float]] = [((), float(sizes[list(bin_.required)].sum()))]
    for item in bin_.own:
        size = float(sizes[item])
        # A partition that is faster than its consumer can only be alone: it extends the empty set.
        subsets += [
            ((*items, item), load + size)
            for items, load in subsets
            if load + size <= limit or not (items or bin_.required)
        ]
        if len(subsets) > at_most:
            return None
    return [items for items, _ in subsets]


def kept_set(instance: Instance, number: int, items: Iterable[int]) -> KeptSet | None:
    """The bin `number` keeping `items` and what it must have; None where it cannot, or where that is an empty bin."""
    bin_ = instance.bins[number]
    kept = tuple(sorted((*items, *bin_.required)))
    if not kept and bin_.capacity <= 1:
        return None
    room = instance.room_beside(bin_, kept)
    if room is None:
        return None
    at_home = sum(float(instance.sizes[item]) for item in kept if instance.home[item] == number)
    return KeptSet(number, kept, instance.weight * at_home, room)


def most_kept(instance: Instance, bins: Iterable[int]) -> list[KeptSet]:
    """For each of `bins` the set that leaves least behind, or nearly so (a subset sum on a grid)."""
    free_items, free_rooms = np.zeros(len(instance.sizes)), np.zeros(1)
    pricing = KeptPricing(instance)
    found = [pricing.best(number, free_items, free_rooms) for number in bins]
    return [kept for kept in found if kept is not None]


class KeptPricing:
    """What bins should keep at given prices, where the sets are too many to list: a knapsack for each bin."""

    units = 4096
    """To a capacity."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._up = np.ceil((instance.sizes - FIT_TOLERANCE / 10) * self.units).astype(np.int64)
        self._down = np.floor((instance.sizes + FIT_TOLERANCE / 10) * self.units).astype(np.int64)

    def best(self, number: int, prices: Floats, room_prices: Floats) -> KeptSet | None:
        """The kept set of a bin that is worth most; None where the bin cannot keep what it must.

        Args:
            number: of the bin.
            prices: what it is worth to cover each item, its migration aside.
            room_prices: what a room of so many units is worth, not descending; larger rooms are worth the last.
        """
        instance = self._instance
        bin_ = instance.bins[number]
        own = np.array(bin_.own, dtype=np.int64)
        values = prices[own] + instance.weight * instance.sizes[own]
        limit = bin_.packing_capacity if bin_.receives_required else bin_.capacity
        load = float(instance.sizes[list(bin_.required)].sum())
        best: tuple[float, tuple[int, ...]] | None = None
        widest = int((limit - load + FIT_TOLERANCE / 10) * self.units)
        if widest >= 0:
            sets = best_sets(values, self._up[own], widest)
            packing = int((bin_.packing_capacity - load + FIT_TOLERANCE / 10) * self.units)
            total = sets.values + _room_values(room_prices, packing, widest)
            at = int(np.argmax(total))
            chosen = sets.sets_in(np.array([at]))[0]
            best = float(total[at]), (*own[list(chosen)].tolist(), *bin_.required)
        if not bin_.required:
            for value, item in zip(values.tolist(), bin_.own, strict=True):
                if instance.sizes[item] > max(1.0, bin_.capacity) and (best is None or value > best[0]):
                    best = value, (item,)
        elif best is None and len(bin_.required) == 1:
            best = 0.0, bin_.required
        return None if best is None else kept_set(instance, number, set(best[1]) - set(bin_.required))

    def worth(self, number: int, prices: Floats, room_prices: Floats) -> float:
        """What no kept set of the bin, its room included, is worth more than; minus infinity where there is none."""
        instance = self._instance
        bin_ = instance.bins[number]
        own, base = np.array(bin_.own, dtype=np.int64), np.array(bin_.required, dtype=np.int64)
        values = prices[own] + instance.weight * instance.sizes[own]
        load = float(instance.sizes[base].sum())
        worth = instance.weight * float(instance.sizes[base[instance.home[base] == number]].sum())
        best = -np.inf
        widest = int(np.ceil((bin_.capacity - load) * self.units))
        if widest >= 0:
            packing = int(np.ceil((bin_.packing_capacity - load) * self.units))
            rooms = _room_values(room_prices, packing, widest)
            best = worth + float((best_values(values, self._down[own], widest) + rooms).max())
        if not len(base):
            best = max(best, float(values[instance.sizes[own] > bin_.capacity].max(initial=-np.inf)))
        elif len(base) == 1 and load > bin_.capacity:
            best = max(best, worth)
        return best


def _room_values(room_prices: Floats, packing: int, widest: int) -> Floats:
    """What the room is worth that is left beside 0 to `widest` units."""
    values: Floats = room_prices[np.clip(packing - np.arange(widest + 1), 0, len(room_prices) - 1)]
    return values
