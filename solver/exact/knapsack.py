"""Which set of items is worth most in a room: the pricing problem of column generation.

The dynamic programme runs over a grid of `Grid.units` to a capacity. Rounded up, the sets that it finds fit in truth;
rounded down, no set that fits in truth is worth more than it says. Where the sizes lie on a grid there is no rounding.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solver.exact.instance import FIT_TOLERANCE, Floats, Ints

LARGEST_EXACT_GRID = 4000
_ROUNDING = FIT_TOLERANCE / 10
"""In capacities: what a size may be off the grid and be on it, so that ten of them are together within tolerance."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The units in which the dynamic programme measures sizes and rooms."""

    units: int
    """To a capacity."""
    up: Ints
    """The size of each item in units, rounded up."""
    down: Ints
    """The same, rounded down."""

    @property
    def is_exact(self) -> bool:
        return bool(np.array_equal(self.up, self.down))

    @classmethod
    def of(cls, sizes: Floats, units: int) -> "Grid":
        """The coarsest grid on which all sizes lie, if it is no finer than `LARGEST_EXACT_GRID`; else `units`."""
        exact = _exact_units(sizes)
        chosen = units if exact is None else exact
        return cls(
            chosen,
            np.ceil((sizes - _ROUNDING) * chosen).astype(np.int64),
            np.floor((sizes + _ROUNDING) * chosen).astype(np.int64),
        )

    def room(self, room: Floats) -> Ints:
        """Rooms in units, rounded down: with sizes rounded up, what fits in units fits in truth."""
        return np.floor((room + _ROUNDING) * self.units).astype(np.int64)

    def room_at_most(self, room: Floats) -> Ints:
        """Rooms in units, rounded up: with sizes rounded down, what fits in truth fits in units."""
        return np.ceil((room - _ROUNDING) * self.units).astype(np.int64)


def _exact_units(sizes: Floats) -> int | None:
    candidates = np.arange(1, LARGEST_EXACT_GRID + 1)
    for start in range(0, len(sizes), 64):
        scaled = np.outer(candidates, sizes[start : start + 64])
        candidates = candidates[(np.abs(scaled - np.round(scaled)) < _ROUNDING * candidates[:, None]).all(axis=1)]
        if not len(candidates):
            return None
    return int(candidates[0])


@dataclass(frozen=True, slots=True)
class BestSets:
    """The most valuable set of items for every room on the grid."""

    values: Floats
    """What the best set is worth, by room in units."""
    _sizes: Ints
    _taken: NDArray[np.bool_]

    def sets_in(self, rooms: Ints) -> list[tuple[int, ...]]:
        """The best set for each of `rooms`, in units; items in ascending order."""
        left = rooms.copy()
        chosen: list[list[int]] = [[] for _ in rooms]
        for item in range(len(self._sizes) - 1, -1, -1):
            takers = np.flatnonzero(self._taken[item, left])
            if len(takers):
                left[takers] -= self._sizes[item]
                for taker in takers.tolist():
                    chosen[taker].append(item)
        return [tuple(reversed(items)) for items in chosen]


def best_sets(prices: Floats, sizes: Ints, largest_room: int) -> BestSets:
    """The 0/1 knapsack for every room up to `largest_room`: what sets of items are worth at `prices`, 0 or more."""
    values = np.zeros(largest_room + 1)
    taken = np.zeros((len(prices), largest_room + 1), dtype=np.bool_)
    for item in range(len(prices)):
        price, size = prices[item], int(sizes[item])
        if price <= 0 or size > largest_room:
            continue
        with_item = values[: largest_room + 1 - size] + price
        np.greater(with_item, values[size:], out=taken[item, size:])
        np.maximum(values[size:], with_item, out=values[size:])
    return BestSets(values, sizes, taken)


def best_values(prices: Floats, sizes: Ints, largest_room: int) -> Floats:
    """The values of `best_sets` alone, in half the time."""
    values = np.zeros(largest_room + 1)
    for item in range(len(prices)):
        price, size = prices[item], int(sizes[item])
        if price > 0 and size <= largest_room:
            np.maximum(values[size:], values[: largest_room + 1 - size] + price, out=values[size:])
    return values


