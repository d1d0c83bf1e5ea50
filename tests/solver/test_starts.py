"""What there is before any engine has begun, and the heuristics as engines."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.assignment import Assignment
from solver import Problem
from solver.evaluation import evaluate
from solver.incumbent import Incumbent
from solver.search.starts import HEURISTICS, KEEP, STARTS, offer_first, offer_heuristics, pack, room_bound
from tests.controller.exhaustive import solve_exhaustively
from tests.examples import examples
from tests.solver.partitions import partition
from tests.solver.small_problems import after_looks, in_time, plain_problems, problem, too_late

known = settings(max_examples=examples(25), deadline=None, derandomize=True)


def engine_of(incumbent: Incumbent) -> str | None:
    return None if incumbent.best is None else incumbent.best.engine


def test_the_beginning_is_to_keep_everything_where_that_is_a_plan() -> None:
    incumbent = Incumbent(problem(60, 30, 50, current={0: 1, 1: 1, 2: 2}))
    offer_first(incumbent.problem, incumbent)
    assert engine_of(incumbent) == KEEP
    assert incumbent.objective == 2.0


@pytest.mark.parametrize("current", [{}, {0: 1, 1: 1}, {0: 1, 1: 1, 2: 1}])
def test_the_beginning_is_a_heuristic_where_something_has_to_move_or_has_no_reader(current: dict[int, int]) -> None:
    incumbent = Incumbent(problem(60, 30, 50, current=current))
    offer_first(incumbent.problem, incumbent)
    assert engine_of(incumbent) == "mbfp"


@given(plain_problems())
@known
def test_the_start_is_as_good_as_the_best_of_what_it_tries_and_its_bound_holds(given_problem: Problem) -> None:
    incumbent = Incumbent(given_problem)
    offer_heuristics(given_problem, incumbent, in_time())
    plans = [pack(given_problem, name) for name in ("mbfp", "mwf", "bfd")]
    assert incumbent.best is not None
    assert incumbent.best.engine in STARTS
    assert all(incumbent.objective <= evaluate(given_problem, plan).objective for plan in plans)
    assert incumbent.bound <= solve_exhaustively(given_problem).objective + 1e-9


def test_without_time_there_is_the_beginning_and_no_more() -> None:
    given_problem = problem(60, 60, 30, current={0: 1, 1: 1})
    incumbent = Incumbent(given_problem)
    offer_heuristics(given_problem, incumbent, too_late())
    begun = Incumbent(given_problem)
    offer_first(given_problem, begun)
    assert incumbent.best == begun.best


def test_the_heuristics_are_tried_one_by_one_until_time_is_up() -> None:
    # Moving 40 and 30 to one consumer is dear: mwf leaves them where they are.
    given_problem = problem(
        55, 40, 55, 30, current={0: 1, 1: 1, 2: 2, 3: 2}, migration_weight=9.0, packing_capacity=70.0
    )
    objectives = []
    for looks in range(4):
        incumbent = Incumbent(given_problem)
        offer_heuristics(given_problem, incumbent, after_looks(looks))
        objectives.append(incumbent.objective)
    assert objectives == sorted(objectives, reverse=True)


def test_a_plan_that_keeps_no_rule_is_not_a_beginning() -> None:
    incumbent = Incumbent(problem(60, 60, current={0: 1, 1: 2}, pinned={partition(0): 5}, max_consumers=1))
    offer_first(incumbent.problem, incumbent)
    assert incumbent.best is None
    assert incumbent.bound == 2.0


@pytest.mark.parametrize(
    ("sizes", "bound"),
    [((), 0.0), ((0, 0), 1.0), ((1,), 1.0), ((50, 50), 1.0), ((50, 51), 2.0), ((250,), 1.0), ((250, 1), 2.0)],
)
def test_there_are_as_many_consumers_as_there_is_load(sizes: tuple[float, ...], bound: float) -> None:
    assert room_bound(problem(*sizes)) == bound


def test_loads_that_are_full_but_for_the_rounding_of_a_sum_need_no_further_consumer() -> None:
    assert room_bound(problem(*[100 / 3] * 30)) == 10.0


def test_only_the_plans_of_the_start_need_no_exact_engine() -> None:
    assert all(name in STARTS for name in (KEEP, "mbfp", "mwf", "bfd"))
    assert not any(name in STARTS for name in ("arc-flow", "cp-sat", "ff", ""))


@given(plain_problems(), st.sampled_from(HEURISTICS))
@known
def test_a_heuristic_fills_consumers_no_further_than_plans_may(given_problem: Problem, name: str) -> None:
    roomy = Problem(given_problem.speeds, 100.0, given_problem.current, packing_capacity=70.0)
    loads = pack(roomy, name).loads(roomy.speeds)
    held = pack(roomy, name).by_consumer
    assert all(load <= 70.0 * (1 + 1e-9) or len(held[consumer]) == 1 for consumer, load in loads.items())


def test_a_heuristic_counts_from_the_first_consumer_and_takes_its_chance_from_the_seed() -> None:
    sizes = [10.0 + number for number in range(12)]
    assert min(pack(problem(*sizes, first_consumer=5), "ff").consumers) == 5
    plans = [pack(problem(*sizes, seed=seed), "ff") for seed in (0, 0, 1, 2, 3)]
    assert plans[0] == plans[1]
    assert len({tuple(sorted(plan.items())) for plan in plans}) > 1


def test_a_heuristic_makes_nothing_of_nothing() -> None:
    assert pack(problem(), "mbfp") == Assignment()
