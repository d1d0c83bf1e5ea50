"""The relaxation: a bound of all plans, the same with patterns as needed as with all, and what is made of it."""

from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from domain.assignment import Assignment
from solver import Problem, Status
from solver.evaluation import Evaluation, evaluate
from solver.exact.instance import FIT_TOLERANCE, Instance
from solver.exact.kept import kept_sets
from solver.exact.knapsack import Grid
from solver.exact.master import WHOLE, Master, Relaxed, Restriction
from solver.exact.relaxation import Limits
from tests.controller.exhaustive import solve_exhaustively
from tests.examples import examples
from tests.solver.partitions import partition
from tests.solver.small_problems import (
    after_looks,
    classed_problems,
    in_time,
    lowest,
    plain_problems,
    problem,
    ruled_problems,
    too_late,
)

known = settings(max_examples=examples(15), deadline=None, derandomize=True)
TOLERANCE = 1e-6
NO_CUTOFF = 1e6


def master_of(given_problem: Problem, units: int = 400) -> Master:
    instance = Instance.of(given_problem)
    listing = kept_sets(instance, 100_000)
    assert not listing.partial
    return Master(instance, listing.sets, Grid.of(instance.sizes, units))


def relaxed(master: Master, cutoff: float = NO_CUTOFF) -> Relaxed:
    found = master.solve(in_time(), cutoff)
    assert found is not None
    return found


def all_sets(master: Master) -> list[tuple[int, ...]]:
    """Every set of items that may move and fit an empty consumer together."""
    free = [item for item in range(len(master.instance.sizes)) if item not in master.required]
    sets = chain.from_iterable(combinations(free, count) for count in range(1, len(free) + 1))
    return [items for items in sets if len(items) == 1 or load(master, items) <= widest(master) + FIT_TOLERANCE]


def widest(master: Master) -> float:
    return master.instance.packing_capacity


def load(master: Master, items: tuple[int, ...]) -> float:
    return float(master.instance.sizes[list(items)].sum())


@given(plain_problems() | ruled_problems() | classed_problems())
@known
def test_no_plan_costs_less_than_the_bound_and_none_less_than_the_relaxation(given_problem: Problem) -> None:
    optimum = solve_exhaustively(given_problem)
    found = relaxed(master_of(given_problem))
    if optimum.status is Status.INFEASIBLE:
        return
    assert found.complete
    assert found.missing == pytest.approx(0.0, abs=TOLERANCE)
    assert found.bound <= found.objective + TOLERANCE
    assert found.objective <= optimum.objective + TOLERANCE


@pytest.mark.parametrize("units", [7, 400])
@given(given_problem=plain_problems() | ruled_problems() | classed_problems())
@known
def test_patterns_as_they_are_needed_come_to_the_same_as_all_patterns_at_once(
    given_problem: Problem, units: int
) -> None:
    assume(solve_exhaustively(given_problem).status is Status.OPTIMAL)
    needed, complete = master_of(given_problem, units), master_of(given_problem, units)
    complete.add_patterns(all_sets(complete))
    once = relaxed(complete)
    assert relaxed(needed).objective == pytest.approx(once.objective, abs=TOLERANCE)
    assert len(complete.patterns) == len(set(all_sets(complete)))
    assert once.bound == pytest.approx(once.objective, abs=1e-4)


@given(plain_problems(most=5), st.data())
@known
def test_no_plan_within_a_restriction_costs_less_than_its_bound(given_problem: Problem, data: st.DataObject) -> None:
    master = master_of(given_problem)
    instance = master.instance
    optional = sorted(master.optional)
    staying = frozenset(data.draw(st.sets(st.sampled_from(optional), max_size=1)) if optional else ())
    leaving = frozenset(data.draw(st.sets(st.sampled_from(optional), max_size=2)) if optional else ()) - staying
    fewest = data.draw(st.integers(0, 3))
    restriction = Restriction(Limits(fewest, data.draw(st.integers(max(1, fewest), 5))), staying, leaving)

    def stays(plan: Assignment, item: int) -> bool:
        name = instance.partitions[item]
        return plan[name] == given_problem.current[name]

    def is_within(plan: Assignment, figures: Evaluation) -> bool:
        return (
            restriction.bins.fewest <= figures.consumers <= restriction.bins.most
            and all(stays(plan, item) for item in staying)
            and not any(stays(plan, item) for item in leaving)
        )

    free = relaxed(master).objective
    master.restrict(restriction)
    found = relaxed(master)
    best = lowest(given_problem, is_within)
    assert best is None or found.bound <= best + TOLERANCE
    if found.missing < TOLERANCE:
        assert restriction.bins.fewest - TOLERANCE <= found.bins.sum() <= restriction.bins.most + TOLERANCE
        shares = master.home_shares(found)
        assert shares[sorted(staying)] == pytest.approx(1.0)
        assert shares[sorted(leaving)] == pytest.approx(0.0)
    master.restrict(Restriction())
    assert relaxed(master).objective == pytest.approx(free, abs=TOLERANCE)


