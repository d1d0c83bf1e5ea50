"""Single rules of a problem: what must hold of the plan, and what is said when it cannot."""

import subprocess
import sys

import pytest

from domain.assignment import Assignment
from solver import Problem, ProblemError, Status, solve
from solver.deadline import Deadline
from solver.evaluation import evaluate, keep_everything
from solver.exact.instance import Instance
from solver.incumbent import Incumbent
from solver.search.starts import KEEP
from tests.patience import PATIENCE_S
from tests.solver.partitions import partition

CAPACITY = 100.0


def problem(*sizes: float, current: dict[int, int] | None = None, **rules: object) -> Problem:
    owners = Assignment({partition(number): consumer for number, consumer in (current or {}).items()})
    speeds = {partition(number): size for number, size in enumerate(sizes)}
    return Problem(speeds, CAPACITY, owners, time_limit_s=PATIENCE_S, **rules)  # type: ignore[arg-type]


def test_no_partitions_need_no_consumers() -> None:
    solution = solve(problem())
    assert (solution.status, solution.consumers, solution.objective) == (Status.OPTIMAL, 0, 0.0)


def test_everything_stays_as_it_is_where_nothing_is_gained_by_moving() -> None:
    solution = solve(problem(60, 40, 70, current={0: 4, 1: 4, 2: 9}))
    assert solution.engine == KEEP
    assert solution.rscore == 0


def test_a_partition_faster_than_a_consumer_has_one_of_its_own_and_is_reported() -> None:
    solution = solve(problem(150, 0, 30, current={0: 1, 1: 1, 2: 1}))
    assert solution.status is Status.OPTIMAL
    assert solution.saturated == (partition(0),)
    assert solution.assignment.by_consumer[solution.assignment[partition(0)]] == (partition(0),)


def test_a_consumer_may_keep_what_it_may_not_be_given() -> None:
    full = {0: 1, 1: 1}
    assert solve(problem(60, 38, current=full, packing_capacity=90.0)).rscore == 0
    fresh = solve(problem(60, 38, packing_capacity=90.0))
    assert fresh.consumers == 2


def test_a_partition_that_is_alone_may_be_as_fast_as_its_consumer_whatever_the_packing_capacity() -> None:
    solution = solve(problem(97, packing_capacity=80.0))
    assert (solution.status, solution.consumers, solution.saturated) == (Status.OPTIMAL, 1, ())


def test_a_smaller_consumer_is_not_given_more_than_it_reads() -> None:
    solution = solve(problem(60, 30, current={0: 1, 1: 1}, capacities={1: 50.0}))
    assert solution.status is Status.OPTIMAL
    assert solution.assignment[partition(0)] != 1
    assert evaluate(problem(60, 30, capacities={1: 50.0}), solution.assignment).is_feasible


def test_a_pinned_partition_is_where_it_is_pinned() -> None:
    solution = solve(problem(60, 30, current={0: 1, 1: 1}, pinned={partition(1): 7}))
    assert solution.assignment[partition(1)] == 7


def test_a_partition_that_must_not_move_does_not_although_its_consumer_could_be_closed() -> None:
    movable = problem(30, 30, current={0: 1, 1: 2}, migration_weight=0.1)
    assert solve(movable).consumers == 1
    held = problem(
        30, 30, current={0: 1, 1: 2}, migration_weight=0.1, immovable=frozenset({partition(0), partition(1)})
    )
    assert solve(held).assignment == held.current


def test_there_are_as_many_consumers_as_there_must_be_at_least() -> None:
    solution = solve(problem(10, 10, 10, 0, min_consumers=3))
    assert solution.consumers == 3


def test_too_low_a_maximum_is_said_to_be_by_how_much_and_the_load_is_spread() -> None:
    solution = solve(problem(80, 80, 80, 80, 20, max_consumers=2))
    assert solution.status is Status.INFEASIBLE
    assert "it takes 4 consumers at least, and max_consumers is 2" in solution.reason
    assert solution.excess == pytest.approx(140)
    loads = solution.assignment.loads(problem(80, 80, 80, 80, 20).speeds)
    assert sorted(loads.values()) == [160, 180]


def test_more_immovable_load_than_a_consumer_reads_is_infeasible_and_is_kept() -> None:
    both = frozenset({partition(0), partition(1)})
    solution = solve(problem(80, 50, current={0: 1, 1: 1}, immovable=both))
    assert solution.status is Status.INFEASIBLE
    assert solution.excess == pytest.approx(30)
    assert solution.assignment == Assignment({partition(0): 1, partition(1): 1})


