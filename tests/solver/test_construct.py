"""Plans by rule: no rule is broken that can be kept, and what is too much is spread."""

import pytest
from hypothesis import given, settings

from domain.assignment import Assignment
from solver import Problem, Status
from solver.evaluation import evaluate
from solver.exact.instance import Instance
from solver.incumbent import Incumbent
from solver.search import construct
from tests.controller.exhaustive import solve_exhaustively
from tests.examples import examples
from tests.solver.partitions import partition
from tests.solver.small_problems import classed_problems, in_time, plain_problems, problem, ruled_problems, too_late

known = settings(max_examples=examples(25), deadline=None, derandomize=True)
TOLERANCE = 1e-6


def kept(*bins: tuple[int, ...]) -> list[tuple[int, ...]]:
    return list(bins)


@given(plain_problems() | ruled_problems() | classed_problems())
@known
def test_what_is_begun_with_is_feasible_and_its_bound_holds(given_problem: Problem) -> None:
    optimum = solve_exhaustively(given_problem)
    incumbent = Incumbent(given_problem)
    instance = construct.prepare(given_problem, incumbent, in_time())
    assert instance.problem is given_problem
    if optimum.status is Status.INFEASIBLE:
        assert incumbent.best is None
        return
    assert incumbent.bound <= optimum.objective + TOLERANCE
    assert incumbent.objective >= optimum.objective - TOLERANCE
    if given_problem.is_plain:
        assert incumbent.best is not None


def test_a_plain_problem_that_has_a_plan_is_given_no_other() -> None:
    given_problem = problem(60, 30, 10, current={0: 1, 1: 2, 2: 3}, migration_weight=0.1)
    incumbent = Incumbent(given_problem)
    incumbent.offer(given_problem.current, "given")
    construct.prepare(given_problem, incumbent, in_time())
    assert incumbent.best is not None
    assert incumbent.best.engine == "given"
    assert incumbent.bound == pytest.approx(1.04)


def test_a_problem_with_rules_is_tried_by_rule_whatever_there_is() -> None:
    given_problem = problem(60, 30, 10, current={0: 1, 1: 2, 2: 3}, migration_weight=0.1, max_consumers=3)
    incumbent = Incumbent(given_problem)
    incumbent.offer(given_problem.current, "given")
    construct.prepare(given_problem, incumbent, in_time())
    assert incumbent.best is not None
    assert incumbent.best.engine == construct.NAME
    assert incumbent.objective == pytest.approx(1.04)


def test_no_plan_is_tried_when_time_is_up() -> None:
    incumbent = Incumbent(problem(60, 30, 10))
    construct.offer_plans(Instance.of(incumbent.problem), incumbent, too_late())
    assert incumbent.best is None


def test_consumers_are_closed_when_moving_is_cheap_and_kept_when_it_is_dear() -> None:
    for weight, consumers in ((0.1, 1), (11.0, 3)):
        incumbent = Incumbent(problem(60, 30, 10, current={0: 1, 1: 2, 2: 3}, migration_weight=weight))
        construct.offer_plans(Instance.of(incumbent.problem), incumbent, in_time())
        assert incumbent.best is not None
        assert incumbent.best.figures.consumers == consumers


def test_an_overloaded_consumer_loses_as_little_as_possible() -> None:
    incumbent = Incumbent(problem(60, 35, 12, current={0: 1, 1: 1, 2: 1}))
    construct.offer_plans(Instance.of(incumbent.problem), incumbent, in_time())
    assert incumbent.best is not None
    assert incumbent.best.figures.rscore == pytest.approx(0.12)


def test_of_partitions_that_are_too_fast_the_fastest_stays_alone() -> None:
    incumbent = Incumbent(problem(180, 120, 30, current={0: 1, 1: 1, 2: 1}))
    construct.offer_plans(Instance.of(incumbent.problem), incumbent, in_time())
    assert incumbent.best is not None
    assert incumbent.best.assignment[partition(0)] == 1
    assert incumbent.best.figures.saturated == (partition(0), partition(1))


def test_what_is_left_is_placed_where_it_leaves_least_room_and_the_largest_first() -> None:
    given_problem = problem(60, 50, 30, 20, current={0: 1, 1: 2})
    plan = construct.plan(Instance.of(given_problem), kept((0,), (1,)), frozenset())
    assert plan == Assignment({partition(0): 1, partition(1): 2, partition(2): 1, partition(3): 2})


def test_a_consumer_that_is_closed_keeps_nothing_and_a_new_one_has_the_lowest_number() -> None:
    given_problem = problem(60, 50, 40, current={0: 2, 1: 3, 2: 3})
    plan = construct.plan(Instance.of(given_problem), kept((0,), (1, 2)), frozenset({1}))
    assert plan[partition(0)] == 2
    assert plan[partition(2)] == 2
    assert plan[partition(1)] == 3  # it is as good a new consumer as any, and nothing moves to it


def test_with_no_more_consumers_to_open_each_goes_to_the_least_loaded() -> None:
    given_problem = problem(80, 70, 60, 50, max_consumers=2)
    plan = construct.plan(Instance.of(given_problem), [], frozenset())
    assert sorted(plan.loads(given_problem.speeds).values()) == [130.0, 130.0]


@given(ruled_problems())
@known
def test_the_least_overloaded_plan_keeps_the_limit_and_what_is_fixed(given_problem: Problem) -> None:
    plan = construct.least_overloaded(Instance.of(given_problem))
    fixed = given_problem.fixed
    assert plan.keys() == given_problem.speeds.keys()
    assert all(plan[name] == consumer for name, consumer in fixed.items())
    if given_problem.max_consumers is not None:
        assert len(plan.consumers) <= max(given_problem.max_consumers, len(set(fixed.values())))


def test_what_no_consumer_has_room_for_is_spread() -> None:
    given_problem = problem(90, 90, 90, 90, current={0: 1, 1: 2, 2: 3, 3: 4}, max_consumers=2)
    figures = evaluate(given_problem, construct.least_overloaded(Instance.of(given_problem)))
    assert figures.consumers == 2
    assert figures.excess == pytest.approx(160.0)


def test_nothing_is_placed_nowhere() -> None:
    assert construct.least_overloaded(Instance.of(problem())) == Assignment()
    incumbent = Incumbent(problem())
    construct.prepare(incumbent.problem, incumbent, in_time())
    assert (incumbent.objective, incumbent.bound) == (0.0, 0.0)