@pytest.mark.parametrize(("item", "other"), [(0, 1), (1, 0)])
def test_an_item_that_has_to_stay_stays_and_what_does_not_fit_beside_it_leaves(item: int, other: int) -> None:
    master = master_of(problem(60, 50, current={0: 1, 1: 1}))
    master.restrict(Restriction(staying=frozenset({item})))
    assert master.home_shares(relaxed(master))[[item, other]] == pytest.approx([1.0, 0.0])
    master.restrict(Restriction(leaving=frozenset({item})))
    assert master.home_shares(relaxed(master))[item] == pytest.approx(0.0)


def test_a_restriction_that_nothing_keeps_leaves_something_out_and_has_a_high_bound() -> None:
    master = master_of(problem(60, 60, 60))
    master.restrict(Restriction(Limits(most=2)))
    found = relaxed(master)
    assert found.missing > 0.5
    assert found.bound > 10


@given(plain_problems() | ruled_problems() | classed_problems())
@known
def test_an_integral_relaxation_is_a_plan_of_that_cost(given_problem: Problem) -> None:
    assume(solve_exhaustively(given_problem).status is Status.OPTIMAL and given_problem.max_consumers is None)
    assume(all(given_problem.speeds.values()))
    master = master_of(given_problem)
    found = relaxed(master)
    assume(found.is_integral)
    figures = evaluate(given_problem, master.instance.assignment(master.rounded(found)))
    assert figures.is_feasible
    assert figures.objective == pytest.approx(found.objective, abs=TOLERANCE)


@given(plain_problems() | ruled_problems() | classed_problems())
@known
def test_the_best_placement_of_all_columns_is_the_optimum(given_problem: Problem) -> None:
    optimum = solve_exhaustively(given_problem)
    assume(all(given_problem.speeds.values()))
    master = master_of(given_problem)
    master.restrict(Restriction(Limits(most=given_problem.max_consumers or len(given_problem.speeds))))
    found = relaxed(master)
    placement, objective = master.best_placement(found, np.inf, in_time(), 0.0, np.inf, all_sets(master))
    if optimum.status is Status.INFEASIBLE:
        assert (placement, objective) == (None, np.inf)
        return
    assert placement is not None
    assert objective == pytest.approx(optimum.objective, abs=1e-5)
    figures = evaluate(given_problem, master.instance.assignment(placement))
    assert figures.is_feasible
    assert figures.objective == pytest.approx(optimum.objective, abs=1e-5)


MANY = problem(*range(20, 60))
HALVES = problem(60, 50, 40, 30, 20, current={0: 1, 1: 1, 2: 2, 3: 2, 4: 3}, migration_weight=0.3)


def test_a_packing_that_is_no_better_than_what_there_is_is_none_and_that_is_known() -> None:
    optimum = solve_exhaustively(HALVES).objective
    master = master_of(HALVES)
    found = relaxed(master)
    placement, objective = master.best_placement(found, np.inf, in_time(), 0.0, optimum - 0.01, all_sets(master))
    assert (placement, objective) == (None, np.inf)


def test_no_packing_and_nothing_known_of_one_comes_of_no_time() -> None:
    master = master_of(HALVES)
    assert master.best_placement(relaxed(master), np.inf, too_late(), 0.0, np.inf) == (None, -np.inf)


def test_the_relaxation_is_not_begun_when_time_is_up() -> None:
    assert master_of(HALVES).solve(too_late(), NO_CUTOFF) is None


@pytest.mark.parametrize("looks", range(1, 30))
def test_whenever_time_is_up_what_there_is_of_the_relaxation_is_a_bound(looks: int) -> None:
    optimum = solve_exhaustively(HALVES).objective
    found = master_of(HALVES).solve(after_looks(looks), NO_CUTOFF)
    assert found is None or found.bound <= optimum + TOLERANCE


@given(plain_problems(most=5), st.floats(0.0, 4.0))
@known
def test_a_bound_up_to_the_cutoff_is_one_of_all_plans(given_problem: Problem, cutoff: float) -> None:
    optimum = solve_exhaustively(given_problem)
    assert min(relaxed(master_of(given_problem), cutoff).bound, cutoff) <= optimum.objective + TOLERANCE


def test_the_relaxation_is_done_when_its_bound_is_above_the_cutoff() -> None:
    master = master_of(MANY)
    first = relaxed(master, cutoff=10.0)
    assert first.bound > 10.0
    assert not first.complete
    assert relaxed(master).objective < first.objective


def test_the_relaxation_is_done_when_it_is_close_enough_to_its_bound() -> None:
    master = master_of(MANY)
    found = master.solve(in_time(), 40.0, close=0.5)
    assert found is not None
    assert not found.complete
    assert found.objective - found.bound < 0.5 * found.objective


