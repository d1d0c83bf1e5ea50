"""The arc-flow model, relaxed: its rows, its columns, and the bound that prices prove. Each is written down here only.

After Valerio de Carvalho (1999), with bins that are not alike. A bin that keeps a set of partitions has some room left
(`KeptSet.room`); an empty bin has all of it. Rooms are *levels* in ascending order, joined into a chain: room that
nobody takes on one level flows to the next below. A *pattern* is a set of moved partitions, and takes one room of the
lowest level that it fits. As patterns do not say which bin they are for, there are few of them.

    minimise    bins - sum of savings of kept sets                      (+ `Instance.constant`)
    subject to  every item is kept or on a pattern
                a bin keeps at most one set                             (exactly one where it has required items)
                on each level: rooms + what flows down to it >= patterns + what flows on
                lowest <= bins <= highest                               (bins = kept sets + empty bins)

Where bins are of several kinds, there is a number of bins of each kind, at its price, and an empty bin of a kind has
the level of what may be packed into it. An item that fits it only alone, being above that, has a column of its own. The
largest kind needs none: its level is above all others.

Its dual values price the items, bins and rooms. `master` has a row for each item, and `coarse` one for all items of
about the same size.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from solver.exact.instance import FIT_TOLERANCE, Floats, Instance, Ints
from solver.exact.kept import KeptSet
from solver.exact.linear_program import LinearProgram, Point

_MISSING = 50.0
"""What it costs to leave an item out, in consumers of the dearest kind: more than any plan that has it could cost in
its place."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What the dual values of a relaxation say that things are worth, in consumers."""

    rows: Floats
    """To cover an item of each row."""
    items: Floats
    """To cover each item; 0 where it is required."""
    bins: Floats
    rooms: Floats
    """Of each level, not descending."""
    per_bin: Floats
    """Of each kind."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How many bins there may be."""

    fewest: int = 0
    most: int = 10**9
    kinds: tuple[tuple[int, int], ...] = ()
    """The fewest and the most of each kind; empty where nothing but the sum is limited."""

    def of(self, kind: int) -> tuple[int, int]:
        return self.kinds[kind] if self.kinds else (0, self.most)

    def split(self, kind: int, kinds: int, at: int) -> tuple["Limits", "Limits"]:
        """At most, and more than, so many bins of one of so many kinds."""
        if kinds == 1:
            return replace(self, most=at), replace(self, fewest=at + 1)
        limits = [self.of(each) for each in range(kinds)]
        fewest, most = limits[kind]
        fewer, more = (*limits[:kind], (fewest, at)), (*limits[:kind], (at + 1, most))
        rest = limits[kind + 1 :]
        return replace(self, kinds=(*fewer, *rest)), replace(self, kinds=(*more, *rest))


NO_LIMITS = Limits()


class Relaxation:
    """The rows, and the columns that have been added: kept sets, and patterns by their rows."""

    def __init__(
        self,
        instance: Instance,
        row_of: Ints,
        levels: int,
        opened: Iterable[tuple[int, int]],
        must_keep: NDArray[np.bool_],
        limits: Limits,
        *,
        integers: bool = False,
        left_out: Iterable[int] = (),
    ) -> None:
        """The rows: that of each item is `row_of`. With `integers` it is the model itself, and nothing may be missing.

        `opened` is the level of an empty bin, by each kind that is offered. The items `left_out` need not be covered.
        """
        self.free = np.ones(len(instance.sizes), dtype=np.bool_)
        self.free[[item for bin_ in instance.bins for item in bin_.required]] = False
        covered = self.free.copy()
        covered[list(left_out)] = False
        self.demand = np.bincount(row_of[covered], minlength=int(row_of.max(initial=-1)) + 1)
        self.program = program = LinearProgram()
        self._row_of = row_of
        self._kind_of = [bin_.kind for bin_ in instance.bins]
        self._integers = integers
        items = [program.add_row(float(count)) for count in self.demand.tolist()]
        self.bin_rows = [program.add_row(1.0 if must else 0.0, 1.0) for must in must_keep.tolist()]
        self._levels = [program.add_row() for _ in range(levels)]
        prices = instance.prices.tolist()
        self._counts = [program.add_row(0.0, 0.0) for _ in prices]
        # Of one kind the sum is the number: it is limited where that is.
        self._sum = program.add_row(0.0, np.inf) if len(prices) > 1 else None
        missing = _MISSING * max(prices)
        self.missing = [] if integers else [program.add_column(missing, [row]) for row in [*items, *self.bin_rows]]
        sums = [] if self._sum is None else [self._sum]
        self.bins = [
            program.add_column(price, sums, [count], integer=integers)
            for price, count in zip(prices, self._counts, strict=True)
        ]
        self.limit(limits)
        for kind, level in opened:
            program.add_column(0.0, [self._levels[level], self._counts[kind]], integer=integers)
        for upper, lower in zip(self._levels[1:], self._levels[:-1], strict=True):
            program.add_column(0.0, [lower], [upper])

    def limit(self, limits: Limits) -> None:
        """Confines the number of bins."""
        if self._sum is None:
            self.program.bound_column(self.bins[0], float(limits.fewest), float(limits.most))
            return
        self.program.bound_row(self._sum, float(limits.fewest), float(limits.most))
        for kind, column in enumerate(self.bins):
            fewest, most = limits.of(kind)
            self.program.bound_column(column, float(fewest), float(most))

    def add_alone(self, row: int, kind: int) -> int:
        """An item that has an empty bin of that kind to itself."""
        return self._add(0.0, [row, self._counts[kind]])

    def add_kept(self, kept: KeptSet, level: int) -> int:
        rows = [int(self._row_of[item]) for item in kept.items if self.free[item]]
        rows += [self.bin_rows[kept.bin], self._counts[self._kind_of[kept.bin]]]
        if level >= 0:
            rows.append(self._levels[level])
        return self._add(-kept.saving, rows)

    def add_pattern(self, rows: Sequence[int], level: int) -> int:
        return self._add(0.0, rows, [self._levels[level]])

    def _add(self, cost: float, adds: Iterable[int], takes: Iterable[int] = ()) -> int:
        upper = 1.0 if self._integers else np.inf
        return self.program.add_column(cost, adds, takes, upper=upper, integer=self._integers)

    def prices(self, point: Point) -> Prices:
        rows = np.maximum(point.duals[: len(self.demand)], 0.0)
        bins, levels = np.split(point.duals[len(self.demand) : self._counts[0]], [len(self.bin_rows)])
        return Prices(
            rows=rows,
            items=np.where(self.free, rows[self._row_of], 0.0),
            bins=bins,
            rooms=np.maximum.accumulate(np.maximum(levels, 0.0)),
            per_bin=-point.duals[self._counts],
        )


