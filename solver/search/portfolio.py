"""Picks engines by the size and shape of a problem, and runs them until one has a proof or time is up."""

import math
import threading

from domain.assignment import Assignment
from solver.deadline import Deadline
from solver.exact import branch_and_price
from solver.exact.bounds import fewest_bins, pooled_bound
from solver.exact.coarse import coarse_bound
from solver.exact.instance import Instance
from solver.exact.kept import Listing, kept_sets
from solver.incumbent import Incumbent
from solver.problem import Problem
from solver.search import construct
from solver.search.parts import first_pass, later_pass
from solver.search.starts import offer_heuristics

_PART_TOLERANCE = 3e-4
"""Parts are not proven any further: what is left there is less than what dividing the problem costs."""
_PART_NODES = 12
_SMALL_PART, _LARGE_PART = 500, 1000
"""Partitions: small parts have a plan early, large ones lose less by the division, and come second."""
_LARGE_PART_S = 1.0
"""Seconds for a large part, at least: with less, nothing comes of it."""
_FIRST_PASS = 0.7
"""Of the time that is left."""
_PASSES = 100
CP_SAT = "cp-sat"
NEIGHBOURHOODS = "neighbourhoods"
_FEW_CONSUMERS = 8
"""At a time in a large neighbourhood."""
_NEIGHBOURHOOD_S = 0.5
"""Seconds for each."""
_MOST_FOR_CP_SAT = 200
"""Partitions."""
_MOSTLY = 0.02
"""Of the consumers: where the kept sets of no more than this are not all listed, the others decide."""


def run(instance: Instance, incumbent: Incumbent, deadline: Deadline) -> None:
    """The exact engines that suit the size, the shape and the time."""
    if deadline.passed:
        return
    problem = instance.problem
    listing = _listed(instance)
    if not _is_nearly_all(listing, instance):
        construct.offer_plans(instance, incumbent, deadline)
    if not listing.partial and problem.time_limit_s >= _seconds_for_all(len(instance.sizes)):
        units = branch_and_price.FINE if len(instance.sizes) <= 2000 else branch_and_price.MEDIUM
        branch_and_price.search(instance, listing.sets, incumbent, deadline, units)
        if not incumbent.is_proven and problem.min_consumers and len(instance.sizes) <= _MOST_FOR_CP_SAT:
            # An empty consumer counts in the arc-flow model: it does not see what it costs to fill it.
            _search_by_cp_sat(instance, incumbent, deadline)
        return
    if incumbent.is_proven or deadline.passed:
        return
    prover = threading.Thread(target=_prove, args=(instance, listing, incumbent, deadline), name="kcga-bound")
    prover.start()
    improve = improve_by_parts if _is_nearly_all(listing, instance) else improve_by_neighbourhoods
    improve(problem, incumbent, deadline)
    prover.join(deadline.remaining)


def settle_idle(instance: Instance, incumbent: Incumbent, deadline: Deadline) -> None:
    """Proves a plan that has a consumer for partitions that nobody writes to, which engines leave out.

    They take no room, but whoever holds more than the packing capacity, or a partition that fills it, is given none.
    """
    few = len(instance.problem.speeds) <= _MOST_FOR_CP_SAT
    if instance.idle and few and not (incumbent.is_proven or deadline.passed):
        _search_by_cp_sat(Instance.of(instance.problem, idle_too=True), incumbent, deadline)


def _listed(instance: Instance) -> Listing:
    """All kept sets, but for a few consumers with many tiny partitions; or hardly any, if all have too many."""
    listing = kept_sets(instance, max(2_000, 6 * len(instance.sizes)))
    return listing if _is_nearly_all(listing, instance) else kept_sets(instance, 0)


def _is_nearly_all(listing: Listing, instance: Instance) -> bool:
    return len(listing.partial) <= _MOSTLY * len(instance.bins)


def _prove(instance: Instance, listing: Listing, incumbent: Incumbent, deadline: Deadline) -> None:
    """Raises the bound of a problem that is too large for one relaxation, in finer and finer units."""
    consumers = _consumers(instance, incumbent)
    for units in (100, 200, 400) if listing.partial else (100, 400, 800):
        if deadline.passed or incumbent.is_proven:
            return
        incumbent.raise_bound(coarse_bound(instance, listing, units, consumers, deadline).bound)


def _consumers(instance: Instance, incumbent: Incumbent) -> tuple[int, int]:
    """The fewest consumers that there can be, and the most that a plan as good as the incumbent's could have."""
    count = len(instance.problem.speeds)
    return fewest_bins(instance), count if incumbent.best is None else min(count, int(incumbent.objective) + 1)


