"""A lower bound for groups that are too large for `master`: the same relaxation over classes of like sizes.

Sizes of moved partitions are rounded down to units of a capacity and rooms up, so that nothing that fits in truth is
lost: the bound is a bound of the true problem. What is kept, and what moving costs, is not rounded. The number of
patterns, levels and classes depends on the unit and not on the number of partitions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from solver.deadline import Deadline
from solver.exact.instance import FIT_TOLERANCE, Floats, Instance, Ints
from solver.exact.kept import KeptPricing, KeptSet, Listing
from solver.exact.knapsack import best_sets
from solver.exact.relaxation import KeptSets, Limits, Prices, Relaxation, alone_on, lagrangian_bound
from solver.parameters import TUNED, Parameters

_GAIN = 1e-7
"""What a column must gain to be worth adding, in consumers."""
_AT_A_TIME = 1000
"""Kept sets that are added between two looks at the clock."""


@dataclass(frozen=True, slots=True)
class Coarse:
    """What came of a coarse relaxation."""

    bound: float
    """Of the true problem; minus infinity if time was up too early."""
    kept: tuple[KeptSet, ...]
    """The kept sets that it had in the end: the given ones, and those that were generated."""


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
        units: to a capacity; the finer, the higher the bound and the longer it takes.
        consumers: the fewest and the most.
        deadline: when to stop.
        tuned: what it is tuned by.
    """
    relaxation = _Coarse(instance, units, consumers, listing.partial)
    for start in range(0, len(listing.sets), _AT_A_TIME):
        if deadline.passed:
            break
        relaxation.add_kept(listing.sets[start : start + _AT_A_TIME])
    return Coarse(relaxation.bound(deadline, tuned), tuple(relaxation.kept))


class _Coarse:
    def __init__(self, instance: Instance, units: int, consumers: tuple[int, int], partial: frozenset[int]) -> None:
        self._instance = instance
        self._units = units
        self._limits = Limits(*consumers)
        self._partial = np.array(sorted(partial), dtype=np.int64)
        self._partial_kinds = np.array([instance.bins[number].kind for number in self._partial], dtype=np.int64)
        self._pricing = KeptPricing(instance, self._partial.tolist(), self._levels)
        self.kept: list[KeptSet] = []
        self._known_kept: set[tuple[int, tuple[int, ...]]] = set()
        self._patterns: set[tuple[int, ...]] = set()

        rounded = np.minimum(np.floor((instance.sizes + FIT_TOLERANCE / 10) * units), units).astype(np.int64)
        # Two items or more go together only up to where a new consumer is packed; a single one may be as large as it.
        self._widest = min(units, int((instance.packing_capacity + FIT_TOLERANCE / 10) * units))
        self._classes, class_of = np.unique(rounded, return_inverse=True)
        self._must = np.array([bool(bin_.required) for bin_ in instance.bins], dtype=np.bool_)
        rooms = np.array([instance.kinds[kind].packing_capacity for kind in instance.offered[:-1]])
        self._opened = list(zip(instance.offered, [*self._levels(rooms).tolist(), units], strict=True))
        self._model = Relaxation(instance, class_of, units + 1, self._opened, self._must, self._limits)
        self._alone = alone_on(instance, self._classes / units, self._model.demand > 0, units)
        for each in self._alone.tolist():
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
            self._model.add_kept(chosen, level)

    def _add_patterns(self, patterns: Iterable[tuple[int, ...]]) -> int:
        added = 0
        for pattern in patterns:
            if pattern and pattern not in self._patterns:
                self._patterns.add(pattern)
                added += 1
                self._model.add_pattern(pattern, int(self._classes[list(pattern)].sum()))
        return added

    def _add_best_patterns(self, prices: Floats, room_prices: Floats) -> tuple[int, Floats]:
        """Adds the pattern that is worth most for each level where it gains; also says what they are worth."""
        sets = best_sets(prices[self._copies], self._classes[self._copies], self._widest)
        gaining = np.flatnonzero(sets.values > room_prices[: self._widest + 1] + _GAIN)
        patterns = [tuple(self._copies[list(copies)].tolist()) for copies in sets.sets_in(gaining)]
        values = np.full(self._units + 1, sets.values[-1])
        values[: self._widest] = sets.values[:-1]
        np.maximum.at(values, self._classes, prices)
        return self._add_patterns(patterns), np.maximum.accumulate(values)

    def _generate(self, at: Prices) -> int:
        """Adds the kept set that is worth most of each bin of which not all are there, where it gains."""
        found = [k for k in self._pricing.best(at.items, at.rooms) if (k.bin, k.items) not in self._known_kept]
        sets = self._arrays(found)
        gains = at.bins[sets.bins] - sets.costs(at.items, at.rooms, at.per_bin) > _GAIN
        self.add_kept([found[index] for index in np.flatnonzero(gains).tolist()])
        return int(gains.sum())

    def _arrays(self, kept: Sequence[KeptSet]) -> KeptSets:
        return KeptSets.of(self._instance, kept, self._levels(np.array([k.room for k in kept])))

    def bound(self, deadline: Deadline, tuned: Parameters) -> float:
        """The best bound that there is time for."""
        listed = self._arrays(self.kept)
        best = value = -np.inf
        slow = 0
        while not deadline.passed:
            point = self._model.program.relax(deadline, dual=value == -np.inf)
            if point is None:
                break
            before, value = value, point.objective + self._instance.constant
            at = self._model.prices(point)
            added, values = self._add_best_patterns(at.rows, at.rooms)
            added += self._generate(at)
            slow = slow + 1 if abs(before - value) < tuned.coarse_slow * value else 0
            is_last = not added or slow == tuned.coarse_patience
            true_prices = np.maximum(at.rooms, values)
            # Prices at which an empty bin could be filled for more than it costs prove little: they are also tried at
            # a scale at which it cannot (Farley 1990).
            worths = self._worths(at, values)
            scale = max(1.0, *(worth / max(float(at.per_bin[kind]), _GAIN) for worth, kind in worths))
            for each in {1.0, scale}:
                empty = min(float(at.per_bin[kind]) - worth / each for worth, kind in self._worths(at, true_prices))
                reached = self._bound(at.items / each, true_prices / each, at.per_bin, empty, listed, fine=is_last)
                best = max(best, reached)
            if is_last or value - best <= tuned.coarse_close * value:
                break
        return best

    def _worths(self, at: Prices, room_prices: Floats) -> list[tuple[float, int]]:
        """What an empty bin is worth at most, beside its kind, by each way in which it can be filled."""
        filled = [(float(room_prices[level]), kind) for kind, level in self._opened]
        return filled + [(float(at.rows[row]), kind) for row, kind in self._alone.tolist()]

    def _bound(
        self, prices: Floats, room_prices: Floats, per_bin: Floats, empty: float, listed: KeptSets, *, fine: bool
    ) -> float:
        """The Lagrangian bound at these prices; a room costs at least what any pattern that fits it is worth."""
        kept = np.where(self._must, np.inf, 0.0)
        np.minimum.at(kept, listed.bins, listed.costs(prices, room_prices, per_bin))
        units = KeptPricing.finest_units if fine else KeptPricing.units
        least = per_bin[self._partial_kinds] - self._pricing.worths(prices, room_prices, units)
        kept[self._partial] = np.where(self._must[self._partial], least, np.minimum(least, 0.0))
        return lagrangian_bound(self._instance, prices, empty, per_bin, kept, self._limits)