@dataclass(frozen=True, slots=True)
class KeptSets:
    """Kept sets as arrays; the items of all of them lie one set after the other, beside whose they are."""

    bins: Ints
    kinds: Ints
    """Of the bins."""
    savings: Floats
    levels: Ints
    """Of the room that each leaves; -1 where it leaves none."""
    members: Ints
    member_of: Ints

    @classmethod
    def of(cls, instance: Instance, kept: Sequence[KeptSet], levels: Ints) -> "KeptSets":
        return cls(
            bins=np.array([k.bin for k in kept], dtype=np.int64),
            kinds=np.array([instance.bins[k.bin].kind for k in kept], dtype=np.int64),
            savings=np.array([k.saving for k in kept], dtype=np.float64),
            levels=levels,
            members=np.array([item for k in kept for item in k.items], dtype=np.int64),
            member_of=np.repeat(np.arange(len(kept)), [len(k.items) for k in kept]),
        )

    def costs(self, items: Floats, rooms: Floats, per_bin: Floats) -> Floats:
        """What each costs at the prices of items, rooms and bins, beyond what it is worth."""
        worth = np.bincount(self.member_of, weights=items[self.members], minlength=len(self.bins))
        costs: Floats = per_bin[self.kinds] - self.savings - worth - np.append(rooms, 0.0)[self.levels]
        return costs


def alone_on(instance: Instance, sizes: Floats, wanted: NDArray[np.bool_], units: int | None = None) -> Ints:
    """The items that an empty bin of the kind that they need may hold, but only alone: pairs of an item and its kind.

    Args:
        instance: what is to be solved.
        sizes: in capacities.
        wanted: which of them to look at.
        units: what bins may be packed to is rounded up to such parts of a capacity.
    """
    found = []
    for item in np.flatnonzero(wanted).tolist() if len(instance.offered) > 1 else ():
        kind = instance.kind_for(float(sizes[item]), 1)
        packed = instance.kinds[kind].packing_capacity
        packed = packed if units is None else math.ceil((packed - FIT_TOLERANCE / 10) * units) / units
        if not instance.kinds[kind].is_largest and sizes[item] > packed + FIT_TOLERANCE:
            found.append((item, kind))
    return np.array(found, dtype=np.int64).reshape(len(found), 2)


def lagrangian_bound(
    instance: Instance, items: Floats, empty: float, per_bin: Floats, kept: Floats, limits: Limits
) -> float:
    """No plan with so many consumers costs less than this, whatever the prices.

    Args:
        instance: what is to be solved.
        items: what it is worth to cover each item.
        empty: what an empty bin costs at least, by what it takes in: no pattern that fits it is worth more.
        per_bin: the price of a bin of each kind.
        kept: what each bin costs at least, by what it keeps.
        limits: how many bins there may be.
    """
    opened = limits.most * min(0.0, empty)
    bins = _least_of_counts(instance.prices - per_bin, limits)
    return float(instance.constant + items.sum() + kept.sum() + opened + bins)


def _least_of_counts(costs: Floats, limits: Limits) -> float:
    """What bins cost at least, at these costs of one of each kind: the cheapest as often as they may be."""
    count = sum(limits.of(kind)[0] for kind in range(len(costs)))
    total = sum(float(cost) * limits.of(kind)[0] for kind, cost in enumerate(costs))
    for kind in np.argsort(costs).tolist():
        fewest, most = limits.of(kind)
        wanted = limits.most if costs[kind] < 0 else limits.fewest
        more = max(0, min(most - fewest, wanted - count))
        count, total = count + more, total + float(costs[kind]) * more
    return total
