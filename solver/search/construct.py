"""Plans made by rule: close some consumers, evict as little as possible from the overloaded ones, place what is left.

Knows all rules of a problem, and needs nothing but arithmetic: what the heuristics cannot take (limits on the number of
consumers, pinned partitions, capacities that differ) starts from here, and so do groups in which a consumer has too
many partitions to list what it could keep.
"""

from collections.abc import Sequence
from itertools import product, starmap
from typing import NamedTuple

import numpy as np

from domain.assignment import Assignment, ConsumerId
from solver.deadline import Deadline
from solver.exact.bounds import fewest_bins, lowest_price, pooled_bound
from solver.exact.instance import FIT_TOLERANCE, Instance
from solver.exact.kept import most_kept
from solver.incumbent import Incumbent
from solver.parameters import TUNED, Parameters
from solver.problem import Problem

NAME = "least-eviction"


def prepare(problem: Problem, incumbent: Incumbent, deadline: Deadline) -> Instance:
    """The bound that arithmetic gives, and plans by rule where the heuristics know too few of the rules."""
    instance = Instance.of(problem)
    incumbent.raise_bound(pooled_bound(instance))
    if incumbent.best is None or not problem.is_plain:
        offer_plans(instance, incumbent, deadline)
    return instance


def offer_plans(instance: Instance, incumbent: Incumbent, deadline: Deadline, tuned: Parameters = TUNED) -> None:
    """Tries the numbers of consumers to close that promise most, as long as one could be better than the incumbent."""
    kept = _keep_most(instance)
    loads = [instance.load_of(bin_.own + bin_.required) for bin_ in instance.bins]
    evicted = [load - instance.load_of(items) for load, items in zip(loads, kept, strict=True)]
    closable = sorted(
        (number for number, bin_ in enumerate(instance.bins) if not bin_.required),
        key=lambda number: (loads[number] - evicted[number], number),
    )
    opened = len(instance.bins)
    fewest = max(fewest_bins(instance), instance.problem.min_consumers)
    lowest = lowest_price(instance)
    price = sum(instance.kinds[bin_.kind].price for bin_ in instance.bins)
    estimates = []
    penalty = sum(evicted)
    for closings in range(len(closable) + 1):
        if closings:
            number = closable[closings - 1]
            penalty += loads[number] - evicted[number]
            price -= instance.kinds[instance.bins[number].kind].price
        estimates.append((max(price, lowest) + instance.weight * penalty, closings))
        if opened - closings <= fewest:
            break
    for estimate, closings in sorted(estimates)[: tuned.rule_plans]:
        if deadline.passed or estimate >= incumbent.cutoff:
            return
        offer_placed(instance, kept, frozenset(closable[:closings]), incumbent, deadline, NAME, ways(instance), tuned)


class Way(NamedTuple):
    """How partitions are placed that no consumer keeps."""

    kind: int
    """That new consumers are of, where this is large enough."""
    clearing: bool
    """Whether others have to give way before a consumer is opened: fewer consumers, more migrations."""


THRIFTY = Way(kind=-1, clearing=True)
"""Few new consumers, each as large as there are."""


def ways(instance: Instance) -> list[Way]:
    """All that there are."""
    return list(starmap(Way, product(instance.offered, (True, False))))


def offer_placed(
    instance: Instance,
    kept: list[tuple[int, ...]],
    closed: frozenset[int],
    incumbent: Incumbent,
    deadline: Deadline,
    name: str,
    by: Sequence[Way],
    tuned: Parameters = TUNED,
) -> Way:
    """Plans in which bins keep that much and those in `closed` nothing, with the rest placed in each of these ways.

    Returns:
        The way that made the best plan; the first where none was better than the incumbent.
    """
    best = by[0]
    for way in by:
        if not deadline.passed and incumbent.offer(plan(instance, kept, closed, tuned, way), name):
            best = way
    return best


def least_overloaded(instance: Instance) -> Assignment:
    """A plan that respects the number of consumers and what is fixed, and spreads what is too much."""
    kept = _keep_most(instance)
    most = instance.problem.max_consumers or len(instance.sizes)
    loads = [instance.load_of(items) for items in kept]
    closable = sorted((n for n, bin_ in enumerate(instance.bins) if not bin_.required), key=lambda n: (loads[n], n))
    return plan(instance, kept, frozenset(closable[: max(0, len(instance.bins) - most)]))


def _keep_most(instance: Instance) -> list[tuple[int, ...]]:
    """What each bin keeps if it stays open and loses as little as possible, required items included."""
    kept = [tuple(sorted(bin_.own + bin_.required)) for bin_ in instance.bins]
    over = [n for n, bin_ in enumerate(instance.bins) if instance.room_beside(bin_, kept[n]) is None]
    for number in over:
        kept[number] = instance.bins[number].required
    for most in most_kept(instance, over):
        kept[most.bin] = most.items
    return kept