def improve_by_parts(problem: Problem, incumbent: Incumbent, deadline: Deadline) -> None:
    """Solves parts of the problem, and then parts of what came of it, in ever other divisions."""
    plan = first_pass(problem, _SMALL_PART, _solve_part, deadline.within(_FIRST_PASS * deadline.remaining))
    incumbent.offer(plan, branch_and_price.NAME)
    for turn in range(_PASSES):
        best = incumbent.best
        if deadline.passed or best is None or incumbent.is_proven:
            return
        plan = later_pass(problem, best.assignment, _LARGE_PART, _solve_part, deadline, turn, _LARGE_PART_S)
        incumbent.offer(plan, branch_and_price.NAME)


def improve_by_neighbourhoods(problem: Problem, incumbent: Incumbent, deadline: Deadline) -> None:
    """Improves parts of the incumbent's plan, and then a few consumers of it at a time, in turns."""
    for turn in range(_PASSES):
        best = incumbent.best
        if deadline.passed or best is None or incumbent.is_proven:
            return
        if turn % 2 == 0:
            plan = later_pass(problem, best.assignment, _LARGE_PART, _solve_part, deadline, turn, _LARGE_PART_S)
            incumbent.offer(plan, branch_and_price.NAME)
        else:
            few = max(1, _FEW_CONSUMERS * len(problem.speeds) // best.figures.consumers)
            incumbent.offer(
                later_pass(problem, best.assignment, few, _solve_neighbourhood, deadline, turn), NEIGHBOURHOODS
            )


def _solve_part(problem: Problem, plan: Assignment | None, deadline: Deadline) -> Assignment:
    """The best that the heuristics and the arc-flow engine find for a part."""
    incumbent = Incumbent(problem, _PART_TOLERANCE)
    if plan is None:
        offer_heuristics(problem, incumbent, deadline)
    else:
        incumbent.offer(plan, branch_and_price.NAME)
    if not deadline.passed:
        instance = Instance.of(problem)
        incumbent.raise_bound(pooled_bound(instance))
        listing = _listed(instance)
        if _is_nearly_all(listing, instance):
            branch_and_price.search(
                instance, listing.sets, incumbent, deadline, branch_and_price.MEDIUM, most_nodes=_PART_NODES
            )
        else:
            construct.offer_plans(instance, incumbent, deadline)
            _search_generated(instance, listing, incumbent, deadline)
    best = incumbent.best
    if best is None:
        raise ValueError("a part of the problem has no feasible plan")
    return best.assignment


def _search_generated(instance: Instance, listing: Listing, incumbent: Incumbent, deadline: Deadline) -> None:
    """Searches the plans that are made of the kept sets a coarse relaxation has use for: the others are too many."""
    consumers = _consumers(instance, incumbent)
    coarse = coarse_bound(instance, listing, 100, consumers, deadline.within(0.5 * deadline.remaining))
    incumbent.raise_bound(coarse.bound)
    if incumbent.is_proven or deadline.passed:
        return
    found = Incumbent(instance.problem, _PART_TOLERANCE)
    if incumbent.best is not None:
        found.offer(incumbent.best.assignment, incumbent.best.engine)
    branch_and_price.search(
        instance, coarse.kept, found, deadline, branch_and_price.MEDIUM, most_nodes=_PART_NODES, dive=True
    )
    if found.best is not None:
        incumbent.offer(found.best.assignment, found.best.engine)


def _solve_neighbourhood(problem: Problem, plan: Assignment | None, deadline: Deadline) -> Assignment:
    """The best that CP-SAT finds for a few consumers with many partitions each."""
    incumbent = Incumbent(problem, _PART_TOLERANCE)
    if plan is None:
        offer_heuristics(problem, incumbent, deadline)
    else:
        incumbent.offer(plan, CP_SAT)
    instance = Instance.of(problem)
    incumbent.raise_bound(pooled_bound(instance))
    if not incumbent.is_proven:
        _search_by_cp_sat(instance, incumbent, deadline.within(_NEIGHBOURHOOD_S))
    best = incumbent.best
    if best is None:
        raise ValueError("a part of the problem has no feasible plan")
    return best.assignment


def _search_by_cp_sat(instance: Instance, incumbent: Incumbent, deadline: Deadline) -> None:
    # Imported here: it brings pandas along, for a third of a second, and few problems come to it.
    from solver.exact import cp_sat

    cp_sat.solve(instance, incumbent, deadline)


def _seconds_for_all(count: int) -> float:
    """What it takes to prove a plan for `count` partitions at once, about."""
    return 1.5 * math.pow(count / 1000, 1.7)


def run_branch_and_price(instance: Instance, incumbent: Incumbent, deadline: Deadline) -> None:
    """The arc-flow engine alone, on the whole problem."""
    if deadline.passed:
        return
    listing = _listed(instance)
    if not listing.partial:
        branch_and_price.search(instance, listing.sets, incumbent, deadline, branch_and_price.FINE)
    else:
        construct.offer_plans(instance, incumbent, deadline)
        _search_generated(instance, listing, incumbent, deadline)


ENGINES = {"auto": run, branch_and_price.NAME: run_branch_and_price, CP_SAT: _search_by_cp_sat}
"""Each improves an incumbent that is not proven yet."""
