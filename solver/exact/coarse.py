"""A lower bound for groups that are too large for `master`: by the prices of the same relaxation over like sizes.

There, sizes of moved partitions are rounded down to units of a capacity and rooms up. The number of patterns, levels
and classes of sizes depends on the unit and not on the number of partitions. What it is for are its dual values: prices
of sizes, between which the price of each item lies. Whatever they are, `Lagrangian` says what they prove.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from solver.deadline import Deadline
from solver.exact.instance import FIT_TOLERANCE, Floats, Instance, Ints
from solver.exact.kept import KeptPricing, KeptSet, Listing
from solver.exact.knapsack import best_sets, best_values
from solver.exact.linear_program import Point
from solver.exact.relaxation import KeptSets, Limits, Prices, Relaxation, alone_on, lagrangian_bound
from solver.parameters import TUNED, Parameters

_GAIN = 1e-7
"""What a column must gain to be worth adding, in consumers."""
_WHOLE = 1e-6
"""A share is all that there is if it lacks no more."""
_AT_A_TIME = 1000
"""Kept sets that are added between two looks at the clock."""


@dataclass(frozen=True, slots=True)
class Coarse:
    """What came of a coarse relaxation."""

    bound: float
    """Of the true problem; minus infinity if time was up too early."""
    kept: tuple[KeptSet, ...]
    """The kept sets that it had in the end: the given ones, and those that were generated."""
    shares: Mapping[int, Mapping[tuple[int, ...], float]]
    """How much of each kept set of a bin is in its solution; 1 in all where the bin is open, the largest last."""

    @property
    def chosen(self) -> dict[int, tuple[int, ...]]:
        """What each bin keeps by and large; without bins that are closed rather than open."""
        return {number: list(sets)[-1] for number, sets in self.shares.items() if sum(sets.values()) >= 0.5}

    def roundings(self, chance: np.random.Generator, most: int) -> Iterator[dict[int, tuple[int, ...]]]:
        """What each bin keeps: by and large, and then by chance, each set as often as its share is; no two alike.

        Bins of which the solution has one set alone keep that in each of them (Raghavan and Thompson 1987).
        """
        seen = set[tuple[tuple[int, ...] | None, ...]]()
        divided = {number: sets for number, sets in self.shares.items() if max(sets.values()) < 1 - _WHOLE}
        rounding = self.chosen
        for _ in range(most):
            key = tuple(rounding.get(number) for number in divided)
            if key not in seen:
                seen.add(key)
                yield rounding
            if not divided:
                return
            rounding = rounding.copy()
            for (number, sets), drawn in zip(divided.items(), chance.random(len(divided)).tolist(), strict=True):
                place = int(np.searchsorted(np.cumsum(list(sets.values())), drawn, side="right"))
                rounding.pop(number, None)
                if place < len(sets):
                    rounding[number] = list(sets)[place]


def coarse_bound(
    instance: Instance,
    listing: Listing,
    units: int,
    consumers: tuple[int, int],
    deadline: Deadline,
    tuned: Parameters = TUNED,
) -> Coarse:
    """A lower bound of the objective over all assignments with so many consumers, the fewest and the most.

    Args:
        instance: what is to be solved.
        listing: the kept sets that there are; of the bins that it has in part, more are found as they pay.
        units: to a capacity, in the relaxation; the finer, the higher the bound and the longer it takes.
        consumers: the fewest and the most.
        deadline: when to stop.
        tuned: what it is tuned by.
    """
    fine = tuned.fine_units if len(instance.sizes) <= tuned.fine_partitions else tuned.units
    limits = Limits(*consumers)
    relaxation = _Coarse(instance, listing, units, limits, Lagrangian(instance, listing, limits, fine))
    for start in range(0, len(listing.sets), _AT_A_TIME):
        if deadline.passed:
            break
        relaxation.add_kept(listing.sets[start : start + _AT_A_TIME])
    bound = relaxation.bound(deadline, tuned)
    return Coarse(bound, tuple(relaxation.kept), relaxation.shares())


class _Coarse:
    def __init__(
        self, instance: Instance, listing: Listing, units: int, limits: Limits, lagrangian: "Lagrangian"
    ) -> None:
        self._instance = instance
        self._units = units
        self._lagrangian = lagrangian
        self._pricing = KeptPricing(instance, sorted(listing.partial), self._levels)
        self.kept: list[KeptSet] = []
        self._kept_columns: list[int] = []
        self._last: Point | None = None
        self._known_kept: set[tuple[int, tuple[int, ...]]] = set()
        self._patterns: set[tuple[int, ...]] = set()

        rounded = np.minimum(np.floor((instance.sizes + FIT_TOLERANCE / 10) * units), units).astype(np.int64)
        # Two items or more go together only up to where a new consumer is packed; a single one may be as large as it.
        self._widest = min(units, int((instance.packing_capacity + FIT_TOLERANCE / 10) * units))
        self._classes, class_of = np.unique(rounded, return_inverse=True)
        self._means = np.bincount(class_of, lagrangian.sizes) / np.maximum(np.bincount(class_of), 1)
        must = np.array([bool(bin_.required) for bin_ in instance.bins], dtype=np.bool_)
        rooms = np.array([instance.kinds[kind].packing_capacity for kind in instance.offered[:-1]])
        opened = list(zip(instance.offered, [*self._levels(rooms).tolist(), units], strict=True))
        self._model = Relaxation(instance, class_of, units + 1, opened, must, limits)
        for each in alone_on(instance, self._classes / units, self._model.demand > 0, units).tolist():
            self._model.add_alone(*each)
        # A class is offered to a pattern as often as it fits, and as there are items in it.
        demand = self._model.demand
        fitting = np.where(self._classes > 0, units // np.maximum(self._classes, 1), demand)
        self._copies = np.repeat(np.arange(len(self._classes)), np.minimum(demand, fitting))[::-1]
        self._add_patterns((number,) for number in range(len(self._classes)))
        self._add_best_patterns(self._classes / units, np.full(units + 1, -1.0))

    def _levels(self, rooms: Floats) -> Ints:
        levels = np.ceil((rooms - FIT_TOLERANCE / 10) * self._units).astype(np.int64)
        return np.minimum(levels, self._units)

    def add_kept(self, kept: Sequence[KeptSet]) -> None:
        levels = self._levels(np.array([k.room for k in kept]))
        for chosen, level in zip(kept, levels.tolist(), strict=True):
            self.kept.append(chosen)
            self._known_kept.add((chosen.bin, chosen.items))
            self._kept_columns.append(self._model.add_kept(chosen, level))

    def _add_patterns(self, patterns: Iterable[tuple[int, ...]]) -> int:
        added = 0
        for pattern in patterns:
            if pattern and pattern not in self._patterns:
                self._patterns.add(pattern)
                added += 1
                self._model.add_pattern(pattern, int(self._classes[list(pattern)].sum()))
        return added

    def _add_best_patterns(self, prices: Floats, room_prices: Floats) -> int:
        """Adds the pattern that is worth most for each level where it gains."""
        sets = best_sets(prices[self._copies], self._classes[self._copies], self._widest)
        gaining = np.flatnonzero(sets.values > room_prices[: self._widest + 1] + _GAIN)
        return self._add_patterns(tuple(self._copies[list(copies)].tolist()) for copies in sets.sets_in(gaining))

    def _generate(self, at: Prices) -> int:
        """Adds the kept set that is worth most of each bin of which not all are there, where it gains."""
        found = [k for k in self._pricing.best(at.items, at.rooms) if (k.bin, k.items) not in self._known_kept]
        sets = KeptSets.of(self._instance, found, self._levels(np.array([k.room for k in found])))
        gains = at.bins[sets.bins] - sets.costs(at.items, at.rooms, at.per_bin) > _GAIN
        self.add_kept([found[index] for index in np.flatnonzero(gains).tolist()])
        return int(gains.sum())

    def bound(self, deadline: Deadline, tuned: Parameters) -> float:
        """The best bound that there is time for."""
        best = value = -np.inf
        slow = 0
        while not deadline.passed and slow < tuned.coarse_patience:
            point = self._model.program.relax(deadline, dual=value == -np.inf)
            if point is None:
                break
            self._last = point
            at = self._model.prices(point)
            added = self._add_best_patterns(at.rows, at.rooms) + self._generate(at)
            before, value = (value, best), point.objective + self._instance.constant
            best = max(best, self._lagrangian.bound(self._by_size(at.rows), at.per_bin))
            gained = abs(before[0] - value) + best - before[1]
            slow = slow + 1 if gained < tuned.coarse_slow * value else 0
            if not added or 0 <= value - best <= tuned.coarse_close * value:
                break
        return best

    def shares(self) -> dict[int, dict[tuple[int, ...], float]]:
        """How much of each kept set of a bin is in the last solution, in ascending order of that."""
        shares: dict[int, dict[tuple[int, ...], float]] = {}
        if self._last is None:
            return shares
        columns = [column for column in self._kept_columns if column < len(self._last.values)]
        values = self._last.values[columns]
        for index in np.argsort(values, kind="stable").tolist():
            if values[index] > 0:
                kept = self.kept[index]
                shares.setdefault(kept.bin, {})[kept.items] = float(values[index])
        return shares

    def _by_size(self, rows: Floats) -> Floats:
        """The price of each item between those of the two classes that its size is nearest to."""
        prices = np.interp(
            self._lagrangian.sizes, np.append(0.0, self._means), np.append(0.0, np.maximum.accumulate(rows))
        )
        return np.where(self._model.free, prices, 0.0)


class Lagrangian:
    """What prices prove, by sizes and rooms that are hardly rounded: down and up, so that nothing that fits is lost."""

    def __init__(self, instance: Instance, listing: Listing, limits: Limits, units: int) -> None:
        self._instance = instance
        self._limits = limits
        self._units = units
        self.sizes = np.minimum(instance.sizes, 1.0)
        self._down = np.floor((self.sizes + FIT_TOLERANCE / 10) * units).astype(np.int64)
        self._listed = KeptSets.of(instance, listing.sets, self._levels(np.array([k.room for k in listing.sets])))
        self._partial = np.array(sorted(listing.partial), dtype=np.int64)
        self._partial_kinds = np.array([instance.bins[number].kind for number in self._partial], dtype=np.int64)
        self._pricing = KeptPricing(instance, self._partial.tolist(), self._levels)
        self._must = np.array([bool(bin_.required) for bin_ in instance.bins], dtype=np.bool_)
        free = np.ones(len(self.sizes), dtype=np.bool_)
        free[[item for bin_ in instance.bins for item in bin_.required]] = False
        self._alone = alone_on(instance, instance.sizes, free)
        rooms = np.array([instance.kinds[kind].packing_capacity for kind in instance.offered])
        self._widest = int(self._levels(rooms)[-1])
        self._opened = list(zip(instance.offered, [*self._levels(rooms[:-1]).tolist(), units], strict=True))

    def _levels(self, rooms: Floats) -> Ints:
        return np.minimum(np.ceil((rooms - FIT_TOLERANCE / 10) * self._units).astype(np.int64), self._units)

    def bound(self, items: Floats, per_bin: Floats) -> float:
        """No plan costs less than this, whatever the prices. A room costs what the best set that fits it is worth.

        Prices at which an empty bin could be filled for more than it costs prove little: they are also tried at a scale
        at which it cannot (Farley 1990).
        """
        rooms = np.empty(self._units + 1)
        rooms[: self._widest + 1] = best_values(items, self._down, self._widest)
        rooms[self._widest :] = rooms[self._widest]
        np.maximum.at(rooms, self._down, items)
        rooms = np.maximum.accumulate(rooms)
        worths = [(float(rooms[level]), kind) for kind, level in self._opened]
        worths += [(float(items[item]), kind) for item, kind in self._alone.tolist()]
        scale = max(1.0, *(worth / max(float(per_bin[kind]), _GAIN) for worth, kind in worths))
        return max(self._at(items / each, rooms / each, per_bin, worths, each) for each in {1.0, scale})

    def _at(
        self, items: Floats, rooms: Floats, per_bin: Floats, worths: Sequence[tuple[float, int]], scale: float
    ) -> float:
        empty = min(float(per_bin[kind]) - worth / scale for worth, kind in worths)
        kept = np.where(self._must, np.inf, 0.0)
        np.minimum.at(kept, self._listed.bins, self._listed.costs(items, rooms, per_bin))
        least = per_bin[self._partial_kinds] - self._pricing.worths(items, rooms, self._units)
        kept[self._partial] = np.where(self._must[self._partial], least, np.minimum(least, 0.0))
        return lagrangian_bound(self._instance, items, empty, per_bin, kept, self._limits)
