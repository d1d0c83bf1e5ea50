"""The relaxation with a row for each item, its patterns made as they are needed (column generation).

As sizes are no integers here, neither rooms nor patterns are rounded. What the model does not know yet and
would improve it is found by `knapsack`.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from solver.deadline import Deadline
from solver.exact.instance import FIT_TOLERANCE, Floats, Instance, Ints, Placement
from solver.exact.kept import KeptSet
from solver.exact.knapsack import BestSets, Grid, best_sets, best_values, profitable_sets
from solver.exact.relaxation import NO_LIMITS, KeptSets, Limits, Prices, Relaxation, alone_on, lagrangian_bound
from solver.parameters import TUNED, Parameters

WHOLE = 1 + 1e-6
"""The level of an empty bin of the largest kind, in capacities: above all others, as a partition that is too fast needs
one to itself."""
_GAIN = 1e-9
"""What a pattern must gain to be worth adding, in consumers."""
_INTEGRAL = 1e-6


@dataclass(frozen=True, slots=True)
class Restriction:
    """A part of the search space."""

    bins: Limits = NO_LIMITS
    """Consumers."""
    staying: frozenset[int] = frozenset()
    """Items that stay at home."""
    leaving: frozenset[int] = frozenset()
    """Items that leave home."""


@dataclass(frozen=True, slots=True)
class Relaxed:
    """A solution of the relaxation."""

    objective: float
    """Of the columns that the model has."""
    bound: float
    """No solution of the true problem within the restriction is below this."""
    bins: Floats
    """Of each kind."""
    kept: Floats
    """The share of each kept set that is chosen."""
    patterns: Floats
    alone: Floats
    kept_costs: Floats
    """The reduced cost of each kept set: what the objective grows by, at least, if it is chosen."""
    pattern_costs: Floats
    prices: Prices
    missing: float
    """How many items were left out."""
    complete: bool
    """Whether no pattern is left that would improve it."""

    @property
    def is_integral(self) -> bool:
        return self.missing < _INTEGRAL and all(
            bool((np.abs(values - np.round(values)) < _INTEGRAL).all())
            for values in (self.kept, self.patterns, self.alone)
        )


class Master:
    """The relaxation, and the columns that it has."""

    def __init__(self, instance: Instance, kept: Sequence[KeptSet], grid: Grid, tuned: Parameters = TUNED) -> None:
        self.instance = instance
        self.tuned = tuned
        self.kept = kept
        self.grid = grid
        self.patterns: list[tuple[int, ...]] = []
        self._known: set[tuple[int, ...]] = set()
        self.required = frozenset(item for bin_ in instance.bins for item in bin_.required)
        self.levels = _levels(instance, kept)
        self._listed_levels: list[float] = self.levels.tolist()
        """The same: faster where a single one is looked for."""
        self._opened = _opened(instance, self.levels)
        self._widest = instance.packing_capacity
        self._must_keep = np.array([bool(bin_.required) for bin_ in instance.bins], dtype=np.bool_)
        self._restriction = Restriction()
        self._model = self._relaxation(self.levels, self._must_keep)
        self._program = self._model.program
        self._alone = alone_on(instance, instance.sizes, self._model.free)
        self._alone_columns = np.array([self._model.add_alone(*each) for each in self._alone.tolist()], dtype=np.int64)
        self._sets = KeptSets.of(instance, kept, _levels_of(kept, self.levels))
        self._kept_columns = np.array(
            [self._model.add_kept(k, level) for k, level in zip(kept, self._sets.levels.tolist(), strict=True)],
            dtype=np.int64,
        )
        self._pattern_columns: list[int] = []
        self.add_patterns((item,) for item in np.flatnonzero(self._model.free).tolist())
        self._is_allowed = np.ones(len(kept), dtype=np.bool_)
        self._is_forced = self._must_keep

    def _relaxation(
        self,
        levels: Floats,
        must_keep: NDArray[np.bool_],
        *,
        integers: bool = False,
        left_out: Set[int] = frozenset(),
    ) -> Relaxation:
        rows = np.arange(len(self.instance.sizes))
        opened = _opened(self.instance, levels)
        limits = self._restriction.bins
        return Relaxation(
            self.instance, rows, len(levels), opened, must_keep, limits, integers=integers, left_out=left_out
        )

    def level_of(self, pattern: tuple[int, ...]) -> int:
        """The lowest level that has room for `pattern`."""
        size = self.instance.load_of(pattern)
        if len(pattern) == 1 and size > 1:
            return len(self.levels) - 1
        return bisect_left(self._listed_levels, size - FIT_TOLERANCE)

    def add_patterns(self, patterns: Iterable[tuple[int, ...]]) -> int:
        """Adds those that the model does not have yet, and says how many."""
        before = len(self.patterns)
        for pattern in patterns:
            if pattern and pattern not in self._known:
                self._known.add(pattern)
                self.patterns.append(pattern)
                self._pattern_columns.append(self._model.add_pattern(pattern, self.level_of(pattern)))
        return len(self.patterns) - before

    def add_best_sets(self, prices: Floats) -> int:
        """Adds a pattern for each level: the set that is worth most at `prices`."""
        widest = int(self.grid.room(np.array([self._widest]))[0])
        rooms = np.unique(self.grid.room(np.minimum(self.levels, self._widest)))
        return self.add_patterns(
            best_sets(np.where(self._model.free, prices, 0.0), self.grid.up, widest).sets_in(rooms)
        )

    def restrict(self, restriction: Restriction) -> None:
        """Confines the model to a part of the search space, in place of the one before."""
        self._restriction = restriction
        self._model.limit(restriction.bins)
        allowed, forced = self._allowed()
        for index in np.flatnonzero(allowed != self._is_allowed).tolist():
            self._program.bound_column(int(self._kept_columns[index]), 0.0, np.inf if allowed[index] else 0.0)
        for number in np.flatnonzero(forced != self._is_forced).tolist():
            self._program.bound_row(self._model.bin_rows[number], 1.0 if forced[number] else 0.0, 1.0)
        self._is_allowed, self._is_forced = allowed, forced

    def _allowed(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which kept sets may be chosen, and which bins must choose one."""
        allowed = np.ones(len(self.kept), dtype=np.bool_)
        forced = self._must_keep.copy()
        for item in self._restriction.leaving:
            allowed[self._with(item)] = False
        for item in self._restriction.staying:
            home = int(self.instance.home[item])
            forced[home] = True
            without = self._sets.bins == home
            without[self._with(item)] = False
            allowed &= ~without
        return allowed, forced

    def _with(self, item: int) -> Ints:
        """The kept sets that hold `item`."""
        holders: Ints = self._sets.member_of[self._sets.members == item]
        return holders

    def solve(self, deadline: Deadline, cutoff: float, close: float = 0.0) -> Relaxed | None:
        """Solves the relaxation, adding patterns until none improves it, or its bound is above `cutoff`.

        It is also done when the objective is above the bound by no more than the share `close` of it.

        Returns:
            What it had when time was up, or None where that is nothing.
        """
        best: Relaxed | None = None
        bound = -np.inf
        while not deadline.passed:
            # New bounds leave the last solution dual feasible, new patterns leave it primal feasible.
            known_patterns = len(self.patterns)
            point = self._program.relax(deadline, dual=best is None)
            if point is None or deadline.passed:
                return best
            prices = self._model.prices(point)
            added, reached = self._price(prices, deadline, cutoff)
            bound = max(bound, reached)
            patterns = np.array(self._pattern_columns[:known_patterns], dtype=np.int64)
            best = Relaxed(
                objective=point.objective + self.instance.constant,
                bound=bound,
                bins=point.values[self._model.bins],
                kept=point.values[self._kept_columns],
                patterns=point.values[patterns],
                alone=point.values[self._alone_columns],
                kept_costs=point.reduced_costs[self._kept_columns],
                pattern_costs=point.reduced_costs[patterns],
                prices=prices,
                missing=float(point.values[self._model.missing].sum()),
                complete=not added,
            )
            is_close = close > 0 and best.objective - bound < close * best.objective
            if not added or bound > cutoff or is_close:
                return best
        return best

    def _price(self, at: Prices, deadline: Deadline, cutoff: float) -> tuple[int, float]:
        """Adds the patterns that gain at these prices, and says how many they are and what bound the prices prove."""
        widest = int(self.grid.room(np.array([self._widest]))[0])
        sets = best_sets(at.items, self.grid.up, widest)
        rooms = np.minimum(self.levels, self._widest)
        units = self.grid.room(rooms)
        gaining = sets.values[units] > at.rooms + _GAIN
        added = 0
        if gaining.any():
            added = self.add_patterns(sets.sets_in(np.unique(units[gaining])))
            if added < self.tuned.few_patterns:
                added += self.add_patterns(
                    pattern for kind, level in self._opened for pattern in self._with_each_item(sets, at, kind, level)
                )
        true_prices: Floats | None = None
        if not added:
            missed = self._missed(at, deadline)
            if missed is not None:
                added = self.add_patterns(missed)
                true_prices = None if added else at.rooms
        if true_prices is None:
            true_prices = np.maximum(at.rooms, self._values_at_most(at.items, rooms))
        return added, self._bound(at.items, true_prices, at.per_bin, cutoff)

    def _with_each_item(self, sets: BestSets, at: Prices, kind: int, level: int) -> list[tuple[int, ...]]:
        """For each item, the set that it is worth most with in an empty bin of that kind, where that gains."""
        prices, whole = at.items, float(at.rooms[level])
        widest = int(self.grid.room(np.array([self.instance.kinds[kind].packing_capacity]))[0])
        items = np.flatnonzero((prices > 0) & (self.grid.up <= widest))
        rooms = widest - self.grid.up[items]
        gaining = prices[items] + sets.values[rooms] > whole + _GAIN
        items, rooms = items[gaining], rooms[gaining]
        return [
            tuple(sorted((item, *others)))
            for item, others in zip(items.tolist(), sets.sets_in(rooms), strict=True)
            if item not in others
        ]

    def _missed(self, at: Prices, deadline: Deadline) -> list[tuple[int, ...]] | None:
        """The patterns that gain and that rounding sizes up hides; None where there are too many to look for."""
        return [] if self.grid.is_exact else self.patterns_within(-_GAIN, at, self.tuned.missed_patterns, deadline)

    def worth_nothing(self, at: Prices) -> frozenset[int]:
        """The items that may be on any pattern that has room for them: to cover them costs nothing."""
        return frozenset(np.flatnonzero(self._model.free & (at.items == 0)).tolist())

    def patterns_within(
        self,
        width: float,
        at: Prices,
        at_most: int,
        deadline: Deadline,
        left_out: Set[int] = frozenset(),
    ) -> list[tuple[int, ...]] | None:
        """The patterns without `left_out` whose reduced cost is at most `width`; None if too many, or time is up.

        With a width above 0, patterns that another item fits into are none: with it they cost no more.
        """
        wanted = self._model.free.copy()
        wanted[list(left_out)] = False
        coarse = Grid.of(self.instance.sizes, min(self.grid.units, max(1024, 6_000_000 // max(1, len(at.items)))))
        within = self.levels <= self._widest
        return profitable_sets(
            np.where(wanted, at.items, -1.0),
            self.instance.sizes,
            coarse,
            np.append(self.levels[within], self._widest),
            np.append(at.rooms[within], at.rooms[-1]),
            tolerance=-width,
            at_most=at_most,
            stop=lambda: deadline.passed,
        )

    def _values_at_most(self, prices: Floats, rooms: Floats) -> Floats:
        """What no set that fits a room is worth more than, for each of `rooms`."""
        units = self.grid.room_at_most(rooms)
        values = best_values(prices, self.grid.down, int(units[-1]))[units]
        values[-1] = max(values[-1], prices.max(initial=0.0))
        return np.maximum.accumulate(values)

    def _bound(self, prices: Floats, room_prices: Floats, per_bin: Floats, cutoff: float) -> float:
        """The Lagrangian bound at these prices, the price of a room not below what any set that fits it is worth."""
        limits = self._restriction.bins
        affordable = int(np.floor(cutoff / self.instance.prices.min())) + 1
        limits = replace(limits, most=min(limits.most, max(limits.fewest, affordable)))
        empty = min(float(per_bin[kind] - room_prices[level]) for kind, level in self._opened)
        empty = float((per_bin[self._alone[:, 1]] - prices[self._alone[:, 0]]).min(initial=empty))
        allowed = self._is_allowed
        kept = np.where(self._is_forced, np.inf, 0.0)
        np.minimum.at(kept, self._sets.bins[allowed], self._sets.costs(prices, room_prices, per_bin)[allowed])
        return lagrangian_bound(self.instance, prices, empty, per_bin, kept, limits)

    def rounded(self, relaxed: Relaxed) -> Placement:
        """The placement of an integral solution."""
        patterns = [self.patterns[index] for index in np.flatnonzero(relaxed.patterns > 0.5).tolist()]
        return self._placement(np.flatnonzero(relaxed.kept > 0.5).tolist(), patterns, relaxed.alone)

    def _placement(self, kept: Iterable[int], patterns: Sequence[tuple[int, ...]], alone: Floats) -> Placement:
        """The placement that these kept sets, by their indices, and patterns make, and items that are alone."""
        items = self._alone[alone > 0.5, 0].tolist()
        return Placement({self.kept[index].bin: self.kept[index].items for index in kept}, patterns, items)

    def best_placement(
        self,
        relaxed: Relaxed,
        width: float,
        deadline: Deadline,
        tolerance: float,
        below: float,
        more: Iterable[tuple[int, ...]] = (),
        left_out: Set[int] = frozenset(),
    ) -> tuple[Placement | None, float]:
        """The best placement of the columns whose reduced cost is at most `width`, if one is found in time (SCIP).

        Columns that are newer than `relaxed` all take part, and so do the patterns `more`, which the relaxation lacks.
        The items `left_out` need not be covered: the placement has the others of them apart.

        Returns:
            The placement, and an objective that no placement is below: minus infinity if that is not known, and
            infinity where none is below `below`.
        """
        wanted = self._is_allowed & ((relaxed.kept_costs <= width) | (relaxed.kept > 0))
        kept = np.flatnonzero(wanted).tolist()
        patterns = [
            self.patterns[index]
            for index in np.flatnonzero((relaxed.pattern_costs <= width) | (relaxed.patterns > 0)).tolist()
        ]
        patterns += self.patterns[len(relaxed.patterns) :]
        patterns += [pattern for pattern in more if pattern not in self._known]
        sets = [self.kept[index] for index in kept]
        levels = _levels(self.instance, sets)
        model = self._relaxation(levels, self._is_forced, integers=True, left_out=left_out)
        alone_columns = [model.add_alone(*each) for each in self._alone.tolist()]
        kept_columns = [model.add_kept(k, n) for k, n in zip(sets, _levels_of(sets, levels).tolist(), strict=True)]
        pattern_levels = np.searchsorted(levels, self.levels[[self.level_of(pattern) for pattern in patterns]]).tolist()
        pattern_columns = [
            model.add_pattern(pattern, level) for pattern, level in zip(patterns, pattern_levels, strict=True)
        ]
        if deadline.passed:
            return None, -np.inf
        point, is_best = model.program.solve_integers(deadline, tolerance, below - self.instance.constant)
        if point is None:
            return None, np.inf if is_best else -np.inf
        chosen = [p for p, column in zip(patterns, pattern_columns, strict=True) if point.values[column] > 0.5]
        placement = self._placement(
            [index for index, column in zip(kept, kept_columns, strict=True) if point.values[column] > 0.5],
            [*chosen, *((item,) for item in sorted(left_out))],
            point.values[alone_columns],
        )
        return placement, point.objective + self.instance.constant if is_best else -np.inf

    def dive(self, relaxed: Relaxed, deadline: Deadline, ceiling: float, close: float) -> Relaxed | None:
        """Fixes what bins keep, a share of them at a time and the most decided first, and solves again in between.

        Returns:
            A solution in which every bin keeps one set or none, or None where that leads nowhere, or time is up.
        """
        fixed = np.zeros(len(self.kept), dtype=np.bool_)
        last: Relaxed | None = relaxed
        while last is not None and not deadline.passed and last.missing < _INTEGRAL:
            kept = last.kept[: len(fixed)]
            open_ = np.flatnonzero((kept > _INTEGRAL) & ~fixed)
            if not len(open_) or bool((kept[open_] > 1 - _INTEGRAL).all()):
                break
            ranked = open_[np.argsort(-kept[open_], kind="stable")]
            chosen = ranked[
                : max(1, int((kept[open_] > 1 - _INTEGRAL).sum()) + int(len(open_) * self.tuned.dive_share))
            ]
            # Two sets of one bin cannot both be chosen: the first stands for it.
            _, first = np.unique(self._sets.bins[chosen], return_index=True)
            for index in chosen[np.sort(first)].tolist():
                fixed[index] = True
                self._program.bound_column(int(self._kept_columns[index]), 1.0, np.inf)
            last = self.solve(deadline, ceiling, close)
        for index in np.flatnonzero(fixed).tolist():
            self._program.bound_column(int(self._kept_columns[index]), 0.0, np.inf)
        return last

    def home_shares(self, relaxed: Relaxed) -> Floats:
        """How much of each item stays at home."""
        weights = relaxed.kept[self._sets.member_of]
        shares: Floats = np.bincount(self._sets.members, weights, len(self.instance.sizes)).astype(float)
        return shares

    @property
    def optional(self) -> Collection[int]:
        """The items that have a home and may leave it."""
        return [item for bin_ in self.instance.bins for item in bin_.own]


def _levels(instance: Instance, kept: Sequence[KeptSet]) -> Floats:
    """The rooms that kept sets leave, and those of empty bins."""
    smaller = [instance.kinds[kind].packing_capacity for kind in instance.offered[:-1]]
    return np.unique(np.array([*(k.room for k in kept if k.room > 0), *smaller, WHOLE]))


def _opened(instance: Instance, levels: Floats) -> list[tuple[int, int]]:
    """The level of an empty bin of each kind that is offered."""
    rooms = [*(instance.kinds[kind].packing_capacity for kind in instance.offered[:-1]), WHOLE]
    return list(zip(instance.offered, np.searchsorted(levels, rooms).tolist(), strict=True))


def _levels_of(kept: Sequence[KeptSet], levels: Floats) -> Ints:
    """The level of the room of each kept set; -1 where it leaves none."""
    found: Ints = np.searchsorted(levels, [k.room for k in kept], side="right") - 1
    return found
