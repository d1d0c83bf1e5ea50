"""The engine that proves: branch and price on the arc-flow model (see `relaxation`), by whose name it is asked for.

The relaxation is nearly integral once the number of consumers of each kind is: the search branches on that first, and
then on whether a partition stays at home. Nodes are taken by their bound, the lowest first; ties by age.
"""

import heapq
import math
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field, replace

import numpy as np

from solver.deadline import Deadline
from solver.exact.bounds import fewest_bins
from solver.exact.instance import Instance
from solver.exact.kept import KeptSet
from solver.exact.knapsack import Grid
from solver.exact.master import Master, Relaxed, Restriction
from solver.exact.relaxation import Limits
from solver.incumbent import Incumbent
from solver.parameters import TUNED, Parameters

NAME = "arc-flow"
_FRACTIONAL = 1e-6


@dataclass(frozen=True, slots=True, order=True)
class _Part:
    """A part of the search space, in which nothing is better than its bound."""

    bound: float
    age: int
    restriction: Restriction = field(compare=False)


class _Parts:
    """Of the search space: those still to be looked at, and those that were left."""

    def __init__(self, whole: Restriction) -> None:
        self._ahead = [_Part(-math.inf, 0, whole)]
        self._made = 0
        self.left = math.inf
        """The lowest bound of those that were left: they hold nothing better, or nothing is there to branch on."""

    def __len__(self) -> int:
        return len(self._ahead)

    @property
    def next(self) -> _Part:
        return self._ahead[0]

    @property
    def bound(self) -> float:
        """What no part holds anything better than."""
        return min(self._ahead[0].bound if self._ahead else math.inf, self.left)

    def divide(self, bound: float, into: Sequence[Restriction]) -> None:
        """The next one has been looked at: nothing in it is better than `bound`. Without parts it is left."""
        heapq.heappop(self._ahead)
        if not into:
            self.left = min(self.left, bound)
        for restriction in into:
            self._made += 1
            heapq.heappush(self._ahead, _Part(bound, self._made, restriction))


def search(
    instance: Instance,
    kept: Sequence[KeptSet],
    incumbent: Incumbent,
    deadline: Deadline,
    units: int,
    *,
    most_nodes: int = 1_000_000,
    dive: bool = False,
    tuned: Parameters = TUNED,
) -> None:
    """Branches and prices from the incumbent's best plan on, until it is proven or time is up.

    Args:
        instance: what is to be solved.
        kept: the kept sets that there are. Leave some out, and the bound is only one of plans without them.
        incumbent: where to put plans and bounds.
        deadline: when to stop.
        units: to a capacity, in the search for patterns.
        most_nodes: how many parts of the search space to look at.
        dive: whether to go straight for a good plan first, as when the kept sets are too many for a proof.
        tuned: what it is tuned by.
    """
    problem = instance.problem
    bins = Limits(
        fewest=max(min(problem.min_consumers, len(problem.speeds)), fewest_bins(instance)),
        most=len(problem.speeds) if problem.max_consumers is None else problem.max_consumers,
    )
    if deadline.passed or bins.fewest > bins.most:
        return
    master = Master(instance, kept, Grid.of(instance.sizes, units), tuned)
    if not deadline.passed:
        master.add_best_sets(instance.sizes)
    close = tuned.dive_close if dive else 0.0
    parts = _Parts(Restriction(bins))
    visited = 0
    while parts and not deadline.passed and visited < most_nodes:
        incumbent.raise_bound(parts.bound)
        part = parts.next
        if part.bound >= incumbent.cutoff:
            break
        master.restrict(part.restriction)
        ceiling = min(incumbent.cutoff, len(instance.sizes) * (float(instance.prices.max()) + instance.weight))
        # A relaxation that does not come to an end in time is still good for a plan: the first one leaves time for it.
        budget = deadline if visited else deadline.within(tuned.relaxing * deadline.remaining)
        relaxed = master.solve(budget, ceiling, close)
        if relaxed is None:
            return
        bound = max(part.bound, relaxed.bound)
        finished = relaxed.complete or bound >= incumbent.cutoff
        if not finished and len(parts) == 1:
            incumbent.raise_bound(min(bound, parts.left))
        if dive and bound < incumbent.cutoff and not relaxed.is_integral:
            dived = master.dive(relaxed, deadline.within(tuned.relaxing * deadline.remaining), ceiling, close)
            if dived is not None:
                _complete(master, dived, 0.0, incumbent, deadline)
        if not finished:
            _complete(master, relaxed, tuned.width, incumbent, deadline)
            return
        visited += 1
        children: list[Restriction] = []
        if bound < incumbent.cutoff:
            if relaxed.is_integral:
                incumbent.offer(instance.assignment(master.rounded(relaxed)), NAME)
            children = _children(master, relaxed, part.restriction)
            worth_looking = not _splits_consumers(children, part.restriction) and _is_power_of_two(visited)
            if (worth_looking or not children) and bound < incumbent.cutoff:
                bound = max(bound, _exhausted(master, relaxed, bound, incumbent, deadline))
        parts.divide(bound, children if bound < incumbent.cutoff else ())
    incumbent.raise_bound(min(parts.bound, incumbent.objective))