def plan(
    instance: Instance,
    kept: list[tuple[int, ...]],
    closed: frozenset[int],
    tuned: Parameters = TUNED,
    way: Way = THRIFTY,
) -> Assignment:
    """Leaves `kept` where it is but on the bins in `closed`, and places the rest by best fit, the largest first.

    A new consumer has room as one of the way's kind, or as one that holds its first item.
    """
    problem, places = instance.problem, _Places(instance, tuned)
    for number, bin_ in enumerate(instance.bins):
        if number not in closed and kept[number]:
            places.open(bin_.consumer, bin_.packing_capacity, kept[number])
    names = instance.free_consumers(places.consumers)
    # The largest partitions come first: with the number of consumers limited, each then goes to the least loaded.
    for item in np.flatnonzero(places.place_of < 0).tolist():
        size = float(instance.sizes[item])
        place = places.best_fit(size)
        if place is None and way.clearing:
            place = places.make_room(item)
        if place is None and problem.max_consumers is not None and len(places.consumers) >= problem.max_consumers:
            place = places.widest() if places.consumers else None
        if place is None:
            consumer = names.take((item,), size)
            of = (
                problem.known_class(consumer)
                or instance.kinds[max(way.kind % len(instance.kinds), instance.kind_for(size, 1))].of
            )
            places.open(consumer, problem.packing_capacity_of(consumer, of) / problem.largest, (item,))
        else:
            places.put(item, place)
    return instance.complete({item: places.consumers[place] for item, place in enumerate(places.place_of.tolist())})


class _Places:
    """Consumers that are open, by place in the order in which they were opened, and what room each has left."""

    def __init__(self, instance: Instance, tuned: Parameters) -> None:
        self._sizes = instance.sizes
        self._tuned = tuned
        fixed = [item for bin_ in instance.bins for item in bin_.required]
        self._movable = np.ones(len(instance.sizes), dtype=np.bool_)
        self._movable[fixed] = False
        self._homes = np.array([bin_.consumer for bin_ in instance.bins] or [-1], dtype=np.int64)[instance.home]
        self._homes[instance.home < 0] = -1
        # Below 0 where a consumer keeps more than it would be given.
        self._rooms = np.empty(len(instance.bins) + len(instance.sizes))
        self._failures = 0
        self.consumers: list[ConsumerId] = []
        self.place_of = np.full(len(instance.sizes), -1, dtype=np.int64)

    def open(self, consumer: ConsumerId, packing_capacity: float, items: tuple[int, ...]) -> None:
        place = len(self.consumers)
        self.consumers.append(consumer)
        self._rooms[place] = packing_capacity
        for item in items:
            self.put(item, place)

    def put(self, item: int, place: int) -> None:
        self.place_of[item] = place
        self._rooms[place] -= self._sizes[item]

    def best_fit(self, size: float) -> int | None:
        """The place with the least room that is enough; of equals the first."""
        rooms = self._rooms[: len(self.consumers)]
        fitting = np.flatnonzero(rooms >= size - FIT_TOLERANCE)
        return int(fitting[np.argmin(rooms[fitting])]) if len(fitting) else None

    def widest(self) -> int:
        return int(np.argmax(self._rooms[: len(self.consumers)]))

    def make_room(self, item: int) -> int | None:
        """Moves others out of the way of `item`, to where there is room for them, and says which place then fits it.

        Of the places with most room, the one that it costs least to clear; of equals the first.
        """
        if self._failures >= self._tuned.clearing_failures:
            return None
        best: tuple[float, int, list[tuple[int, int]]] | None = None
        for place in np.argsort(-self._rooms[: len(self.consumers)], kind="stable")[
            : self._tuned.clearing_tries
        ].tolist():
            moves = self._clearing(place, float(self._sizes[item] - self._rooms[place]))
            if moves is not None:
                cost = sum(self._cost(mover) for mover, _ in moves)
                if best is None or cost < best[0]:
                    best = cost, place, moves
        if best is None:
            self._failures += 1
            return None
        _, place, moves = best
        for mover, target in moves:
            self._rooms[place] += self._sizes[mover]
            self.put(mover, target)
        return place

    def _clearing(self, place: int, missing: float) -> list[tuple[int, int]] | None:
        """Items of `place`, together `missing` or more, and the other places that take them; None if there are none.

        The smallest that is enough, or else small ones until it is.
        """
        rooms = self._rooms[: len(self.consumers)].copy()
        rooms[place] = -np.inf
        movable = np.flatnonzero((self.place_of == place) & self._movable)[::-1]  # the smallest first
        movable = movable[self._sizes[movable] <= rooms.max() + FIT_TOLERANCE]
        enough = movable[self._sizes[movable] >= missing - FIT_TOLERANCE]
        moves = []
        for mover in enough[:1].tolist() or movable.tolist():
            size = float(self._sizes[mover])
            fitting = np.flatnonzero(rooms >= size - FIT_TOLERANCE)
            if len(fitting):
                target = int(fitting[np.argmin(rooms[fitting])])
                rooms[target] -= size
                moves.append((mover, target))
                missing -= size
                if missing <= FIT_TOLERANCE:
                    break
        else:
            return None
        # With the last one others may be more than enough.
        for move in moves[:-1]:
            size = float(self._sizes[move[0]])
            if missing + size <= FIT_TOLERANCE:
                moves.remove(move)
                missing += size
        return moves

    def _cost(self, item: int) -> float:
        """What it costs to move an item from its place, in capacities: nothing where it is not at home."""
        return float(self._sizes[item]) if self.consumers[self.place_of[item]] == self._homes[item] else 0.0
