"""Picks engines by the size and shape of a problem, and runs them until one has a proof or time is up."""

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from domain.assignment import Assignment
from solver.deadline import Deadline
from solver.exact import branch_and_price
from solver.exact.bounds import fewest_bins, pooled_bound
from solver.exact.coarse import Coarse, coarse_bound
from solver.exact.instance import Instance
from solver.exact.kept import Listing, kept_sets
from solver.incumbent import Incumbent
from solver.parameters import TUNED, Parameters
from solver.problem import Problem
from solver.search import construct
from solver.search.parts import part_by_part
from solver.search.starts import KEEP, offer_heuristics

CP_SAT = "cp-sat"
NEIGHBOURHOODS = "neighbourhoods"


@dataclass(frozen=True, slots=True)
class Portfolio:
    """The exact engines together. Each method improves an incumbent that is not proven yet."""

    tuned: Parameters = TUNED

    def run(self, instance: Instance, incumbent: Incumbent, deadline: Deadline) -> None:
        """The engines that suit the size, the shape and the time."""
        if deadline.passed:
            return
        tuned, count = self.tuned, len(instance.sizes)
        listing = self._listed(instance)
        nearly_all = self._is_nearly_all(listing, instance)
        for_all_s = tuned.whole_s * math.pow(count / 1000, tuned.whole_power)
        if instance.problem.classes:
            for_all_s *= tuned.whole_classes
        if not listing.partial and instance.problem.time_limit_s >= for_all_s:
            units = tuned.fine_units if count <= tuned.fine_partitions else tuned.units
            branch_and_price.search(instance, listing.sets, incumbent, deadline, units, tuned=tuned)
            if not incumbent.is_proven and instance.problem.min_consumers and count <= tuned.cp_sat_partitions:
                # An empty consumer counts in the arc-flow model: it does not see what it costs to fill it.
                search_by_cp_sat(instance, incumbent, deadline)
            return
        steps: tuple[int, ...] = (100, 200, 400) if listing.partial else (100, 400, 800)
        if not nearly_all:
            if instance.problem.is_plain:  # else these plans were there before
                construct.offer_plans(instance, incumbent, deadline, tuned)
            self._guided(instance, listing, incumbent, deadline, steps[:2])
            steps = steps[2:]
        if incumbent.is_proven or deadline.passed:
            return
        given = (instance, listing, incumbent, deadline, steps)
        prover = threading.Thread(target=self._prove, args=given, name="kcga-bound")
        prover.start()
        improve = self.improve_by_parts if nearly_all else self.improve_by_neighbourhoods
        improve(instance.problem, incumbent, deadline)
        prover.join(deadline.remaining)

    def run_branch_and_price(self, instance: Instance, incumbent: Incumbent, deadline: Deadline) -> None:
        """Branch and price alone, on the whole problem."""
        if deadline.passed:
            return
        listing = self._listed(instance)
        if listing.partial:
            self._search_generated(instance, listing, incumbent, deadline)
        else:
            units = self.tuned.fine_units
            branch_and_price.search(instance, listing.sets, incumbent, deadline, units, tuned=self.tuned)

    def improve_by_parts(self, problem: Problem, incumbent: Incumbent, deadline: Deadline) -> None:
        """Solves parts of the problem, and then parts of what came of it, in ever other divisions."""
        first = deadline.within(self.tuned.first_pass * deadline.remaining)
        plan = part_by_part(problem, None, self.tuned.small_part, self._solve_part, first)
        incumbent.offer(plan, branch_and_price.NAME)
        self._improve(problem, incumbent, deadline, neighbourhoods=False)

    def improve_by_neighbourhoods(self, problem: Problem, incumbent: Incumbent, deadline: Deadline) -> None:
        """Improves parts of the incumbent's plan, and then a few consumers of it at a time, in turns."""
        self._improve(problem, incumbent, deadline, neighbourhoods=True)

    def _improve(self, problem: Problem, incumbent: Incumbent, deadline: Deadline, *, neighbourhoods: bool) -> None:
        tuned = self.tuned
        for turn in range(1, tuned.passes + 1):
            best = incumbent.best
            if deadline.passed or best is None or incumbent.is_proven:
                return
            plan, name = best.assignment, branch_and_price.NAME
            if neighbourhoods and turn % 2 == 0:
                few, name = max(1, tuned.neighbourhood * len(problem.speeds) // best.figures.consumers), NEIGHBOURHOODS
                plan = part_by_part(problem, plan, few, self._solve_neighbourhood, deadline, turn)
            else:
                size, least_s = tuned.large_part, tuned.large_part_s
                plan = part_by_part(problem, plan, size, self._solve_part, deadline, turn, least_s)
            incumbent.offer(plan, name)

    def _solve_part(self, problem: Problem, plan: Assignment | None, deadline: Deadline) -> Assignment:
        """The best that the heuristics and branch and price find for a part."""
        instance, incumbent = self._begun(problem, plan, deadline)
        if not (deadline.passed or incumbent.is_proven):
            tuned, listing = self.tuned, self._listed(instance)
            if self._is_nearly_all(listing, instance):
                nodes = tuned.part_nodes
                branch_and_price.search(
                    instance, listing.sets, incumbent, deadline, tuned.units, most_nodes=nodes, tuned=tuned
                )
            else:
                self._search_generated(instance, listing, incumbent, deadline)
        return _plan_of(incumbent)

    def _solve_neighbourhood(self, problem: Problem, plan: Assignment | None, deadline: Deadline) -> Assignment:
        """The best that CP-SAT finds for a few consumers with many partitions each."""
        instance, incumbent = self._begun(problem, plan, deadline)
        if not incumbent.is_proven:
            search_by_cp_sat(instance, incumbent, deadline.within(self.tuned.neighbourhood_s))
        return _plan_of(incumbent)

    def _begun(self, problem: Problem, plan: Assignment | None, deadline: Deadline) -> tuple[Instance, Incumbent]:
        """A part, beginning from its plan so far or, without one, from the heuristics."""
        incumbent = Incumbent(problem, self.tuned.part_tolerance)
        if plan is None:
            offer_heuristics(problem, incumbent, deadline)
        else:
            incumbent.offer(plan, KEEP)
        instance = Instance.of(problem)
        incumbent.raise_bound(pooled_bound(instance))
        return instance, incumbent

    def _search_generated(self, instance: Instance, listing: Listing, incumbent: Incumbent, deadline: Deadline) -> None:
        """Searches plans by rule, and those of the kept sets that a coarse relaxation uses: the others are too many."""
        tuned = self.tuned
        construct.offer_plans(instance, incumbent, deadline, tuned)
        coarse = self._guided(instance, listing, incumbent, deadline, (100,))
        if incumbent.is_proven or deadline.passed:
            return
        # What is proven of these kept sets is not proven of all.
        found = Incumbent(instance.problem, tuned.part_tolerance)
        if incumbent.best is not None:
            found.offer(incumbent.best.assignment, incumbent.best.engine)
        nodes = tuned.part_nodes
        branch_and_price.search(
            instance, coarse.kept, found, deadline, tuned.units, most_nodes=nodes, dive=True, tuned=tuned
        )
        if found.best is not None:
            incumbent.offer(found.best.assignment, found.best.engine)

    def _guided(
        self, instance: Instance, listing: Listing, incumbent: Incumbent, deadline: Deadline, steps: Sequence[int]
    ) -> Coarse:
        """Coarse relaxations in so many units: their bounds, and plans in which consumers keep what they keep there."""
        tuned, coarse = self.tuned, Coarse(-math.inf, listing.sets, {})
        budget = deadline.within(tuned.relaxing * deadline.remaining)
        for units in steps:
            if budget.passed or incumbent.is_proven:
                break
            consumers = _consumers(instance, incumbent)
            coarse = coarse_bound(instance, listing, self._units(instance, units), consumers, budget, tuned)
            incumbent.raise_bound(coarse.bound)
            self._round(instance, coarse, incumbent, deadline)
        return coarse

    def _round(self, instance: Instance, coarse: Coarse, incumbent: Incumbent, deadline: Deadline) -> None:
        """Plans from roundings of a coarse relaxation: all by the way that made the most of the first."""
        ways, chance = construct.ways(instance), np.random.default_rng(instance.problem.seed)
        for rounding in coarse.roundings(chance, self.tuned.roundings if coarse.shares else 0):
            kept = [rounding.get(number, bin_.required) for number, bin_ in enumerate(instance.bins)]
            name = branch_and_price.NAME
            ways = [construct.offer_placed(instance, kept, frozenset(), incumbent, deadline, name, ways, self.tuned)]

    def _prove(
        self, instance: Instance, listing: Listing, incumbent: Incumbent, deadline: Deadline, steps: Sequence[int]
    ) -> None:
        """Raises the bound of a problem that is too large for one relaxation, in finer and finer units."""
        consumers = _consumers(instance, incumbent)
        for units in steps:
            if deadline.passed or incumbent.is_proven:
                return
            units = self._units(instance, units)
            incumbent.raise_bound(coarse_bound(instance, listing, units, consumers, deadline, self.tuned).bound)

    def _units(self, instance: Instance, units: int) -> int:
        """More than that where some consumers are larger than ordinary ones: fine for these is coarse for others."""
        scale = math.sqrt(instance.problem.largest / instance.problem.capacity)
        return max(units, min(self.tuned.most_units, round(units * scale)))

    def _listed(self, instance: Instance) -> Listing:
        """All kept sets, but for a few consumers with many tiny partitions; or hardly any, if all have too many."""
        listing = kept_sets(instance, max(self.tuned.kept_sets, self.tuned.kept_sets_each * len(instance.sizes)))
        return listing if self._is_nearly_all(listing, instance) else kept_sets(instance, 0)

    def _is_nearly_all(self, listing: Listing, instance: Instance) -> bool:
        return len(listing.partial) <= self.tuned.nearly_all * len(instance.bins)


def settle_idle(instance: Instance, incumbent: Incumbent, deadline: Deadline) -> None:
    """Proves a plan that has a consumer for partitions that nobody writes to, which engines leave out.

    They take no room, but whoever holds more than the packing capacity, or a partition that fills it, is given none.
    """
    few = len(instance.problem.speeds) <= TUNED.cp_sat_partitions
    if instance.idle and few and not (incumbent.is_proven or deadline.passed):
        search_by_cp_sat(Instance.of(instance.problem, idle_too=True), incumbent, deadline)


def search_by_cp_sat(instance: Instance, incumbent: Incumbent, deadline: Deadline) -> None:
    # Imported here: it brings pandas along, for a third of a second, and few problems come to it.
    from solver.exact import cp_sat

    if instance.idle and instance.problem.min_consumers:
        # A partition that nobody writes to may be what a consumer is there for.
        instance = Instance.of(instance.problem, idle_too=True)
    cp_sat.solve(instance, incumbent, deadline)


def _consumers(instance: Instance, incumbent: Incumbent) -> tuple[int, int]:
    """The fewest consumers that there can be, and the most that a plan as good as the incumbent's could have."""
    count, cheapest = len(instance.problem.speeds), float(instance.prices.min())
    most = count if incumbent.best is None else min(count, int(incumbent.objective / cheapest) + 1)
    return fewest_bins(instance), most


def _plan_of(incumbent: Incumbent) -> Assignment:
    if incumbent.best is None:
        raise ValueError("a part of the problem has no feasible plan")
    return incumbent.best.assignment


ENGINES = {"auto": Portfolio().run, branch_and_price.NAME: Portfolio().run_branch_and_price, CP_SAT: search_by_cp_sat}
"""Each improves an incumbent that is not proven yet."""