def _complete(
    master: Master,
    relaxed: Relaxed,
    width: float,
    incumbent: Incumbent,
    deadline: Deadline,
    more: Iterable[tuple[int, ...]] = (),
    left_out: Set[int] = frozenset(),
) -> float:
    """Offers the best plan of the columns up to `width` and of the patterns `more`, if it beats the incumbent's.

    The items `left_out` need not be on any of them.

    Returns:
        What none of them is better than.
    """
    # SCIP looks at the clock now and then only, and what it finds must come back in time.
    budget = deadline.within(master.tuned.integers * deadline.remaining)
    placement, objective = master.best_placement(
        relaxed, width, budget, incumbent.tolerance / 10, incumbent.objective, more, left_out
    )
    if placement is not None:
        incumbent.offer(master.instance.assignment(placement), NAME)
    return objective


def _exhausted(master: Master, relaxed: Relaxed, bound: float, incumbent: Incumbent, deadline: Deadline) -> float:
    """Looks for a good plan first, and then at every column that a better one could be made of, if they are few.

    Returns:
        What no plan in this part is better than.
    """
    _complete(master, relaxed, master.tuned.width, incumbent, deadline)
    if bound >= incumbent.cutoff or deadline.passed:
        return bound
    # A plan costs no more without the items that it costs nothing to cover, and there are fewer patterns without them:
    # that may be proof enough.
    for left_out in dict.fromkeys((master.worth_nothing(relaxed.prices), frozenset[int]())):
        # Reduced costs are those of this relaxation: what its part is known not to be better than may be more.
        goal = incumbent.objective
        width = goal - relaxed.bound
        patterns = master.patterns_within(width, relaxed.prices, master.tuned.most_patterns, deadline, left_out)
        if patterns is None:
            return bound
        bound = max(bound, min(goal, _complete(master, relaxed, width, incumbent, deadline, patterns, left_out)))
        if bound >= incumbent.cutoff or deadline.passed:
            break
    return bound


def _children(master: Master, relaxed: Relaxed, of: Restriction) -> list[Restriction]:
    """Two parts that hold every solution of `of` and exclude `relaxed`; none where there is nothing to branch on."""
    off = np.abs(relaxed.bins - np.round(relaxed.bins))
    if (off > _FRACTIONAL).any():
        # The kind that is nearest to a half, by its price.
        kind = int(np.argmax(off * master.instance.prices))
        count = float(relaxed.bins[kind])
        return [replace(of, bins=each) for each in of.bins.split(kind, len(off), math.floor(count))]
    optional = np.array(sorted(master.optional), dtype=np.int64)
    shares = master.home_shares(relaxed)[optional]
    undecided = (shares > _FRACTIONAL) & (shares < 1 - _FRACTIONAL)
    if not undecided.any():
        return []
    # The item that is nearest to a half; ties by size, the largest first.
    item = int(optional[int(np.argmin(np.where(undecided, np.round(np.abs(shares - 0.5), 6), 1.0)))])
    return [replace(of, staying=of.staying | {item}), replace(of, leaving=of.leaving | {item})]


def _splits_consumers(children: list[Restriction], of: Restriction) -> bool:
    return bool(children) and children[0].bins != of.bins


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0
