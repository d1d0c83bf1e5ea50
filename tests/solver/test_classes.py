"""Consumers of more than one size: which class each is of, what that costs, and what one class more never changes."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.consumer_class import ORDINARY, ConsumerClass
from solver import Problem, ProblemError, Status, solve
from solver.evaluation import evaluate
from solver.exact.bounds import lowest_price
from solver.exact.instance import Instance
from tests.controller.exhaustive import solve_exhaustively
from tests.examples import examples
from tests.solver.partitions import partition
from tests.solver.small_problems import classed_problems, plain_problems, problem, ruled_problems

known = settings(max_examples=examples(40), deadline=None, derandomize=True)
LARGE, SMALL = ConsumerClass("large", 400.0, 4.5), ConsumerClass("small", 40.0, 0.5)
TOLERANCE = 1e-5


@given(classed_problems(), st.sampled_from(["auto", "arc-flow", "cp-sat"]))
@known
def test_no_plan_of_any_classes_is_better_than_what_is_proven_optimal(given_problem: Problem, engine: str) -> None:
    expected, found = solve_exhaustively(given_problem), solve(given_problem, engine)
    assert (found.status is Status.INFEASIBLE) == (expected.status is Status.INFEASIBLE)
    if expected.status is Status.OPTIMAL:
        assert evaluate(given_problem, found.assignment).is_feasible
        assert found.lower_bound <= expected.objective + TOLERANCE
        assert found.objective == pytest.approx(expected.objective, abs=TOLERANCE)


@given(classed_problems())
@known
def test_consumers_never_cost_less_than_arithmetic_says(given_problem: Problem) -> None:
    expected = solve_exhaustively(given_problem)
    if expected.status is Status.OPTIMAL:
        price = evaluate(given_problem, expected.assignment).price
        assert lowest_price(Instance.of(given_problem)) <= price + TOLERANCE


@given(plain_problems() | ruled_problems())
@known
def test_a_class_that_is_dearer_and_no_larger_changes_neither_cost_nor_proof(given_problem: Problem) -> None:
    more = replace(given_problem, classes=(ConsumerClass("dear", 90.0, 1.5),))
    alone, beside = solve(given_problem), solve(more)
    assert (alone.status, alone.consumers) == (beside.status, beside.consumers)
    if alone.status is Status.OPTIMAL:
        assert alone.objective == pytest.approx(beside.objective, abs=TOLERANCE)


def test_a_partition_that_no_ordinary_consumer_reads_has_a_large_one() -> None:
    solution = solve(problem(250, 60, 30, classes=(LARGE, SMALL)))
    assert solution.status is Status.OPTIMAL
    assert solution.saturated == ()
    assert solution.classes[solution.assignment[partition(0)]].name == "large"


def test_one_that_no_class_reads_has_one_of_the_largest_to_itself_and_is_saturated() -> None:
    solution = solve(problem(450, 60, classes=(LARGE, SMALL)))
    alone = solution.assignment[partition(0)]
    assert solution.saturated == (partition(0),)
    assert (solution.classes[alone].name, solution.assignment.by_consumer[alone]) == ("large", (partition(0),))


def test_small_ones_are_taken_where_they_are_cheaper() -> None:
    solution = solve(problem(90, 35, classes=(LARGE, SMALL)))
    assert sorted(of.name for of in solution.classes.values()) == [ORDINARY, "small"]
    assert solution.objective == pytest.approx(1.5)


def test_a_consumer_keeps_its_class_and_is_replaced_where_that_is_worth_it() -> None:
    rules = {"current": {0: 1}, "classes": (LARGE, SMALL), "class_names": {1: "large"}}
    stays = solve(problem(30, migration_weight=100.0, **rules))  # type: ignore[arg-type]
    assert (stays.assignment[partition(0)], stays.objective) == (1, 4.5)
    leaves = solve(problem(30, migration_weight=0.5, **rules))  # type: ignore[arg-type]
    assert leaves.assignment[partition(0)] != 1
    assert leaves.objective == pytest.approx(0.5 + 0.5 * 0.3)


def test_the_rscore_is_in_ordinary_consumers_whatever_the_classes() -> None:
    solution = solve(problem(150, current={0: 1}, classes=(LARGE,)))
    assert solution.rscore == pytest.approx(1.5)


def test_a_packing_capacity_is_the_same_share_of_each_class() -> None:
    solution = solve(problem(20, 15, 60, 10, packing_capacity=80.0, classes=(SMALL,)))
    assert sorted(of.name for of in solution.classes.values()) == [ORDINARY, "small"]
    assert solution.consumers == 2
    assert solution.objective == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"classes": (LARGE, LARGE)}, "two classes 'large'"),
        ({"classes": (ConsumerClass(ORDINARY, 1.0, 1.0),)}, "two classes 'ordinary'"),
        ({"classes": (ConsumerClass("none", 0.0, 1.0),)}, "capacity of none"),
        ({"classes": (ConsumerClass("free", 1.0, 0.0),)}, "price of free"),
        ({"class_names": {1: "huge"}}, "of the class 'huge'"),
        ({"classes": (LARGE,), "class_names": {1: "large"}, "capacities": {1: 401.0}}, "capacity of consumer 1"),
    ],
)
def test_classes_that_say_nothing_are_an_error(rules: dict[str, object], words: str) -> None:
    with pytest.raises(ProblemError, match=words):
        problem(1, **rules)  # type: ignore[arg-type]
