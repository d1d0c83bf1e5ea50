"""What a consumer may keep: the subsets of its partitions that fit it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from solver.exact.instance import FIT_TOLERANCE, Bin, Floats, Instance, Ints
from solver.exact.knapsack import best_sets, best_values


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
    subsets: list[tuple[tuple[int, ...], float]] = [((), instance.load_of(bin_.required))]
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
    if not kept:
        return None
    room = instance.room_beside(bin_, kept)
    if room is None:
        return None
    return KeptSet(number, kept, _saving(instance, number, kept), room)


def most_kept(instance: Instance, bins: Iterable[int]) -> list[KeptSet]:
    """For each of `bins` the set that leaves least behind, or nearly so (a subset sum on a grid)."""
    pricing = KeptPricing(instance, sorted(bins), lambda rooms: np.zeros(len(rooms), dtype=np.int64))
    return pricing.best(instance.sizes, np.zeros(1))


class KeptPricing:
    """What bins should keep at given prices, where the sets of all together are too many to list.

    For a bin with few items that is the best of all its sets, exactly; for one with many, a knapsack on a grid.
    """

    units = 4096
    """To a capacity, in the knapsacks that find sets."""
    _few = 12
    """Items."""

    def __init__(self, instance: Instance, bins: Sequence[int], level_of: Callable[[Floats], Ints]) -> None:
        """Prices `bins`; `level_of` says which of the prices of rooms is that of a room, in capacities."""
        self._instance = instance
        self._bins = bins
        self._level_of = level_of
        self._up = np.ceil((instance.sizes - FIT_TOLERANCE / 10) * self.units).astype(np.int64)
        by_count: dict[int, list[int]] = {}
        for place, number in enumerate(bins):
            by_count.setdefault(len(instance.bins[number].own), []).append(place)
        self._listed = [
            _Subsets(instance, bins, places, level_of) for count, places in by_count.items() if count <= self._few
        ]
        self._others = [place for count, places in by_count.items() if count > self._few for place in places]

    def best(self, prices: Floats, room_prices: Floats) -> list[KeptSet]:
        """For each of the bins, in their order, the kept set that is worth most; none where that is an empty bin.

        Args:
            prices: what it is worth to cover each item, its migration aside.
            room_prices: what a room of each level is worth.
        """
        found: dict[int, tuple[int, ...] | None] = {}
        for subsets in self._listed:
            found.update(subsets.best(prices, room_prices))
        by_unit = room_prices[self._level_of(np.arange(self.units + 1) / self.units)] if self._others else room_prices
        for place in self._others:
            found[place] = self._knapsack(self._bins[place], prices, by_unit)
        kept = []
        for place, items in sorted(found.items()):
            chosen = None if items is None else kept_set(self._instance, self._bins[place], items)
            if chosen is not None:
                kept.append(chosen)
        return kept

    def worths(self, prices: Floats, room_prices: Floats, units: int) -> Floats:
        """What no kept set of each bin, its room included, is worth more than; minus infinity where there is none."""
        worths = np.full(len(self._bins), -np.inf)
        for subsets in self._listed:
            worths[subsets.places] = subsets.values(prices, room_prices).max(axis=1)
        if self._others:
            by_unit = room_prices[self._level_of(np.arange(units + 1) / units)]
            down = np.floor((self._instance.sizes + FIT_TOLERANCE / 10) * units).astype(np.int64)
            for place in self._others:
                worths[place] = self._knapsack_worth(self._bins[place], prices, by_unit, down)
        return worths

    def _knapsack(self, number: int, prices: Floats, by_unit: Floats) -> tuple[int, ...] | None:
        instance, bin_ = self._instance, self._instance.bins[number]
        own = np.array(bin_.own, dtype=np.int64)
        values = prices[own] + instance.weight * instance.sizes[own]
        limit = bin_.packing_capacity if bin_.receives_required else bin_.capacity
        load = instance.load_of(bin_.required)
        best: tuple[float, tuple[int, ...]] | None = None
        widest = int((limit - load + FIT_TOLERANCE / 10) * self.units)
        if widest >= 0:
            sets = best_sets(values, self._up[own], widest)
            packing = int((bin_.packing_capacity - load + FIT_TOLERANCE / 10) * self.units)
            total = sets.values + _room_values(by_unit, packing, widest)
            at = int(np.argmax(total))
            best = float(total[at]), tuple(own[list(sets.sets_in(np.array([at]))[0])].tolist())
        if not bin_.required:
            for value, item in zip(values.tolist(), bin_.own, strict=True):
                if (
                    instance.sizes[item] > 1
                    and instance.kinds[bin_.kind].is_largest
                    and (best is None or value > best[0])
                ):
                    best = value, (item,)
        elif best is None and len(bin_.required) == 1:
            best = 0.0, ()
        return None if best is None else best[1]

    def _knapsack_worth(self, number: int, prices: Floats, by_unit: Floats, down: Ints) -> float:
        instance, bin_ = self._instance, self._instance.bins[number]
        units = len(by_unit) - 1
        own, base = np.array(bin_.own, dtype=np.int64), np.array(bin_.required, dtype=np.int64)
        values = prices[own] + instance.weight * instance.sizes[own]
        load = float(instance.sizes[base].sum())
        worth = _saving(instance, number, base)
        best = -np.inf
        widest = int(np.ceil((bin_.capacity - load) * units))
        if widest >= 0:
            packing = int(np.ceil((bin_.packing_capacity - load) * units))
            rooms = _room_values(by_unit, packing, widest)
            best = worth + float((best_values(values, down[own], widest) + rooms).max())
        if not len(base):
            best = max(best, float(values[instance.sizes[own] > bin_.capacity].max(initial=-np.inf)))
        elif len(base) == 1 and load > bin_.capacity:
            best = max(best, worth)
        return best


class _Subsets:
    """All kept sets of bins that have the same number of items of their own, side by side.

    The set with the number `n` has the item at place `j` of `Bin.own` where bit `j` of `n` is set.
    """

    def __init__(
        self, instance: Instance, bins: Sequence[int], places: Sequence[int], level_of: Callable[[Floats], Ints]
    ) -> None:
        self.places = np.array(places, dtype=np.int64)
        chosen = [instance.bins[bins[place]] for place in places]
        count = len(chosen[0].own)
        self._own = np.array([bin_.own for bin_ in chosen], dtype=np.int64).reshape(len(chosen), count)
        self._saving = instance.weight * instance.sizes[self._own]
        required = np.array([instance.load_of(bin_.required) for bin_ in chosen])
        loads = required[:, None] + _sums(instance.sizes[self._own])
        capacity = np.array([bin_.capacity for bin_ in chosen])[:, None]
        packing = np.array([bin_.packing_capacity for bin_ in chosen])[:, None]
        receives = np.array([bin_.receives_required for bin_ in chosen])[:, None]
        counts = np.array([len(bin_.required) for bin_ in chosen])[:, None] + _sums(np.ones((1, count)))
        limits = np.where(receives & (counts > 1), packing, capacity)
        alone = (counts == 1) & (loads > capacity)
        too_fast_for_all = (loads > 1) & np.array([instance.kinds[bin_.kind].is_largest for bin_ in chosen])[:, None]
        must_be_there = counts > _sums(np.ones((1, count)))
        allowed = np.where(alone, too_fast_for_all | must_be_there, loads <= limits + FIT_TOLERANCE * capacity)
        rooms = np.where(alone, 0.0, np.maximum(0.0, packing - loads))
        self._levels = level_of(rooms.ravel()).reshape(rooms.shape)
        base = np.array(
            [_saving(instance, bins[place], bin_.required) for place, bin_ in zip(places, chosen, strict=True)]
        )
        self._base = np.where(allowed, base[:, None], -np.inf)

    def values(self, prices: Floats, room_prices: Floats) -> Floats:
        """What each set of each bin is worth, its room included."""
        return self._base + _sums(prices[self._own] + self._saving) + room_prices[self._levels]

    def best(self, prices: Floats, room_prices: Floats) -> Iterable[tuple[int, tuple[int, ...] | None]]:
        """The items of each bin's best set, beside the bin's place; None where the bin cannot keep what it must."""
        values = self.values(prices, room_prices)
        at = values.argmax(axis=1)
        possible = np.isfinite(values[np.arange(len(at)), at])
        for place, own, number, is_possible in zip(
            self.places.tolist(), self._own.tolist(), at.tolist(), possible.tolist(), strict=True
        ):
            items = tuple(item for bit, item in enumerate(own) if number >> bit & 1)
            yield place, items if is_possible else None


def _sums(values: Floats) -> Floats:
    """The sum of every subset of each row, numbered as in `_Subsets`."""
    sums = np.zeros((len(values), 1))
    for column in values.T:
        sums = np.concatenate([sums, sums + column[:, None]], axis=1)
    return sums


def _saving(instance: Instance, number: int, items: Iterable[int]) -> float:
    """What it saves that those of `items` stay that are at home on the bin `number`."""
    return instance.weight * instance.load_of(item for item in items if instance.home[item] == number)


def _room_values(room_prices: Floats, packing: int, widest: int) -> Floats:
    """What the room is worth that is left beside 0 to `widest` units."""
    values: Floats = room_prices[np.clip(packing - np.arange(widest + 1), 0, len(room_prices) - 1)]
    return values
