"""Trajectories: what one consumer has at each step, and the best of them at given prices.

A trajectory is a set of partitions for each step, that fits a consumer. It costs 1 for each step at which it has any,
and lambda for each size that arrives: every migration is one arrival. The best one is found by dynamic programming over
all sets that fit, step by step. Between two steps a set K is kept, so the best way to a set is the best of the sets
within it that may be kept, and the best way to keep K is the best of the sets that hold it: both are found an item at a
time.

Sizes and loads are in consumers. A set is a number whose bits are its partitions.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from solver.problem import LOAD_TOLERANCE

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Trajectory = tuple[int, ...]
"""The set at each step; 0 is no partition."""

MOST_PARTITIONS = 62
"""As many as a number has bits."""
TOLERANCE = 1e-9
"""What is less, in consumers, is nothing but rounding."""


class FittingSets:
    """Every set of partitions that fits a consumer at one step, the empty one first."""

    def __init__(self, sizes: Floats) -> None:
        """Sizes: of each partition, in consumers; one that is larger than a consumer fits one alone."""
        sets, loads = np.zeros(1, dtype=np.int64), np.zeros(1)
        for item, size in enumerate(sizes.tolist()):
            fit = loads + size <= 1 + LOAD_TOLERANCE
            fit[0] = True
            sets = np.concatenate([sets, sets[fit] | 1 << item])
            loads = np.concatenate([loads, loads[fit] + size])
        order = np.argsort(sets)
        self.sets: Ints = sets[order]
        self.loads: Floats = loads[order]
        self._pairs = []
        for item in range(len(sizes)):
            having = np.flatnonzero(self.sets >> item & 1)
            self._pairs.append((having, np.searchsorted(self.sets, self.sets[having] ^ 1 << item)))

    def __len__(self) -> int:
        return len(self.sets)

    def find(self, sets: Ints) -> Ints:
        """The index of each of these sets; -1 for those that do not fit."""
        found = np.minimum(np.searchsorted(self.sets, sets), len(self.sets) - 1)
        return np.where(self.sets[found] == sets, found, -1)

    def having(self, item: int) -> Ints:
        """The indices of the sets with this partition."""
        return self._pairs[item][0]

    def sums(self, values: Floats) -> Floats:
        """For each set, the sum of its partitions' values."""
        sums = np.zeros(len(self.sets))
        for (having, _), value in zip(self._pairs, values.tolist(), strict=True):
            sums[having] += value
        return sums

    def best_holding(self, values: Floats) -> Floats:
        """For each set, the highest value of the sets that hold it."""
        best = values.copy()
        for having, without in self._pairs:
            best[without] = np.maximum(best[without], best[having])
        return best

    def best_within(self, values: Floats) -> Floats:
        """For each set, the highest value of the sets within it."""
        best = values.copy()
        for having, without in self._pairs:
            best[having] = np.maximum(best[having], best[without])
        return best


@dataclass(frozen=True, slots=True)
class _Pass:
    """The best trajectories that end, or begin, with each set: by step."""

    values: list[Floats]
    """Of the best that ends with the set; backwards, of what comes after it alone."""
    reached: list[Floats]
    """What those values are the best of, over the sets within: by the set that is kept."""
    based: list[Floats]
    """What a set is worth to whoever keeps some of it."""
    holding: list[Floats]
    """The best of these among the sets that hold a set."""


