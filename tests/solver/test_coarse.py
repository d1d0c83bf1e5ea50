"""The coarse relaxation by itself: a bound of all plans with so many consumers, under all rules and at any moment."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver import Problem, Status
from solver.deadline import Deadline
from solver.exact.coarse import Coarse, Lagrangian, coarse_bound
from solver.exact.instance import Instance
from solver.exact.kept import kept_sets
from solver.exact.relaxation import Limits
from solver.parameters import TUNED
from tests.controller.exhaustive import solve_exhaustively
from tests.examples import examples
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

known = settings(max_examples=examples(25), deadline=None, derandomize=True)
TOLERANCE = 1e-6


def coarse(
    given_problem: Problem,
    units: int,
    consumers: tuple[int, int] | None = None,
    deadline: Deadline | None = None,
    at_most: int = 100_000,
    fine: int = TUNED.fine_units,
) -> Coarse:
    instance = Instance.of(given_problem)
    listing = kept_sets(instance, at_most)
    return coarse_bound(
        instance,
        listing,
        units,
        consumers or (0, len(given_problem.speeds)),
        in_time() if deadline is None else deadline,
        replace(TUNED, fine_units=fine),
    )


@pytest.mark.parametrize("at_most", [0, 100_000])
@given(
    given_problem=plain_problems() | ruled_problems() | classed_problems(),
    units=st.sampled_from([1, 7, 40]),
    fine=st.sampled_from([9, 60, TUNED.fine_units]),
)
@known
def test_no_plan_costs_less_than_the_bound_whatever_the_units(
    at_most: int, given_problem: Problem, units: int, fine: int
) -> None:
    optimum = solve_exhaustively(given_problem)
    if optimum.status is Status.OPTIMAL:
        assert coarse(given_problem, units, at_most=at_most, fine=fine).bound <= optimum.objective + TOLERANCE


prices = st.lists(st.floats(0.0, 2.0), min_size=9, max_size=9)


@given(classed_problems() | ruled_problems(), st.sampled_from([0, 100_000]), st.sampled_from([7, 400]), prices, prices)
@known
def test_no_plan_costs_less_than_prices_prove_whatever_they_are(
    given_problem: Problem, at_most: int, units: int, by_item: list[float], by_kind: list[float]
) -> None:
    optimum, instance = solve_exhaustively(given_problem), Instance.of(given_problem)
    if optimum.status is Status.OPTIMAL:
        limits = Limits(0, len(given_problem.speeds))
        proof = Lagrangian(instance, kept_sets(instance, at_most), limits, units)
        required = [item for bin_ in instance.bins for item in bin_.required]
        items = np.array([0.0 if item in required else by_item[item] for item in range(len(instance.sizes))])
        assert proof.bound(items, np.array(by_kind[: len(instance.kinds)])) <= optimum.objective + TOLERANCE


@pytest.mark.parametrize("units", [7, 9, 400])
@pytest.mark.parametrize(("second", "current"), [(45.0, {}), (44.9, {0: 1}), (44.9, {0: 1, 1: 1})])
def test_what_fits_in_truth_fits_in_any_units(units: int, second: float, current: dict[int, int]) -> None:
    instance = Instance.of(problem(55, second, current=current, migration_weight=0.0))
    for at_most in (0, 100_000):
        proof = Lagrangian(instance, kept_sets(instance, at_most), Limits(0, 2), units)
        assert proof.bound(np.array([0.9, 0.9]), np.array([1.0])) <= 1 + TOLERANCE


@given(classed_problems(), st.sampled_from([0, 100_000]))
@known
def test_what_bins_keep_in_its_solution_is_what_they_may_keep(given_problem: Problem, at_most: int) -> None:
    instance, found = Instance.of(given_problem), coarse(given_problem, 40, at_most=at_most)
    for number, items in found.chosen.items():
        assert instance.room_beside(instance.bins[number], items) is not None
        assert set(instance.bins[number].required) <= set(items)
        assert (number, items) in {(kept.bin, kept.items) for kept in found.kept}


def test_bins_keep_what_they_keep_in_a_plan_where_the_solution_is_one() -> None:
    assert coarse(problem(60, 60, current={0: 1, 1: 1}), 10).chosen == {0: (0,)}
    assert coarse(problem(5, 95, 90, current={0: 1, 1: 2, 2: 3}, migration_weight=0.1), 20).chosen == {1: (0,), 2: (1,)}


@given(classed_problems(), st.integers(1, 8))
@known
def test_roundings_are_of_what_is_in_its_solution_and_no_two_alike(given_problem: Problem, most: int) -> None:
    found = coarse(given_problem, 40)
    roundings = list(found.roundings(np.random.default_rng(1), most))
    assert len(roundings) <= most
    assert roundings[0] == found.chosen
    assert len({tuple(sorted(rounding.items())) for rounding in roundings}) == len(roundings)
    for rounding in roundings:
        for number, sets in found.shares.items():
            assert rounding.get(number) in (sets if max(sets.values()) > 1 - 1e-6 else {*sets, None})


def test_a_bin_keeps_a_set_as_often_as_its_share_is() -> None:
    divided = range(1, 21)
    found = Coarse(0.0, (), {0: {(2,): 1.0}, **{number: {(0,): 0.5, (0, 1): 0.3} for number in divided}})
    roundings = list(found.roundings(np.random.default_rng(1), 1_000))[1:]
    assert len(roundings) == 999, "of three ways for each of 20 bins"
    kept = Counter(rounding.get(number) for rounding in roundings for number in divided)
    assert kept[0,] / kept.total() == pytest.approx(0.5, abs=0.02)
    assert kept[0, 1] / kept.total() == pytest.approx(0.3, abs=0.02)
    assert kept[None] / kept.total() == pytest.approx(0.2, abs=0.02)
    assert all(rounding[0] == (2,) for rounding in roundings)


@given(plain_problems(most=5), st.integers(0, 3), st.integers(0, 3))
@known
def test_it_is_a_bound_of_plans_with_so_many_consumers(given_problem: Problem, fewest: int, more: int) -> None:
    best = lowest(given_problem, lambda _, figures: fewest <= figures.consumers <= fewest + more)
    found = coarse(given_problem, 40, (fewest, fewest + more)).bound
    assert best is None or found <= best + TOLERANCE


def test_on_its_own_grid_it_is_as_high_as_any_relaxation() -> None:
    assert coarse(problem(*[60] * 5), 5).bound == pytest.approx(5.0, abs=1e-3)
    assert coarse(problem(*[50] * 6), 2).bound == pytest.approx(3.0, abs=1e-3)
    assert coarse(problem(60, 60, current={0: 1, 1: 1}), 10).bound == pytest.approx(2.3, abs=1e-3)


GIVEN = problem(62, 55, 48, 41, 37, 29, 23, 11, current={number: number % 4 + 1 for number in range(8)})


def test_there_is_no_bound_when_time_is_up() -> None:
    assert coarse(GIVEN, 40, deadline=too_late()) == Coarse(float("-inf"), (), {})


@pytest.mark.parametrize("looks", [1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize("at_most", [0, 100_000])
def test_whenever_time_is_up_the_bound_holds(looks: int, at_most: int) -> None:
    found = coarse(GIVEN, 40, deadline=after_looks(looks), at_most=at_most)
    assert found.bound <= solve_exhaustively(GIVEN).objective + TOLERANCE


def test_kept_sets_that_were_not_listed_are_found_as_they_pay() -> None:
    instance = Instance.of(GIVEN)
    listed = kept_sets(instance, 0)
    assert listed.partial
    found = coarse(GIVEN, 40, at_most=0)
    assert set(listed.sets) < set(found.kept)
    assert all(kept in kept_sets(instance, 100_000).sets for kept in found.kept)
    assert len(set(found.kept)) == len(found.kept)


def test_all_kept_sets_are_given_back_where_they_were_listed() -> None:
    assert coarse(GIVEN, 40).kept == kept_sets(Instance.of(GIVEN), 100_000).sets


def test_no_partitions_and_partitions_too_fast_are_bounded_as_well() -> None:
    assert coarse(problem(), 10).bound == pytest.approx(0.0)
    assert coarse(problem(250, 130), 10).bound == pytest.approx(2.0, abs=1e-3)
