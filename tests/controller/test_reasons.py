"""Each reason why a partition changes its consumer, and which of them comes first."""

import pytest
from hypothesis import given, settings

from controller.decide.reasons import reasons
from domain.assignment import Assignment
from solver import Problem
from tests.controller.exhaustive import solve_exhaustively
from tests.examples import examples
from tests.solver.partitions import partition
from tests.solver.small_problems import problem, ruled_problems


def why(
    given_problem: Problem,
    plan: dict[int, int],
    *,
    gone: dict[int, int] | None = None,
    at_peak: bool = False,
    looks_ahead: bool = False,
) -> dict[int, str]:
    """The reasons by number of partition."""
    assignment = Assignment({partition(number): consumer for number, consumer in plan.items()})
    before = {partition(number): consumer for number, consumer in (gone or {}).items()}
    told = reasons(given_problem, assignment, before, at_peak=at_peak, looks_ahead=looks_ahead)
    return {name.partition: text for name, text in told.items()}


def test_what_stays_needs_no_reason() -> None:
    assert why(problem(60, 30, current={0: 1, 1: 2}), {0: 1, 1: 2}) == {}


def test_a_pinned_partition_goes_where_it_is_pinned_whatever_else_is_true() -> None:
    pinned = problem(60, 70, current={0: 1, 1: 1}, pinned={partition(0): 3})
    assert why(pinned, {0: 3, 1: 1}) == {0: "it is pinned to consumer 3"}


def test_a_partition_nobody_reads_is_given_to_somebody_and_who_read_it_is_told() -> None:
    fresh = problem(60, 30)
    assert why(fresh, {0: 1, 1: 2}, gone={1: 7}) == {0: "nobody read it", 1: "its consumer, 7, is gone"}


def test_a_partition_faster_than_a_consumer_moves_to_be_alone_or_others_leave_it_alone() -> None:
    hot = problem(150, 20, 130, current={0: 1, 1: 1, 2: 1})
    assert why(hot, {0: 2, 1: 1, 2: 3}) == {
        0: "it is faster than a consumer, and gets one of its own",
        2: "t-0, on the same consumer, is faster than a consumer, and stays alone",
    }
    assert why(hot, {0: 1, 1: 2, 2: 3})[1] == "t-0, on the same consumer, is faster than a consumer, and stays alone"


@pytest.mark.parametrize(
    ("at_peak", "looks_ahead", "when"),
    [
        (False, False, ""),
        (True, False, " at the highest speeds of the window"),
        (False, True, " with what is foreseen"),
    ],
)
def test_a_consumer_above_its_capacity_loses_something(at_peak: bool, looks_ahead: bool, when: str) -> None:
    full = problem(60, 50, current={0: 1, 1: 1})
    assert why(full, {0: 1, 1: 2}, at_peak=at_peak, looks_ahead=looks_ahead) == {
        1: f"its consumer was above its capacity{when}"
    }


def test_a_consumer_is_not_above_its_capacity_by_the_rounding_of_a_sum() -> None:
    full = problem(*[100 / 3] * 3, 1.0, current={0: 1, 1: 1, 2: 1})
    assert why(full, {0: 2, 1: 2, 2: 2, 3: 2})[0] == "its consumer is no longer needed"


def test_a_consumer_that_is_not_needed_any_more_loses_everything() -> None:
    few = problem(30, 30, current={0: 1, 1: 2})
    assert why(few, {0: 1, 1: 1}) == {1: "its consumer is no longer needed"}


def test_room_is_made_for_the_fastest_that_comes() -> None:
    swap = problem(50, 40, 45, 60, current={0: 1, 1: 1})
    assert why(swap, {0: 1, 1: 2, 2: 1, 3: 2})[1] == "makes room for t-2"
    two = problem(50, 30, 20, 25, 20, current={0: 1, 1: 1})
    assert why(two, {0: 1, 1: 2, 2: 1, 3: 1, 4: 2})[1] == "makes room for t-3"


def test_partitions_are_spread_over_as_many_consumers_as_there_shall_be() -> None:
    spread = problem(30, 20, current={0: 1, 1: 1}, min_consumers=2)
    assert why(spread, {0: 1, 1: 2}) == {1: "there shall be 2 consumers or more"}


def test_a_consumer_with_more_than_a_plan_gives_it_is_relieved() -> None:
    roomy = problem(50, 40, current={0: 1, 1: 1}, packing_capacity=80.0)
    assert why(roomy, {0: 1, 1: 2}, at_peak=True) == {
        1: "its consumer had more than a plan gives it at the highest speeds of the window"
    }


def test_else_the_plan_as_a_whole_is_the_reason() -> None:
    plain = problem(50, 20, 30, current={0: 1, 1: 1, 2: 2})
    assert why(plain, {0: 1, 1: 2, 2: 2}) == {1: "consumer 2 has room for it, and the plan as a whole costs less"}


def test_who_reads_partitions_that_are_no_part_of_the_problem_is_left_aside() -> None:
    others = problem(30, current={0: 1, 5: 1, 6: 2}, min_consumers=2)
    assert why(others, {0: 3}) == {0: "its consumer is no longer needed"}


@given(ruled_problems())
@settings(max_examples=examples(30), deadline=None, derandomize=True)
def test_everything_that_changes_its_consumer_and_nothing_else_has_a_reason(given_problem: Problem) -> None:
    plan = solve_exhaustively(given_problem).assignment
    told = reasons(given_problem, plan, {}, at_peak=False)
    assert told.keys() == {name for name, consumer in plan.items() if given_problem.current.get(name) != consumer}
    assert all(told.values())
