"""A lower bound for groups that are too large for `master`: the same relaxation over classes of like sizes.

Sizes of moved partitions are rounded down to units of a capacity and rooms up, so that nothing that fits in truth is
lost: the bound is a bound of the true problem. What is kept, and what moving costs, is not rounded. The number of
paths, levels and classes depends on the unit and not on the number of partitions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from solver.deadline import Deadline
from solver.instance import FIT_TOLERANCE, Floats, Instance, Ints
from solver.kept import KeptPricing, KeptSet, Listing
from solver.knapsack import best_sets
from solver.linear_program import LinearProgram

_GAIN = 1e-7
"""What a column must gain to be worth adding, in consumers."""
_CLOSE = 1e-4
"""Share of its value that the relaxation may be above its bound and be done."""
_SLOW, _PATIENCE = 2e-5, 10
"""The relaxation is done when in so many iterations in a row it gains less than this share of its value."""
_MISSING = 50.0
"""What it costs in the relaxation to leave an item out, in consumers."""
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
) -> Coarse:
    """A lower bound of the objective over all assignments with so many consumers, the fewest and the most.

    Args:
        instance: what is to be solved.
        listing: the kept sets that there are; of the bins that it has in part, more are found as they pay.
        units: to a capacity; the finer, the higher the bound and the longer it takes.
        consumers: the fewest and the most.
        deadline: when to stop.
    """
    relaxation = _Relaxation(instance, units, consumers, listing.partial)
    for start in range(0, len(listing.sets), _AT_A_TIME):
        if deadline.passed:
            break
        relaxation.add_kept(listing.sets[start : start + _AT_A_TIME])
    return Coarse(relaxation.bound(deadline), tuple(relaxation.kept))


class _Relaxation:
    def __init__(self, instance: Instance, units: int, consumers: tuple[int, int], partial: frozenset[int]) -> None:
        self._instance = instance
        self._units = units
        self._consumers = consumers
        self._partial = np.array(sorted(partial), dtype=np.int64)
        self._pricing = KeptPricing(instance, self._partial.tolist(), self._levels)
        self.kept: list[KeptSet] = []
        self._known_kept: set[tuple[int, tuple[int, ...]]] = set()
        self._paths: set[tuple[int, ...]] = set()

        self._free = np.ones(len(instance.sizes), dtype=np.bool_)
        self._free[[item for bin_ in instance.bins for item in bin_.required]] = False
        rounded = np.minimum(np.floor((instance.sizes + FIT_TOLERANCE / 10) * units), units).astype(np.int64)
        # Two items or more go together only up to where a new consumer is packed; a single one may be as large as it.
        self._widest = min(units, int((instance.packing_capacity + FIT_TOLERANCE / 10) * units))
        self._classes, self._class_of = np.unique(rounded, return_inverse=True)
        self._demand = np.bincount(self._class_of[self._free], minlength=len(self._classes))
        # A class is offered to a path as often as it fits, and as there are items in it.
        fitting = np.where(self._classes > 0, units // np.maximum(self._classes, 1), self._demand)
        self._copies = np.repeat(np.arange(len(self._classes)), np.minimum(self._demand, fitting))[::-1]
        self._must = np.array([bool(bin_.required) for bin_ in instance.bins], dtype=np.bool_)

        program = LinearProgram()
        self._program = program
        self._class_rows = [program.add_row(float(count)) for count in self._demand.tolist()]
        self._bin_rows = [program.add_row(1.0 if must else 0.0, 1.0) for must in self._must.tolist()]
        self._level_rows = [program.add_row() for _ in range(units + 1)]
        self._count_row = program.add_row(0.0, 0.0)
        fewest, most = consumers
        program.add_column(1.0, takes=[self._count_row], lower=float(fewest), upper=float(most))
        program.add_column(0.0, [self._level_rows[units], self._count_row])
        for upper, lower in zip(self._level_rows[1:], self._level_rows[:-1], strict=True):
            program.add_column(0.0, [lower], [upper])
        for row in [*self._class_rows, *self._bin_rows]:
            program.add_column(_MISSING, [row])
        self._add_paths((number,) for number in range(len(self._classes)))
        self._add_best_paths(self._classes / units, np.full(units + 1, -1.0))

    def _levels(self, rooms: Floats) -> Ints:
        levels = np.ceil((rooms - FIT_TOLERANCE / 10) * self._units).astype(np.int64)
        return np.minimum(levels, self._units)

    def add_kept(self, kept: Sequence[KeptSet]) -> None:
        levels = self._levels(np.array([k.room for k in kept]))
        for chosen, level in zip(kept, levels.tolist(), strict=True):
            self.kept.append(chosen)
            self._known_kept.add((chosen.bin, chosen.items))
            rows = [self._class_rows[self._class_of[item]] for item in chosen.items if self._free[item]]
            rows += [self._bin_rows[chosen.bin], self._count_row, self._level_rows[level]]
            self._program.add_column(-chosen.saving, rows)

    def _add_paths(self, paths: Iterable[tuple[int, ...]]) -> int:
        added = 0
        for path in paths:
            if path and path not in self._paths:
                self._paths.add(path)
                added += 1
                level = self._level_rows[int(self._classes[list(path)].sum())]
                self._program.add_column(0.0, [self._class_rows[number] for number in path], [level])
        return added

    def _add_best_paths(self, prices: Floats, room_prices: Floats) -> tuple[int, Floats]:
        """Adds the path that is worth most for each level where it gains; also says what they are worth."""
        sets = best_sets(prices[self._copies], self._classes[self._copies], self._widest)
        gaining = np.flatnonzero(sets.values > room_prices[: self._widest + 1] + _GAIN)
        paths = [tuple(self._copies[list(copies)].tolist()) for copies in sets.sets_in(gaining)]
        values = np.full(self._units + 1, sets.values[-1])
        values[: self._widest] = sets.values[:-1]
        np.maximum.at(values, self._classes, prices)
        return self._add_paths(paths), np.maximum.accumulate(values)

    def _generate(self, prices: Floats, room_prices: Floats, per_bin: float, bin_prices: Floats) -> int:
        """Adds the kept set that is worth most of each bin of which not all are there, where it gains."""
        gaining = []
        for found in self._pricing.best(prices, room_prices):
            if (found.bin, found.items) not in self._known_kept:
                worth = found.saving + float(prices[list(found.items)].sum()) + float(bin_prices[found.bin])
                if worth + float(room_prices[self._levels(np.array([found.room]))[0]]) > per_bin + _GAIN:
                    gaining.append(found)
        self.add_kept(gaining)
        return len(gaining)

    def bound(self, deadline: Deadline) -> float:
        """The best bound that there is time for."""
        rooms = self._levels(np.array([k.room for k in self.kept]))
        members = np.array([item for k in self.kept for item in k.items], dtype=np.int64)
        member_of = np.repeat(np.arange(len(self.kept)), [len(k.items) for k in self.kept])
        listed = _Listed(
            bins=np.array([k.bin for k in self.kept], dtype=np.int64),
            savings=np.array([k.saving for k in self.kept]),
            rooms=rooms,
            members=members,
            member_of=member_of,
        )
        best = value = -np.inf
        slow = 0
        while not deadline.passed:
            point = self._program.relax(deadline, dual=value == -np.inf)
            if point is None:
                break
            before, value = value, point.objective + self._instance.constant
            classes, bins = len(self._classes), len(self._bin_rows)
            prices = np.maximum(point.duals[:classes], 0.0)
            bin_prices = point.duals[classes : classes + bins]
            levels = point.duals[classes + bins : classes + bins + self._units + 1]
            room_prices = np.maximum.accumulate(np.maximum(levels, 0.0))
            per_bin = -float(point.duals[self._count_row])
            by_item = np.where(self._free, prices[self._class_of], 0.0)
            added, values = self._add_best_paths(prices, room_prices)
            added += self._generate(by_item, room_prices, per_bin, bin_prices)
            slow = slow + 1 if abs(before - value) < _SLOW * value else 0
            is_last = not added or slow == _PATIENCE
            true_prices = np.maximum(room_prices, values)
            # Prices at which an empty bin could be filled for more than it costs prove little: they are also tried at
            # a scale at which it cannot (Farley 1990).
            for scale in {1.0, max(1.0, float(values[-1]) / max(per_bin, _GAIN))}:
                reached = self._at(by_item / scale, true_prices / scale, per_bin, listed, fine=is_last)
                best = max(best, reached)
            if is_last or value - best <= _CLOSE * value:
                break
        return best

    def _at(self, prices: Floats, room_prices: Floats, per_bin: float, listed: "_Listed", *, fine: bool) -> float:
        """The Lagrangian bound at these prices; a room costs at least what any path that fits it is worth."""
        cost = per_bin - listed.savings - room_prices[listed.rooms]
        cost -= np.bincount(listed.member_of, weights=prices[listed.members], minlength=len(cost))
        per_consumer = np.where(self._must, np.inf, 0.0)
        np.minimum.at(per_consumer, listed.bins, cost)
        units = KeptPricing.finest_units if fine else KeptPricing.units
        least = per_bin - self._pricing.worths(prices, room_prices, units)
        per_consumer[self._partial] = np.where(self._must[self._partial], least, np.minimum(least, 0.0))
        fewest, most = self._consumers
        rest = 1 - per_bin
        return float(
            self._instance.constant
            + prices.sum()
            + per_consumer.sum()
            + most * min(0.0, per_bin - float(room_prices[-1]))
            + (rest * fewest if rest >= 0 else rest * most)
        )


@dataclass(frozen=True, slots=True)
class _Listed:
    """Kept sets as arrays; the items of all of them lie one set after the other, beside whose they are."""

    bins: Ints
    savings: Floats
    rooms: Ints
    members: Ints
    member_of: Ints