def test_patterns_that_are_known_already_or_empty_are_not_added_again() -> None:
    master = master_of(problem(50, 40, 30))
    assert master.patterns == [(0,), (1,), (2,)]
    assert master.add_patterns([(), (1,), (0, 1), (0, 1)]) == 1
    assert master.patterns[3:] == [(0, 1)]


def test_a_pattern_takes_the_least_room_that_it_fits() -> None:
    # Consumer 1 may keep nothing, 70 or 20 or both; so there are rooms of 80, 30 and 10, beside the whole.
    master = master_of(problem(70, 30, 20, 11, 10, current={0: 1, 2: 1}))
    assert master.levels == pytest.approx([0.1, 0.3, 0.8, WHOLE])
    assert [master.level_of(pattern) for pattern in ((4,), (3,), (1,), (2, 4), (1, 3), (0, 1))] == [0, 1, 1, 1, 2, 3]


def test_a_partition_faster_than_a_consumer_takes_an_empty_one() -> None:
    master = master_of(problem(250, 30))
    assert master.level_of((0,)) == len(master.levels) - 1
    assert relaxed(master).objective == pytest.approx(2.0)


def test_the_best_sets_are_added_one_for_each_level() -> None:
    master = master_of(problem(60, 30, 10, 25, current={0: 1}))
    assert master.add_best_sets(master.instance.sizes) == 2
    assert {round(load(master, pattern), 9) for pattern in master.patterns[4:]} == {0.4, 1.0}


@given(plain_problems(most=5), st.sampled_from([0.0, 0.1, 0.5]))
@known
def test_all_patterns_up_to_a_reduced_cost_are_found(given_problem: Problem, width: float) -> None:
    master = master_of(given_problem)
    found = relaxed(master)
    patterns = master.patterns_within(width, found.prices, 10_000, in_time())
    assert patterns is not None
    sizes, every = master.instance.sizes, range(len(master.instance.sizes))
    for items in all_sets(master):
        prices, level = found.prices.items[list(items)], master.level_of(items)
        cost = float(found.prices.rooms[level]) - float(prices.sum())
        room = min(float(master.levels[level]), 1.0) - load(master, items)
        if width > 0:  # with another item that fits beside them they cost no more
            counts = not any(sizes[other] <= room + TOLERANCE for other in every if other not in items)
        else:  # what is worth nothing adds to no gain
            counts = bool((prices > 0).all())
        if len(items) > 1 and abs(cost - width) > TOLERANCE:
            assert (items in patterns) == (counts and cost < width)


def test_patterns_are_none_when_they_are_more_than_wanted_or_time_is_up() -> None:
    master = master_of(problem(*range(5, 25)))
    found = relaxed(master)
    assert master.patterns_within(1.0, found.prices, 10, in_time()) is None
    assert master.patterns_within(1.0, found.prices, 10**6, too_late()) is None


UNEVEN = problem(
    *(7.0 * number % 43 + 9.5 for number in range(24)), current={number: number % 7 + 1 for number in range(24)}
)


def test_a_dive_ends_where_every_consumer_keeps_one_set_or_none_and_leaves_no_trace() -> None:
    master = master_of(UNEVEN)
    before = relaxed(master)
    assert not before.is_integral
    found = master.dive(before, in_time(), NO_CUTOFF, 0.0)
    assert found is not None
    assert np.abs(found.kept - np.round(found.kept)).max() < TOLERANCE
    assert found.objective >= before.objective - TOLERANCE
    assert relaxed(master).objective == pytest.approx(before.objective, abs=TOLERANCE)


def test_a_dive_stays_where_it_is_when_time_is_up() -> None:
    master = master_of(UNEVEN)
    before = relaxed(master)
    assert master.dive(before, too_late(), NO_CUTOFF, 0.0) is before


def test_only_items_that_may_stay_or_leave_are_optional() -> None:
    master = master_of(problem(50, 40, 30, 20, current={0: 1, 1: 1, 2: 2}, pinned={partition(1): 1}))
    assert sorted(master.optional) == [0, 2]
    assert master.required == {1}


def test_nothing_to_place_costs_nothing() -> None:
    found = relaxed(master_of(problem()))
    assert (found.objective, found.bound, found.bins.sum(), found.complete) == (0.0, 0.0, 0.0, True)
    assert found.is_integral


def test_everything_that_is_pinned_is_where_it_must_be_at_the_price_of_that() -> None:
    pinned = {name: 1 + number % 2 for number, name in enumerate(problem(40, 30, 20, 10).speeds)}
    given_problem = problem(40, 30, 20, 10, current={0: 1, 1: 1}, pinned=pinned)
    master = master_of(given_problem)
    found = relaxed(master)
    assert found.is_integral
    assert found.objective == pytest.approx(solve_exhaustively(given_problem).objective)
    plan = master.instance.assignment(master.rounded(found))
    assert plan == Assignment(pinned)