def test_new_consumers_have_the_lowest_numbers_that_are_free() -> None:
    solution = solve(problem(90, 90, 90, current={0: 6}, first_consumer=5))
    assert sorted(solution.assignment.consumers) == [5, 6, 7]


def test_keeping_everything_is_no_plan_where_a_consumer_is_overloaded_or_a_partition_is_new() -> None:
    assert keep_everything(problem(60, 60, current={0: 1, 1: 1})) is None
    assert keep_everything(problem(60, 60, current={0: 1})) is None


@pytest.mark.slow(2)
def test_a_plan_that_is_near_enough_to_its_bound_is_not_improved() -> None:
    sizes, at_one = [1.2 + 0.01 * (number * 0.618 % 1) for number in range(100)], dict.fromkeys(range(100), 1)
    best = solve(problem(*sizes, current=at_one, packing_capacity=75.0))
    enough = solve(problem(*sizes, current=at_one, packing_capacity=75.0, absolute_gap=0.02))
    assert (best.status, enough.status) == (Status.OPTIMAL, Status.FEASIBLE)
    assert best.objective < enough.objective <= enough.lower_bound + 0.02


@pytest.mark.parametrize("engine", ["auto", "arc-flow", "cp-sat"])
@pytest.mark.parametrize(("sizes", "packing"), [((81, 0), 80.0), ((81, 0, 0), 80.0), ((150, 0), None)])
def test_a_consumer_that_only_partitions_of_speed_zero_need_is_proven_to_be_needed(
    sizes: tuple[float, ...], packing: float | None, engine: str
) -> None:
    solution = solve(problem(*sizes, packing_capacity=packing), engine)
    assert (solution.status, solution.consumers) == (Status.OPTIMAL, 2)


def test_partitions_of_speed_zero_stay_where_they_are_and_open_no_consumer() -> None:
    solution = solve(problem(60, 0, 0, current={0: 1, 1: 1, 2: 8}))
    assert solution.consumers == 1
    assert solution.assignment[partition(1)] == 1


@pytest.mark.parametrize(
    "rules",
    [
        {"migration_weight": -1.0},
        {"packing_capacity": 101.0},
        {"min_consumers": -1},
        {"max_consumers": 0},
        {"min_consumers": 3, "max_consumers": 2},
        {"capacities": {1: 0.0}},
        {"capacities": {1: 101.0}},
        {"absolute_gap": -0.1},
        {"absolute_gap": float("nan")},
    ],
)
def test_a_value_outside_its_range_is_an_error_that_says_what_would_be_right(rules: dict[str, object]) -> None:
    with pytest.raises(ProblemError, match=r"must (be|not be)"):
        problem(1.0, **rules)  # type: ignore[arg-type]


def test_a_partition_cannot_be_pinned_to_one_consumer_and_immovable_on_another() -> None:
    with pytest.raises(ProblemError, match="must be one of the two"):
        problem(1.0, current={0: 1}, pinned={partition(0): 2}, immovable=frozenset({partition(0)}))


def test_engines_give_up_when_the_deadline_has_passed() -> None:
    from solver.search import portfolio

    given = problem(*(7.0 * number % 90 + 5 for number in range(60)), current={n: n % 20 + 1 for n in range(60)})
    incumbent = Incumbent(given)
    late = Deadline(at=10.0, clock=lambda: 11.0)
    for engine in portfolio.ENGINES.values():
        engine(Instance.of(given), incumbent, late)
    assert incumbent.best is None


def test_a_deadline_is_handed_down_in_parts() -> None:
    now = 100.0
    deadline = Deadline.after(10.0, clock=lambda: now)
    assert deadline.remaining == 10.0
    assert deadline.within(3.0).remaining == 3.0
    assert deadline.within(30.0).remaining == 10.0
    assert not deadline.passed


def test_the_package_loads_no_engine_until_it_is_asked_for_one() -> None:
    code = "import sys, solver, solver.problem, solver.solution; sys.exit(any('ortools' in m for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_search_loads_nothing_where_all_was_loaded_before() -> None:
    """A controller's first hard decision was made by a heuristic: on a busy machine, loading took the time it had."""
    code = """if True:
        import sys
        import solver
        from domain.partitions import TopicPartition
        solver.load()
        loaded = set(sys.modules)
        speeds = {TopicPartition("orders", n): 20.0 + 7 * n for n in range(8)}
        for engine in solver.ENGINES:
            solver.solve(solver.Problem(speeds, 100.0, time_limit_s=60.0), engine)
        print(*sorted(set(sys.modules) - loaded))
    """
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split() == []
