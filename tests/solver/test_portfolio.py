"""Which engines are taken by the size and shape of a problem, and that what they leave is a plan and a bound."""

from dataclasses import replace

import pytest

from solver import Problem
from solver.deadline import Deadline
from solver.exact import branch_and_price
from solver.exact.instance import Instance
from solver.incumbent import Incumbent
from solver.parameters import Parameters
from solver.search import construct, portfolio
from solver.search.portfolio import Portfolio
from solver.search.starts import offer_heuristics
from tests.controller.exhaustive import solve_exhaustively
from tests.solver.small_problems import in_time, problem, too_late

TOLERANCE = 1e-5
TWICE = Portfolio(Parameters(passes=2))
GIVEN = problem(62, 55, 48, 41, 37, 29, 23, current={number: number % 4 + 1 for number in range(7)})


def ran(given_problem: Problem, engine: str = "auto") -> Incumbent:
    incumbent = Incumbent(given_problem)
    portfolio.ENGINES[engine](Instance.of(given_problem), incumbent, in_time())
    return incumbent


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The engines that are called, in their order; they still do their work."""
    made: list[str] = []
    for module, name in ((branch_and_price, "search"), (construct, "offer_plans"), (portfolio, "search_by_cp_sat")):
        original = getattr(module, name)

        def spy(*args: object, _name: str = name, _original: object = original, **options: object) -> object:
            made.append(_name)
            return _original(*args, **options)  # type: ignore[operator]

        monkeypatch.setattr(module, name, spy)
    return made


@pytest.mark.parametrize("engine", sorted(portfolio.ENGINES))
def test_every_engine_finds_and_proves_the_optimum_from_nothing(engine: str) -> None:
    incumbent = ran(GIVEN, engine)
    assert incumbent.objective == pytest.approx(solve_exhaustively(GIVEN).objective, abs=TOLERANCE)
    assert incumbent.is_optimal


@pytest.mark.parametrize("engine", sorted(portfolio.ENGINES))
def test_no_engine_does_anything_when_time_is_up(engine: str) -> None:
    incumbent = Incumbent(GIVEN)
    portfolio.ENGINES[engine](Instance.of(GIVEN), incumbent, too_late())
    assert (incumbent.best, incumbent.bound) == (None, 0.0)


@pytest.mark.parametrize("engine", sorted(portfolio.ENGINES))
def test_no_engine_is_at_a_loss_without_partitions(engine: str) -> None:
    assert ran(problem(), engine).objective == 0.0


def test_a_problem_for_which_there_is_time_is_searched_as_a_whole(calls: list[str]) -> None:
    ran(GIVEN)
    assert calls == ["search"]


def test_what_a_least_number_of_consumers_costs_is_found_where_empty_ones_seem_to_count(calls: list[str]) -> None:
    spread = problem(30, 25, 20, current={0: 1, 1: 1, 2: 1}, min_consumers=3)
    incumbent = ran(spread)
    assert calls == ["search", "search_by_cp_sat"]
    assert incumbent.objective == pytest.approx(solve_exhaustively(spread).objective, abs=TOLERANCE)
    assert incumbent.is_optimal


def hurried(given_problem: Problem) -> Problem:
    """With a time limit that is too short for all of it at once, whatever time there then really is."""
    return replace(given_problem, time_limit_s=1e-9)


LARGE = problem(*(11.0 * number % 41 + 9 for number in range(30)), current={n: n % 8 + 1 for n in range(30)})


@pytest.fixture(scope="module")
def optimum() -> float:
    return ran(LARGE).objective


def test_a_problem_for_which_there_is_no_time_is_solved_in_parts_while_its_bound_is_raised(optimum: float) -> None:
    incumbent = Incumbent(LARGE)
    TWICE.run(Instance.of(hurried(LARGE)), incumbent, in_time())
    assert incumbent.best is not None
    assert incumbent.best.figures.is_feasible
    assert optimum - TOLERANCE <= incumbent.objective <= 1.02 * optimum
    assert 0.95 * optimum <= incumbent.bound <= optimum + TOLERANCE


def test_parts_begin_with_nothing_and_end_with_a_plan(optimum: float) -> None:
    incumbent = Incumbent(LARGE)
    Portfolio(Parameters(passes=1, small_part=10, large_part=15)).improve_by_parts(LARGE, incumbent, in_time())
    assert optimum - TOLERANCE <= incumbent.objective <= 1.1 * optimum


def test_neighbourhoods_improve_the_plan_that_there_is_and_make_none_themselves(optimum: float) -> None:
    incumbent = Incumbent(LARGE)
    TWICE.improve_by_neighbourhoods(LARGE, incumbent, in_time())
    assert incumbent.best is None
    offer_heuristics(LARGE, incumbent, in_time())
    before = incumbent.objective
    TWICE.improve_by_neighbourhoods(LARGE, incumbent, in_time())
    assert optimum - TOLERANCE <= incumbent.objective < before


def test_nothing_is_improved_once_it_is_proven(calls: list[str]) -> None:
    incumbent = Incumbent(LARGE)
    offer_heuristics(LARGE, incumbent, in_time())
    before = incumbent.best
    incumbent.raise_bound(incumbent.objective)
    TWICE.improve_by_neighbourhoods(LARGE, incumbent, in_time())
    assert incumbent.best is before
    assert calls == []


def test_a_part_without_a_plan_is_an_error() -> None:
    impossible = problem(60, 60, 60, max_consumers=2)
    for solve_part in (Portfolio()._solve_part, Portfolio()._solve_neighbourhood):
        with pytest.raises(ValueError, match="no feasible plan"):
            solve_part(impossible, None, Deadline(at=0.0, clock=lambda: 1.0))