def profitable_sets(
    prices: Floats,
    sizes: Floats,
    grid: Grid,
    rooms: Floats,
    room_prices: Floats,
    *,
    tolerance: float,
    at_most: int,
    stop: Callable[[], bool],
) -> list[tuple[int, ...]] | None:
    """Every set of items that is worth more than a room that it fits in truth, by `tolerance` or more.

    Searches item by item, and leaves a partial set where nothing can complete it on the grid rounded down. What is
    worth nothing adds to no gain: it is in a set only where none has to gain. There it counts, for it must be covered
    as well; but of sets that fit the same room, and are worth the same or more with another item, the largest do.

    Args:
        prices: what each item is worth; below 0 where it is to be in no set.
        sizes: of the items, in capacities.
        grid: rounds the sizes; need not be exact.
        rooms: in ascending order, in capacities.
        room_prices: of each room, not descending.
        tolerance: what a set must gain; below 0, what it may lose.
        at_most: how many partial sets to look at.
        stop: whether time is up.

    Returns:
        None where there are too many, or time is up.
    """
    least = _least_missing(prices, grid, grid.room_at_most(rooms), room_prices)
    largest = least.shape[1] - 1
    if stop():
        return None
    values, exact, load = np.zeros(1), np.zeros(1), np.zeros(1, dtype=np.int64)
    names = np.zeros(1, dtype=np.int64)
    parents, items, all_exact, all_values = [np.array([-1])], [np.array([-1])], [exact], [values]
    count = 1
    for item in range(len(prices)):
        alive = least[item][load] - values < -tolerance
        if not alive.all():
            values, exact, load, names = values[alive], exact[alive], load[alive], names[alive]
        if not len(values):
            break
        grown = load + grid.down[item]
        counts = prices[item] > 0 or (tolerance < 0 and prices[item] == 0)
        takes = counts & (grown <= largest) & (exact + sizes[item] <= rooms[-1] + FIT_TOLERANCE)
        takes[takes] = least[item + 1][grown[takes]] - values[takes] - prices[item] < -tolerance
        new = int(takes.sum())
        if not new:
            continue
        parents.append(names[takes])
        items.append(np.full(new, item))
        new_values, new_exact = values[takes] + prices[item], exact[takes] + sizes[item]
        all_values.append(new_values)
        all_exact.append(new_exact)
        values, exact = np.concatenate([values, new_values]), np.concatenate([exact, new_exact])
        load = np.concatenate([load, grown[takes]])
        names = np.concatenate([names, np.arange(count, count + new)])
        count += new
        if count > at_most or stop():
            return None
    parent, item_of = np.concatenate(parents), np.concatenate(items)
    total, worth = np.concatenate(all_exact), np.concatenate(all_values)
    room = np.searchsorted(rooms, total - FIT_TOLERANCE)
    fits = room < len(rooms)
    gains = np.zeros(count, dtype=np.bool_)
    gains[fits] = worth[fits] - room_prices[room[fits]] > tolerance
    spare = np.append(rooms, -np.inf)[room] - total + FIT_TOLERANCE
    smallest_first = [item for item in np.argsort(sizes).tolist() if prices[item] >= 0] if tolerance < 0 else []
    found = []
    for name in np.flatnonzero(gains).tolist():
        chosen: list[int] = []
        at = name
        while at > 0:
            chosen.append(int(item_of[at]))
            at = int(parent[at])
        other = next((item for item in smallest_first if item not in chosen), None)
        if other is None or sizes[other] > spare[name]:
            found.append(tuple(reversed(chosen)))
    return sorted(found)


def _least_missing(prices: Floats, grid: Grid, rooms: Ints, room_prices: Floats) -> Floats:
    """By item j and load u: the price of a room less what is added, at its lowest, of a set that has the load u and may
    yet take the items from j on.

    Args:
        rooms: in units of the grid, in ascending order.
    """
    largest = int(rooms[-1])
    cheapest = np.searchsorted(rooms, np.arange(largest + 1))
    least = np.empty((len(prices) + 1, largest + 1))
    least[-1] = room_prices[cheapest]
    for item in range(len(prices) - 1, -1, -1):
        least[item] = least[item + 1]
        size = int(grid.down[item])
        if prices[item] > 0 and size <= largest:
            reach = least[item][: largest + 1 - size]
            np.minimum(reach, least[item + 1][size:] - prices[item], out=reach)
    return least
