"""Branch and price by itself: the optimum of all plans, and bounds that hold however early it is stopped."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.assignment import Assignment
from solver import Problem, Status, solve
from solver.exact import branch_and_price
from solver.exact.branch_and_price import search
from solver.exact.instance import Instance
from solver.exact.kept import kept_sets
from solver.exact.knapsack import Grid
from solver.exact.master import Master, Relaxed, Restriction
from solver.exact.relaxation import Limits
from solver.incumbent import Incumbent
from solver.search.starts import pack
from tests.controller.exhaustive import solve_exhaustively
from tests.examples import examples
from tests.solver.partitions import partition
from tests.solver.small_problems import (
    after_looks,
    classed_problems,
    in_time,
    plain_problems,
    problem,
    ruled_problems,
    too_late,
)

known = settings(max_examples=examples(25), deadline=None, derandomize=True)
TOLERANCE = 1e-5
UNITS = 1000


def searched(given_problem: Problem, incumbent: Incumbent | None = None, **options: object) -> Incumbent:
    """The incumbent after a search of the whole problem."""
    found = Incumbent(given_problem) if incumbent is None else incumbent
    instance = Instance.of(given_problem)
    search(instance, kept_sets(instance, 100_000).sets, found, in_time(), UNITS, **options)  # type: ignore[arg-type]
    return found


@given(plain_problems() | ruled_problems() | classed_problems())
@known
def test_the_search_ends_with_the_optimum_and_its_proof(given_problem: Problem) -> None:
    optimum = solve_exhaustively(given_problem)
    incumbent = searched(given_problem)
    if optimum.status is Status.INFEASIBLE:
        assert incumbent.best is None
        return
    assert incumbent.best is not None
    assert incumbent.best.engine == branch_and_price.NAME
    assert incumbent.objective == pytest.approx(optimum.objective, abs=TOLERANCE)
    assert incumbent.is_optimal
    assert incumbent.bound <= optimum.objective + TOLERANCE


@given(plain_problems())
@known
def test_a_dive_for_a_good_plan_first_spoils_no_proof(given_problem: Problem) -> None:
    incumbent = searched(given_problem, dive=True)
    assert incumbent.objective == pytest.approx(solve_exhaustively(given_problem).objective, rel=1e-3)
    assert incumbent.bound <= solve_exhaustively(given_problem).objective + TOLERANCE


GIVEN = problem(
    62, 55, 48, 41, 37, 29, 23, 11, current={number: number % 4 + 1 for number in range(8)}, migration_weight=0.7
)


@pytest.mark.parametrize("looks", range(0, 80, 4))
def test_whenever_time_is_up_the_bound_holds_and_the_plan_is_feasible(looks: int) -> None:
    incumbent = Incumbent(GIVEN)
    instance = Instance.of(GIVEN)
    search(instance, kept_sets(instance, 100_000).sets, incumbent, after_looks(looks), UNITS)
    optimum = solve_exhaustively(GIVEN)
    assert incumbent.bound <= optimum.objective + TOLERANCE
    assert incumbent.best is None or incumbent.best.figures.is_feasible
    assert incumbent.objective >= optimum.objective - TOLERANCE


def parts_of(given_problem: Problem) -> tuple[Master, Relaxed, list[Restriction]]:
    instance = Instance.of(given_problem)
    master = Master(instance, kept_sets(instance, 100_000).sets, Grid.of(instance.sizes, UNITS))
    relaxed = master.solve(in_time(), 100.0)
    assert relaxed is not None
    return master, relaxed, branch_and_price._children(master, relaxed, Restriction())


def test_a_search_divides_by_the_number_of_consumers_first() -> None:
    _, relaxed, (fewer, more) = parts_of(problem(30, 30, 30, 30, 30))
    count = int(relaxed.bins.sum())
    assert (fewer, more) == (Restriction(Limits(most=count)), Restriction(Limits(fewest=count + 1)))


def test_and_then_by_whether_a_partition_stays() -> None:
    current = {0: 3, 1: 1, 2: 2, 3: 2, 4: 1, 5: 3, 6: 1}
    given_problem = problem(33, 50, 51, 47, 27, 41, 28, current=current, migration_weight=0.7)
    master, relaxed, (staying, leaving) = parts_of(given_problem)
    (item,) = staying.staying
    assert 0.01 < master.home_shares(relaxed)[item] < 0.99
    assert (staying, leaving) == (Restriction(staying=frozenset({item})), Restriction(leaving=frozenset({item})))


def test_nothing_is_left_to_divide_where_the_relaxation_is_a_plan() -> None:
    _, relaxed, parts = parts_of(problem(60, 40, current={0: 1, 1: 1}))
    assert relaxed.is_integral
    assert parts == []


def test_nothing_is_done_when_time_is_up_before_the_beginning() -> None:
    incumbent = Incumbent(GIVEN)
    search(Instance.of(GIVEN), (), incumbent, too_late(), UNITS)
    assert (incumbent.best, incumbent.bound) == (None, 0.0)


def test_a_search_of_few_parts_leaves_a_bound_that_holds() -> None:
    incumbent = searched(GIVEN, most_nodes=1)
    optimum = solve_exhaustively(GIVEN).objective
    assert optimum - 1 < incumbent.bound <= optimum + TOLERANCE


def test_no_part_is_looked_at_where_none_may_be() -> None:
    incumbent = searched(GIVEN, most_nodes=0)
    assert incumbent.best is None


def test_a_plan_that_is_proven_already_is_not_looked_for_again() -> None:
    incumbent = Incumbent(GIVEN)
    incumbent.offer(solve_exhaustively(GIVEN).assignment, "given")
    searched(GIVEN, incumbent)
    assert incumbent.is_optimal
    assert incumbent.best is not None
    assert incumbent.best.engine == "given"


@given(plain_problems(most=7), st.sampled_from([0.1, 0.5, 1.5]))
@known
def test_a_plan_that_is_good_enough_is_not_called_better_than_it_is(given_problem: Problem, gap: float) -> None:
    optimum = solve_exhaustively(given_problem).objective
    incumbent = Incumbent(replace(given_problem, absolute_gap=gap))
    incumbent.offer(pack(given_problem, "bfd"), "bfd")
    searched(incumbent.problem, incumbent)
    assert incumbent.bound <= optimum + TOLERANCE
    assert incumbent.objective <= optimum + gap + TOLERANCE
    assert incumbent.is_proven


def test_what_is_within_the_gap_is_feasible_and_only_what_is_proven_optimal() -> None:
    given_problem = problem(28, 54, 58, 19, 39, current={0: 1, 1: 4, 2: 4, 3: 4, 4: 1}, migration_weight=0.3)
    optimum = solve(given_problem, "arc-flow")
    enough = solve(replace(given_problem, absolute_gap=0.3), "arc-flow")
    assert optimum.objective < enough.objective
    assert enough.status is Status.FEASIBLE
    assert enough.lower_bound <= optimum.objective + TOLERANCE


def test_without_some_kept_sets_the_best_plan_is_the_best_without_them() -> None:
    given_problem = problem(60, 30, current={0: 1, 1: 1})
    incumbent = Incumbent(given_problem)
    search(Instance.of(given_problem), (), incumbent, in_time(), UNITS)
    assert incumbent.best is not None
    assert incumbent.objective == pytest.approx(1.0)  # an empty consumer is given both, and it turns out to be theirs
    apart = problem(60, 30, current={0: 1, 1: 2}, packing_capacity=70.0)
    incumbent = Incumbent(apart)
    search(Instance.of(apart), kept_sets(Instance.of(apart), 100).sets[:1], incumbent, in_time(), UNITS)
    assert incumbent.objective == pytest.approx(2.0)


def test_more_consumers_than_there_may_be_are_no_plan() -> None:
    incumbent = searched(problem(60, 60, 60, max_consumers=2))
    assert incumbent.best is None


def test_a_partition_faster_than_a_consumer_is_alone() -> None:
    incumbent = searched(problem(250, 130, 20, 20, current={0: 1, 2: 1, 3: 1}))
    assert incumbent.best is not None
    assert incumbent.best.figures.saturated == (partition(0), partition(1))
    assert incumbent.objective == pytest.approx(3.2)


def test_a_problem_without_partitions_is_solved() -> None:
    incumbent = searched(problem())
    assert incumbent.best is not None
    assert incumbent.best.assignment == Assignment()
    assert (incumbent.objective, incumbent.bound) == (0.0, 0.0)


def test_partitions_nobody_writes_to_take_one_consumer_together() -> None:
    incumbent = searched(problem(0, 0, 0))
    assert incumbent.objective == pytest.approx(1.0)
    assert incumbent.is_optimal


def test_everything_that_is_pinned_stays_pinned() -> None:
    pinned = {partition(number): number % 3 + 1 for number in range(6)}
    incumbent = searched(problem(30, 20, 10, 40, 50, 60, current={0: 2, 1: 2}, pinned=pinned))
    assert incumbent.best is not None
    assert incumbent.best.assignment == Assignment(pinned)
    assert incumbent.is_optimal


@pytest.mark.parametrize("weight", [0.0, 1e-3, 1e3])
def test_whatever_a_migration_costs_the_optimum_is_found(weight: float) -> None:
    given_problem = replace(GIVEN, migration_weight=weight)
    incumbent = searched(given_problem)
    assert incumbent.objective == pytest.approx(solve_exhaustively(given_problem).objective, rel=TOLERANCE)
    assert incumbent.is_optimal
