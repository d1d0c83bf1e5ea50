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

Its dual values price the items, bins and rooms. `master` has a row for each item, and `coarse` one for all items of
about the same size.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solver.exact.instance import Floats, Instance, Ints
from solver.exact.kept import KeptSet
from solver.exact.linear_program import LinearProgram, Point

_MISSING = 50.0
"""What it costs to leave an item out, in consumers: more than any plan that has it could cost in its place."""


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
    per_bin: float


class Relaxation:
    """The rows, and the columns that have been added: kept sets, and patterns by their rows."""

    def __init__(
        self,
        instance: Instance,
        row_of: Ints,
        levels: int,
        must_keep: NDArray[np.bool_],
        consumers: tuple[float, float] = (0.0, np.inf),
        *,
        integers: bool = False,
    ) -> None:
        """The rows: that of each item is `row_of`. With `integers` it is the model itself, and nothing is left out."""
        self.free = np.ones(len(instance.sizes), dtype=np.bool_)
        self.free[[item for bin_ in instance.bins for item in bin_.required]] = False
        self.demand = np.bincount(row_of[self.free], minlength=int(row_of.max(initial=-1)) + 1)
        self.program = program = LinearProgram()
        self._row_of = row_of
        self._integers = integers
        items = [program.add_row(float(count)) for count in self.demand.tolist()]
        self.bin_rows = [program.add_row(1.0 if must else 0.0, 1.0) for must in must_keep.tolist()]
        self._levels = [program.add_row() for _ in range(levels)]
        self._count = program.add_row(0.0, 0.0)
        self.missing = [] if integers else [program.add_column(_MISSING, [row]) for row in [*items, *self.bin_rows]]
        fewest, most = consumers
        self.bins = program.add_column(1.0, takes=[self._count], lower=fewest, upper=most, integer=integers)
        program.add_column(0.0, [self._levels[-1], self._count], integer=integers)
        for upper, lower in zip(self._levels[1:], self._levels[:-1], strict=True):
            program.add_column(0.0, [lower], [upper])

    def add_kept(self, kept: KeptSet, level: int) -> int:
        rows = [int(self._row_of[item]) for item in kept.items if self.free[item]]
        rows += [self.bin_rows[kept.bin], self._count]
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
        bins, levels = np.split(point.duals[len(self.demand) : self._count], [len(self.bin_rows)])
        return Prices(
            rows=rows,
            items=np.where(self.free, rows[self._row_of], 0.0),
            bins=bins,
            rooms=np.maximum.accumulate(np.maximum(levels, 0.0)),
            per_bin=-float(point.duals[self._count]),
        )


@dataclass(frozen=True, slots=True)
class KeptSets:
    """Kept sets as arrays; the items of all of them lie one set after the other, beside whose they are."""

    bins: Ints
    savings: Floats
    levels: Ints
    """Of the room that each leaves; -1 where it leaves none."""
    members: Ints
    member_of: Ints

    @classmethod
    def of(cls, kept: Sequence[KeptSet], levels: Ints) -> "KeptSets":
        return cls(
            bins=np.array([k.bin for k in kept], dtype=np.int64),
            savings=np.array([k.saving for k in kept], dtype=np.float64),
            levels=levels,
            members=np.array([item for k in kept for item in k.items], dtype=np.int64),
            member_of=np.repeat(np.arange(len(kept)), [len(k.items) for k in kept]),
        )

    def costs(self, items: Floats, rooms: Floats, per_bin: float) -> Floats:
        """What each costs at the prices of items, rooms and bins, beyond what it is worth."""
        worth = np.bincount(self.member_of, weights=items[self.members], minlength=len(self.bins))
        costs: Floats = per_bin - self.savings - worth - np.append(rooms, 0.0)[self.levels]
        return costs


def lagrangian_bound(
    instance: Instance, items: Floats, whole: float, per_bin: float, kept: Floats, consumers: tuple[int, int]
) -> float:
    """No plan with so many consumers, the fewest and the most, costs less than this, whatever the prices.

    Args:
        instance: what is to be solved.
        items: what it is worth to cover each item.
        whole: the price of an empty bin's room: no pattern is worth more.
        per_bin: the price of a bin.
        kept: what each bin costs at least, by what it keeps.
        consumers: the fewest and the most.
    """
    fewest, most = consumers
    rest = 1 - per_bin
    empty = most * min(0.0, per_bin - whole)
    return float(instance.constant + items.sum() + kept.sum() + empty + rest * (fewest if rest >= 0 else most))
