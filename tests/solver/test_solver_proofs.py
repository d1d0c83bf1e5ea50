"""What is said to be optimal is: compared with every heuristic, between the engines, and with an independent model."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bench.oracle import optimum
from domain.assignment import Assignment
from domain.partitions import TopicPartition
from domain.streams import paper_stream
from solver import ENGINES, Problem, Status, solve
from solver.evaluation import evaluate, keep_everything
from solver.search.starts import HEURISTICS
from tests.examples import examples
from tests.patience import PATIENCE_S
from tests.solver.partitions import partition

CAPACITY = 100.0
EXACT = ("auto", "arc-flow", "cp-sat")
LIMIT_S = PATIENCE_S
few = settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])

whole = st.integers(0, 110).map(float)
speeds = st.one_of(whole, st.floats(0, 110, allow_nan=False), st.floats(0, 40, allow_nan=False))
weights = st.sampled_from([0.0, 0.001, 0.3, 1.0, 3.0])


@st.composite
def plain_problems(draw: st.DrawFn, most: int = 9) -> Problem:
    sizes = draw(st.lists(speeds, min_size=1, max_size=most))
    owners = draw(st.lists(st.one_of(st.none(), st.integers(1, 4)), min_size=len(sizes), max_size=len(sizes)))
    return Problem(
        speeds={partition(number): size for number, size in enumerate(sizes)},
        capacity=CAPACITY,
        current=Assignment({partition(number): owner for number, owner in enumerate(owners) if owner is not None}),
        migration_weight=draw(weights),
        time_limit_s=LIMIT_S,
    )


@st.composite
def ruled_problems(draw: st.DrawFn) -> Problem:
    plain = draw(plain_problems(most=7))
    most = draw(st.one_of(st.none(), st.integers(1, 6)))
    partitions = sorted(plain.speeds)
    pinned = draw(st.dictionaries(st.sampled_from(partitions), st.integers(1, 5), max_size=2))
    immovable = draw(st.sets(st.sampled_from(partitions), max_size=2)) - pinned.keys()
    return Problem(
        speeds=plain.speeds,
        capacity=CAPACITY,
        current=plain.current,
        migration_weight=plain.migration_weight,
        time_limit_s=LIMIT_S,
        packing_capacity=draw(st.sampled_from([None, 80.0, 95.0])),
        min_consumers=draw(st.integers(0, 3 if most is None else min(3, most))),
        max_consumers=most,
        pinned=pinned,
        immovable=frozenset(immovable),
    )


HARDLY_BETTER = Problem(
    speeds={partition(0): 5.0, partition(1): 1.0, partition(2): 0.0},
    capacity=CAPACITY,
    current=Assignment({partition(1): 1}),
    migration_weight=0.001,
    time_limit_s=LIMIT_S,
)
"""Nothing has to move, which is better than moving one by 1e-5."""
COVERED_FOR_NOTHING = Problem(
    speeds={partition(n): speed for n, speed in enumerate([18.0, 4.0, 21.0, 28.0, 46.0, 14.0, 1e-38, 2.0])},
    capacity=CAPACITY,
    current=Assignment({partition(3): 2, partition(7): 1}),
    migration_weight=0.3,
    time_limit_s=LIMIT_S,
)
"""In the relaxation two consumers cost all that there is, and to cover a partition is worth nothing."""


@given(plain_problems())
@example(HARDLY_BETTER)
@example(COVERED_FOR_NOTHING)
@few
def test_the_exact_engines_and_an_independent_model_agree_on_the_optimum(problem: Problem) -> None:
    expected = optimum(problem)
    for engine in EXACT:
        solution = solve(problem, engine)
        assert solution.status is Status.OPTIMAL
        assert solution.objective == pytest.approx(expected, abs=1e-5)
        assert solution.lower_bound <= solution.objective


@given(ruled_problems())
@few
def test_rules_are_kept_and_the_optimum_under_them_is_found(problem: Problem) -> None:
    expected = optimum(problem)
    solution = solve(problem)
    if expected is None:
        assert solution.status is Status.INFEASIBLE
        assert solution.reason
        return
    assert solution.status is Status.OPTIMAL
    assert not evaluate(problem, solution.assignment).violations
    assert solution.objective == pytest.approx(expected, abs=1e-5)


@given(ruled_problems(), st.sampled_from(HEURISTICS))
@few
def test_a_heuristic_keeps_all_rules_or_its_plan_is_called_infeasible(problem: Problem, name: str) -> None:
    solution = solve(problem, name)
    violations = evaluate(problem, solution.assignment).violations
    assert (solution.status is Status.INFEASIBLE) == bool(violations)
    assert solution.status in (Status.HEURISTIC, Status.INFEASIBLE)


@given(plain_problems(most=25))
@few
def test_no_heuristic_and_not_keeping_everything_is_better_than_auto(problem: Problem) -> None:
    best = solve(problem)
    assert best.lower_bound <= best.objective
    for name in HEURISTICS:
        solution = solve(problem, name)
        assert solution.status is Status.HEURISTIC
        assert solution.objective >= best.objective - 1e-5
        assert solution.lower_bound <= best.objective + 1e-9
    kept = keep_everything(problem)
    assert kept is None or evaluate(problem, kept).objective >= best.objective - 1e-5


@given(plain_problems(most=25), st.randoms(use_true_random=False))
@few
def test_other_names_for_the_partitions_change_no_figure(problem: Problem, random: object) -> None:
    numbers = list(range(len(problem.speeds)))
    random.shuffle(numbers)  # type: ignore[attr-defined]
    name = {p: TopicPartition("other", number) for p, number in zip(sorted(problem.speeds), numbers, strict=True)}
    renamed = Problem(
        speeds={name[p]: speed for p, speed in problem.speeds.items()},
        capacity=problem.capacity,
        current=Assignment({name[p]: consumer for p, consumer in problem.current.items()}),
        migration_weight=problem.migration_weight,
        time_limit_s=LIMIT_S,
    )
    one, other = solve(problem), solve(renamed)
    assert one.objective == pytest.approx(other.objective, rel=2e-6)
    assert one.status is other.status


@pytest.mark.slow(2)
@pytest.mark.parametrize("engine", ["auto", "arc-flow", "cp-sat"])
def test_the_same_problem_gets_the_same_plan(engine: str) -> None:
    count = 24 if engine == "cp-sat" else 120
    stream = paper_stream(count, 2, 10, seed=5)
    current = solve(Problem(next(stream), CAPACITY, time_limit_s=LIMIT_S), "bfd").assignment
    problem = Problem(next(stream), CAPACITY, current, time_limit_s=LIMIT_S)
    first, second = solve(problem, engine), solve(problem, engine)
    assert first.status is Status.OPTIMAL
    assert first.assignment == second.assignment


def test_a_stream_of_the_paper_is_solved_to_proven_optimality_iteration_by_iteration() -> None:
    current = Assignment()
    for speeds_now in paper_stream(100, 5, 5, seed=1):
        problem = Problem(speeds_now, CAPACITY, current, time_limit_s=LIMIT_S)
        solution = solve(problem)
        assert solution.status is Status.OPTIMAL
        assert solution.gap <= 1e-6
        assert evaluate(problem, solution.assignment).is_feasible
        current = solution.assignment


def test_migration_hardly_counts_with_a_weight_near_zero_and_is_still_the_least_of_the_fewest_consumers() -> None:
    stream = paper_stream(60, 2, 10, seed=3)
    current = solve(Problem(next(stream), CAPACITY), "bfd").assignment
    later = next(stream)
    free = solve(Problem(later, CAPACITY, current, migration_weight=0.0, time_limit_s=LIMIT_S))
    cheap = solve(Problem(later, CAPACITY, current, migration_weight=0.001, time_limit_s=LIMIT_S))
    assert cheap.consumers == free.consumers
    assert cheap.rscore <= solve(Problem(later, CAPACITY, current), "mbfp").rscore


def test_an_unknown_engine_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(ValueError, match="must be one of auto, arc-flow, cp-sat"):
        solve(Problem({partition(0): 1.0}, CAPACITY), "simplex")
    assert set(HEURISTICS) < set(ENGINES)


@given(plain_problems())
def test_there_is_a_bound_and_a_plan_however_short_the_time(problem: Problem) -> None:
    hurried = replace(problem, time_limit_s=1e-9)
    solution = solve(hurried)
    load = sum(min(speed, CAPACITY) for speed in problem.speeds.values()) / CAPACITY
    assert solution.objective >= solution.lower_bound >= load * (1 - 1e-6)
    assert evaluate(hurried, solution.assignment).is_feasible