class Window:
    """Some steps of a stream, and all that may be had at each.

    Duals are what it is worth to cover a row once: each partition (columns) at each step (rows), and in a last column
    what a consumer is worth at the step that has any.

    Args:
        sizes: of each partition (columns) at each step (rows), in consumers.
        prices: what a consumer costs at each step: less than 1 where two windows share it.
        fewest: how many consumers each step takes at least, whatever was before it.
    """

    def __init__(self, sizes: Floats, prices: Floats, fewest: Floats) -> None:
        self.sizes = sizes
        self.prices = prices
        self.fewest = fewest
        self.steps = [FittingSets(row) for row in sizes]
        self._both = []
        for before, after in pairwise(self.steps):
            index = before.find(after.sets)
            now = np.flatnonzero(index >= 0)
            self._both.append((index[now], now))

    @property
    def alone(self) -> list[Trajectory]:
        """Each partition by itself, at every step."""
        return [(1 << item,) * len(self.steps) for item in range(self.sizes.shape[1])]

    def cost(self, trajectory: Trajectory, weight: float) -> float:
        """What it costs with lambda `weight`; what it begins with costs nothing."""
        consumers = math.fsum(price for price, held in zip(self.prices.tolist(), trajectory, strict=True) if held)
        return consumers + weight * self.arrivals(trajectory)

    @property
    def required(self) -> Floats:
        """How often each row is to be covered."""
        return np.column_stack([np.ones_like(self.sizes), self.fewest])

    def covered(self, trajectory: Trajectory) -> Iterator[tuple[int, int]]:
        """The rows that it covers: step and column."""
        for step, held in enumerate(trajectory):
            if held:
                yield from ((step, item) for item in items_of(held))
                yield step, self.sizes.shape[1]

    def worth(self, trajectory: Trajectory, duals: Floats) -> float:
        """The sum of the duals of what it covers."""
        return math.fsum(duals[row] for row in self.covered(trajectory))

    def arrivals(self, trajectory: Trajectory) -> float:
        """The sizes that arrive, in consumers."""
        new = [after & ~before for before, after in pairwise(trajectory)]
        return math.fsum(row[items_of(held)].sum() for row, held in zip(self.sizes[1:], new, strict=True))

    def _forward(self, worth: Sequence[Floats], weight: float) -> _Pass:
        found = _Pass([worth[0]], [worth[0]], [], [])
        for step, (before, now) in enumerate(self._both, 1):
            sets = self.steps[step]
            found.based.append(found.values[-1])
            found.holding.append(self.steps[step - 1].best_holding(found.based[-1]))
            reached = np.full(len(sets), -np.inf)
            reached[now] = found.holding[-1][before] + weight * sets.loads[now]
            found.reached.append(reached)
            found.values.append(sets.best_within(reached) - weight * sets.loads + worth[step])
        return found

    def _backward(self, worth: Sequence[Floats], weight: float) -> _Pass:
        """Its lists begin with the last step."""
        found = _Pass([np.zeros(len(self.steps[-1]))], [], [], [])
        for step in range(len(self.steps) - 2, -1, -1):
            before, now = self._both[step]
            after = self.steps[step + 1]
            found.based.append(found.values[-1] + worth[step + 1] - weight * after.loads)
            found.holding.append(after.best_holding(found.based[-1]))
            reached = np.full(len(self.steps[step]), -np.inf)
            reached[before] = found.holding[-1][now] + weight * after.loads[now]
            found.reached.append(reached)
            found.values.append(self.steps[step].best_within(reached))
        return found

    def _worths(self, duals: Floats, factor: float) -> list[Floats]:
        worth = []
        for sets, row, price in zip(self.steps, duals, self.prices.tolist(), strict=True):
            each = sets.sums(row[:-1])
            each[1:] += row[-1] - factor * price
            worth.append(each)
        return worth

    def best(self, duals: Floats, weight: float, factor: float = 1.0) -> tuple[float, Trajectory]:
        """The trajectory that is worth most above `factor` times its cost, and how much that is."""
        found = self._forward(self._worths(duals, factor), factor * weight)
        last = int(np.argmax(found.values[-1]))
        return float(found.values[-1][last]), self._back(found, len(self.steps) - 1, last)

    def gaining(self, duals: Floats, weight: float) -> Iterator[Trajectory]:
        """For each partition and step that none before covers, the best trajectory through it, where it gains."""
        worth = self._worths(duals, 1.0)
        to, onward = self._forward(worth, weight), self._backward(worth, weight)
        onward.values.reverse()
        covered = [0] * len(self.steps)
        for step, sets in enumerate(self.steps):
            through = to.values[step] + onward.values[step]
            for item in range(self.sizes.shape[1]):
                having = sets.having(item)
                best = int(having[np.argmax(through[having])])
                if covered[step] >> item & 1 or through[best] <= TOLERANCE:
                    continue
                trajectory = (*self._back(to, step, best)[:-1], *self._on(onward, step, best))
                covered = [before | held for before, held in zip(covered, trajectory, strict=True)]
                yield trajectory

    def _back(self, found: _Pass, step: int, last: int) -> Trajectory:
        """The best trajectory that ends so, up to then."""
        held = [int(self.steps[step].sets[last])]
        for there in range(step - 1, -1, -1):
            held.append(
                _neighbour(
                    held[-1], self.steps[there + 1], found.reached[there + 1], self.steps[there],
                    found.based[there], found.holding[there],
                )
            )  # fmt: skip
        return tuple(reversed(held))

    def _on(self, found: _Pass, step: int, first: int) -> Trajectory:
        """The best trajectory that begins so, from then on."""
        held = [int(self.steps[step].sets[first])]
        for here in range(step, len(self.steps) - 1):
            turn = len(self.steps) - 2 - here
            held.append(
                _neighbour(
                    held[-1], self.steps[here], found.reached[turn], self.steps[here + 1],
                    found.based[turn], found.holding[turn],
                )
            )  # fmt: skip
        return tuple(held)


def items_of(held: int) -> list[int]:
    """The partitions of a set."""
    return [item for item in range(held.bit_length()) if held >> item & 1]


def _neighbour(
    held: int, here: FittingSets, reached: Floats, there: FittingSets, based: Floats, holding: Floats
) -> int:
    """The set at the step before, or after, that the best way to `held` leads over."""
    kept = np.zeros(1, dtype=np.int64)
    for item in items_of(held):
        kept = np.concatenate([kept, kept | 1 << item])
    kept_best = kept[np.argmax(reached[here.find(kept)])]
    index = int(there.find(np.array([kept_best]))[0])
    bits = 1 << np.arange(MOST_PARTITIONS, dtype=np.int64)
    while based[index] < holding[index]:
        larger = there.find(there.sets[index] | bits[there.sets[index] & bits == 0])
        larger = larger[larger >= 0]
        index = int(larger[np.argmax(holding[larger])])
    return int(there.sets[index])
