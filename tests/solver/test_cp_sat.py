"""CP-SAT by itself: the optimum of all plans under all rules, from a plan or from nothing, and nothing out of time."""

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings

from domain.assignment import Assignment
from solver import Problem, Status
from solver.exact import cp_sat
from solver.exact.instance import Instance
from solver.incumbent import Incumbent
from solver.search.starts import pack
from tests.controller.exhaustive import solve_exhaustively
from tests.examples import examples
from tests.solver.partitions import partition
from tests.solver.small_problems import classed_problems, in_time, plain_problems, problem, ruled_problems, too_late

known = settings(max_examples=examples(12), deadline=None, derandomize=True)
TOLERANCE = 1e-5


def solved(given_problem: Problem, start: Assignment | None = None) -> Incumbent:
    incumbent = Incumbent(given_problem)
    if start is not None:
        incumbent.offer(start, "given")
    cp_sat.solve(Instance.of(given_problem), incumbent, in_time())
    return incumbent


def has_load_to_share(given_problem: Problem) -> bool:
    """Whether a partition is left that is written to and is no faster than a consumer: the model is of these."""
    return any(0 < speed <= given_problem.capacity for speed in given_problem.speeds.values())


@given(plain_problems(most=5) | ruled_problems(most=5) | classed_problems())
@known
def test_the_optimum_is_found_and_proven(given_problem: Problem) -> None:
    assume(has_load_to_share(given_problem))
    optimum = solve_exhaustively(given_problem)
    incumbent = solved(given_problem)
    if optimum.status is Status.INFEASIBLE:
        assert incumbent.best is None
        return
    assert incumbent.best is not None
    assert incumbent.best.engine == cp_sat.NAME
    assert incumbent.objective == pytest.approx(optimum.objective, abs=TOLERANCE)
    assert incumbent.bound == pytest.approx(optimum.objective, abs=TOLERANCE)


@given(plain_problems(most=5))
@known
def test_a_plan_to_start_from_changes_nothing_of_what_is_proven(given_problem: Problem) -> None:
    assume(has_load_to_share(given_problem))
    optimum = solve_exhaustively(given_problem).objective
    incumbent = solved(given_problem, pack(given_problem, "bfd"))
    assert incumbent.objective == pytest.approx(optimum, abs=TOLERANCE)
    assert incumbent.bound == pytest.approx(optimum, abs=TOLERANCE)


GIVEN = problem(60, 50, 40, 30, 20, current={0: 1, 1: 1, 2: 2, 3: 2, 4: 3}, migration_weight=0.3)


def test_nothing_is_done_when_time_is_up() -> None:
    incumbent = Incumbent(GIVEN)
    cp_sat.solve(Instance.of(GIVEN), incumbent, too_late())
    assert (incumbent.best, incumbent.bound) == (None, 0.0)


def test_a_problem_too_large_for_the_model_is_left_alone() -> None:
    large = problem(*(5.0 + number % 90 for number in range(1500)))
    incumbent = Incumbent(large)
    cp_sat.solve(Instance.of(large), incumbent, in_time())
    assert (incumbent.best, incumbent.bound) == (None, 0.0)


def test_a_plan_that_is_the_best_already_stays() -> None:
    best = solve_exhaustively(GIVEN).assignment
    incumbent = solved(GIVEN, best)
    assert incumbent.best is not None
    assert incumbent.best.engine == "given"
    assert incumbent.is_optimal


def test_the_same_problem_and_seed_have_the_same_plan() -> None:
    plans = [solved(replace(GIVEN, seed=seed)).best for seed in (4, 4)]
    assert plans[0] is not None
    assert plans[0] == plans[1]


def test_a_seed_of_any_size_is_taken() -> None:
    assert solved(replace(GIVEN, seed=2**40 + 1)).is_optimal


def test_no_partitions_need_nobody() -> None:
    incumbent = solved(problem())
    assert incumbent.best is not None
    assert (incumbent.best.assignment, incumbent.objective) == (Assignment(), 0.0)


def test_one_partition_stays_where_it_is_or_has_the_first_consumer() -> None:
    kept = solved(problem(30, current={0: 7})).best
    new = solved(problem(30, first_consumer=3)).best
    assert kept is not None
    assert new is not None
    assert (kept.assignment[partition(0)], new.assignment[partition(0)]) == (7, 3)


def test_partitions_nobody_writes_to_are_put_beside_the_others() -> None:
    incumbent = solved(problem(250, 40, 0, 0, current={2: 1}))
    assert incumbent.objective == pytest.approx(2.0)
    assert incumbent.is_optimal


def test_a_partition_faster_than_a_consumer_is_alone() -> None:
    incumbent = solved(problem(250, 130, 20, 20, current={0: 1, 2: 1, 3: 1}))
    assert incumbent.best is not None
    assert incumbent.best.figures.saturated == (partition(0), partition(1))
    assert incumbent.objective == pytest.approx(3.2)


def test_who_is_given_something_is_filled_no_further_than_plans_may_and_who_keeps_what_it_has_is() -> None:
    full = {0: 1, 1: 1}
    assert solved(problem(60, 38, current=full, packing_capacity=90.0)).objective == pytest.approx(1.0)
    assert solved(problem(60, 38, current={0: 1}, packing_capacity=90.0)).objective == pytest.approx(2.0)
    assert solved(problem(60, 38, packing_capacity=90.0)).objective == pytest.approx(2.0)
    assert solved(problem(97, packing_capacity=80.0)).objective == pytest.approx(1.0)


def test_more_consumers_than_there_may_be_are_no_plan() -> None:
    assert solved(problem(60, 60, 60, max_consumers=2)).best is None


def test_as_many_consumers_as_there_must_be_are_used_at_the_least_price() -> None:
    incumbent = solved(problem(30, 20, 10, current={0: 1, 1: 1, 2: 1}, min_consumers=2))
    assert incumbent.best is not None
    assert incumbent.best.figures.consumers == 2
    assert incumbent.objective == pytest.approx(2.05)


def test_everything_that_is_pinned_stays_pinned_and_what_does_not_fit_so_is_no_plan() -> None:
    pinned = {partition(number): number % 3 + 1 for number in range(6)}
    incumbent = solved(problem(30, 20, 10, 40, 50, 60, current={0: 2, 1: 2}, pinned=pinned))
    assert incumbent.best is not None
    assert incumbent.best.assignment == Assignment(pinned)
    assert incumbent.is_optimal
    assert solved(problem(80, 70, pinned={partition(0): 1, partition(1): 1})).best is None


def test_a_smaller_consumer_is_given_no_more_than_it_reads() -> None:
    incumbent = solved(problem(40, 30, current={0: 1, 1: 1}, capacities={1: 50.0}))
    assert incumbent.best is not None
    assert incumbent.best.assignment[partition(0)] != 1
    assert incumbent.best.figures.is_feasible
