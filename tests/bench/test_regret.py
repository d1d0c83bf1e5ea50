"""The bound of who knows the future: its pricing, and that nobody pays less."""

import math
import statistics
import sys
from collections.abc import Iterator
from itertools import count, pairwise, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.figures import MOST_VALUES, interval
from bench.regret.__main__ import main
from bench.regret.foresight import Bound, Covering, bound, plan
from bench.regret.loads import DAY, LOADS, PAST, WEEK
from bench.regret.policies import (
    WARM_UP,
    WEIGHTS,
    Span,
    as_before,
    by_line,
    fewest_consumers,
    followed,
    known,
    least,
    looks,
    replay,
    trajectories,
)
from bench.regret.trajectories import Floats, Window, items_of
from solver.exact.linear_program import LinearProgram


@st.composite
def loads(draw: st.DrawFn, most: int) -> Floats:
    steps, partitions = draw(st.integers(1, 3)), draw(st.integers(1, most))
    sizes = st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.45, 0.5, 0.6, 0.75, 0.9, 1.0])
    return np.array(
        draw(st.lists(st.lists(sizes, min_size=partitions, max_size=partitions), min_size=steps, max_size=steps))
    )


def fits(row: Floats, held: int) -> bool:
    return held.bit_count() <= 1 or bool(row[items_of(held)].sum() <= 1 + 1e-9)


def every_trajectory(sizes: Floats) -> Iterator[tuple[int, ...]]:
    everything = range(1 << sizes.shape[1])
    yield from product(*([held for held in everything if fits(row, held)] for row in sizes))


def any_number(sizes: Floats) -> Floats:
    """Nothing is known of how many consumers the steps take."""
    return np.zeros(len(sizes))


def every_packing(row: Floats) -> list[tuple[int, ...]]:
    """Each way to give every partition one of as many consumers, which are told apart."""
    partitions = len(row)
    found = []
    for places in product(range(partitions), repeat=partitions):
        sets = tuple(sum(1 << item for item, at in enumerate(places) if at == place) for place in range(partitions))
        if all(fits(row, held) for held in sets):
            found.append(sets)
    return found


def fewest(sizes: Floats) -> Floats:
    """How many consumers each step takes, by looking at every packing."""
    return np.array([min(sum(held > 0 for held in sets) for sets in every_packing(row)) for row in sizes], dtype=float)


def optimum(sizes: Floats, weight: float) -> float:
    """By looking at every packing of every step, one step after the other."""

    def arrivals(row: Floats, before: tuple[int, ...], now: tuple[int, ...]) -> float:
        return sum(float(row[items_of(b & ~a)].sum()) for a, b in zip(before, now, strict=True))

    best = {sets: float(sum(held > 0 for held in sets)) for sets in every_packing(sizes[0])}
    for row in sizes[1:]:
        best = {
            sets: sum(held > 0 for held in sets)
            + min(value + weight * arrivals(row, before, sets) for before, value in best.items())
            for sets in every_packing(row)
        }
    return min(best.values())


@given(loads(4), st.sampled_from([0.0, 0.5, 1.0, 4.0]), st.integers(0, 1000))
def test_the_best_trajectory_is_the_best_of_all(sizes: Floats, weight: float, seed: int) -> None:
    window = Window(sizes, np.ones(len(sizes)), any_number(sizes))
    duals = np.random.default_rng(seed).uniform(0, 1, window.required.shape)
    best = max(window.worth(each, duals) - window.cost(each, weight) for each in every_trajectory(sizes))
    value, trajectory = window.best(duals, weight)
    assert value == pytest.approx(max(best, 0.0))
    assert window.worth(trajectory, duals) - window.cost(trajectory, weight) == pytest.approx(value)


@given(loads(4), st.sampled_from([0.5, 2.0]), st.integers(0, 1000))
def test_each_partition_that_gains_anywhere_is_in_a_trajectory_that_gains_most_with_it(
    sizes: Floats, weight: float, seed: int
) -> None:
    window = Window(sizes, np.ones(len(sizes)), any_number(sizes))
    duals = np.random.default_rng(seed).uniform(0, 1.5, window.required.shape)
    gains = {each: window.worth(each, duals) - window.cost(each, weight) for each in every_trajectory(sizes)}
    found = list(window.gaining(duals, weight))
    assert all(gains[each] > 0 for each in found)
    for step, item in product(range(len(sizes)), range(sizes.shape[1])):
        through = max(gain for each, gain in gains.items() if each[step] >> item & 1)
        assert through <= 1e-8 or any(each[step] >> item & 1 for each in found)


def proof(window: Window, weight: float) -> Bound:
    begun = np.column_stack([window.sizes, any_number(window.sizes)])
    return bound(window, weight, dict.fromkeys(window.alone), begun, rounds=100, close=1e-6)


@pytest.mark.slow(2)
@given(loads(3), st.sampled_from([0.5, 1.0, 4.0]))
def test_no_plan_costs_less_than_the_bound(sizes: Floats, weight: float) -> None:
    proven = [proof(Window(sizes, np.ones(len(sizes)), each), weight) for each in (any_number(sizes), fewest(sizes))]
    for each in proven:
        assert each.value <= optimum(sizes, weight) + 1e-9
        assert each.value == pytest.approx(each.relaxed, rel=1e-4)
    assert proven[0].value >= sizes.sum() - 1e-9
    assert proven[1].value >= max(proven[0].value * (1 - 1e-4), fewest(sizes).sum()) - 1e-4


@given(loads(4))
def test_no_packing_has_fewer_consumers_than_a_step_takes(sizes: Floats) -> None:
    assert [fewest_consumers(row) for row in sizes] == fewest(sizes).tolist()


@given(loads(3), st.sampled_from([0.5, 2.0]))
def test_a_bound_whose_search_is_given_up_is_a_bound(sizes: Floats, weight: float) -> None:
    window = Window(sizes, np.ones(len(sizes)), fewest(sizes))
    begun = np.full(window.required.shape, 3.0)
    given_up = bound(window, weight, dict.fromkeys(window.alone), begun, rounds=0, close=0)
    assert given_up.value <= optimum(sizes, weight) + 1e-9


@pytest.mark.slow(2)
@given(loads(3), st.sampled_from([0.5, 1.0, 4.0]))
def test_a_plan_can_be_done_and_costs_no_more_than_its_trajectories(sizes: Floats, weight: float) -> None:
    window = Window(sizes, np.ones(len(sizes)), fewest(sizes))
    planned = plan(window, weight, {}, proof(window, weight), repairs=2)
    course = followed(planned, sizes)
    least_of_all = optimum(sizes, weight)
    assert least_of_all - 1e-9 <= course.cost(weight) <= sum(window.cost(each, weight) for each in planned) + 1e-9
    for assignment, row in zip(course.assignments, sizes, strict=True):
        assert len(assignment) == sizes.shape[1]
        assert all(fits(row, sum(1 << p.partition for p in held)) for held in assignment.by_consumer.values())


def test_a_partition_that_several_trajectories_have_moves_when_it_is_smallest() -> None:
    # Partition 0 is in the first at the start, and again from step 2 on; in the second up to step 3; in the third once.
    shared = [(0b01, 0b00, 0b01, 0b01, 0b01), (0b01, 0b01, 0b01, 0b01, 0b00), (0b10, 0b10, 0b11, 0b10, 0b10)]
    for small in (2, 3, 4):
        sizes = np.full((5, 2), 0.5)
        sizes[small, 0] = 0.25
        course = followed(shared, sizes)
        assert [tuple(each.values()) for each in course.assignments] == [(1, 2)] * small + [(0, 2)] * (5 - small)
        assert (course.consumers, course.rscore) == (10, 0.25)


def test_where_glop_gives_up_it_begins_anew_with_all_that_there_was(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = np.array([[0.6, 0.5, 0.4], [0.5, 0.5, 0.6], [0.9, 0.3, 0.3]])
    covering = Covering(Window(sizes, np.ones(3), fewest(sizes)), 1.0, [(1 << item,) * 3 for item in range(3)])
    covering.take([0])
    alone = covering.relax().objective
    for _ in range(3):
        covering.price()
    whole = covering.relax()
    assert whole.objective < alone
    relax, calls = LinearProgram.relax, count()
    monkeypatch.setattr(LinearProgram, "relax", lambda *a, **k: relax(*a, **k) if next(calls) % 2 else None)
    again = covering.relax()
    assert again.objective == pytest.approx(whole.objective)
    assert again.values[0] >= 1
    monkeypatch.setattr(LinearProgram, "relax", lambda *_, **__: None)
    with pytest.raises(RuntimeError, match="GLOP gave up"):
        covering.relax()


def test_what_two_windows_share_is_counted_once() -> None:
    span = Span(windows=3, changes=2)
    prices = np.zeros(span.steps)
    for part, each in span.parts():
        prices[part] += each
    assert prices.tolist() == [1.0] * 7


def test_what_is_to_come_is_known_or_goes_on_along_a_line_or_comes_as_before() -> None:
    totals = [10.0, 11, 12, 13, 14, 10, 10]
    sizes = np.array([[total / 2] * 2 for total in totals])
    assert (known(sizes, 1) * totals).tolist() == pytest.approx([11, 12, 13, 14, 14, 10, 10])
    assert (known(sizes, 3) * totals).tolist() == pytest.approx([13, 14, 14, 14, 14, 10, 10])
    # Through 10, 11, 12, 13 it rises by 1; through 12, 13, 14, 10 it falls.
    assert (by_line(4, sizes, 2) * totals).tolist() == pytest.approx([10, 11, 12, 15, 16, 10, 10])
    again = sizes[np.arange(12 + len(sizes)) % 12 % len(sizes)]
    assert as_before(12, again, 2)[:12].tolist() == [1.0] * 12
    assert as_before(12, again, 2)[12:].tolist() == known(again, 2)[: len(sizes)].tolist()


def test_the_week_before_tells_what_the_day_before_does_not() -> None:
    growth: dict[int, list[Floats]] = {DAY: [], WEEK: []}
    knew = []
    for seed in range(1, 6):
        whole = LOADS["diurnal weeks"](40, PAST["diurnal weeks"] + WARM_UP + 10, seed)
        counted = slice(WEEK + WARM_UP, None)
        knew.append(known(whole, 3)[counted])
        for steps, foretold in growth.items():
            foretold.append(as_before(steps, whole, 3)[counted])
    error = {steps: np.abs(np.array(foretold) - knew).mean() for steps, foretold in growth.items()}
    assert error[WEEK] < error[DAY]
    assert {load for load in LOADS if "week" in looks(load)} == {"diurnal weeks"}


def test_without_growth_there_is_no_room_and_with_it_nobody_is_given_more_than_leaves_it() -> None:
    sizes = 0.7 * LOADS["diurnal weeks"](12, WARM_UP + 8, 1)
    steady = np.ones(len(sizes))
    assert replay("exact@0.5", sizes, 1, steady) == replay("exact@0.5", sizes, 1)
    course = replay("exact@0.5", sizes, 1, 1.25 * steady)
    assert course.rscore > 0
    for (before, now), row in zip(pairwise(course.assignments), sizes[WARM_UP + 1 :].tolist(), strict=True):
        loads = now.loads({partition: row[partition.partition] for partition in now})
        for consumer in {now[partition] for partition in now if before[partition] != now[partition]}:
            assert loads[consumer] <= 0.8 + 1e-9 or len(now.by_consumer[consumer]) == 1


@pytest.mark.slow(2)
@pytest.mark.parametrize("load", LOADS)
def test_no_policy_pays_less_than_the_bound(load: str) -> None:
    span = Span(windows=2, changes=2)
    sizes = LOADS[load](7, WARM_UP + span.steps, 3)
    courses = [replay(name, sizes, 3) for name in ("bfd", "mwf", "exact@0.5", "exact@2/0.95")]
    courses.append(replay("exact@1", sizes, 3, known(sizes, 2)))
    found = least(sizes, WEIGHTS, span, courses, rounds=10, close=0.001)
    assert all(course.proven for course in courses)
    for weight, each in found.items():
        assert 0 < each.bound <= each.relaxed + 1e-9
        assert all(each.bound <= course.cost(weight) + 1e-9 for course in courses)
        assert each.plan is None


@pytest.mark.slow(3)
def test_who_knows_the_load_does_better_than_whoever_decides_each_step_alone() -> None:
    span = Span(windows=1, changes=5)
    sizes = LOADS["ramps"](12, WARM_UP + span.steps, 1)
    alone = {weight: replay(f"exact@{weight:g}", sizes, 1) for weight in WEIGHTS}
    found = least(sizes, WEIGHTS, span, list(alone.values()), rounds=40, close=0.001, repairs=5)
    plans = {weight: each.plan for weight, each in found.items() if each.plan}
    assert plans.keys() == found.keys()
    for weight, each in plans.items():
        assert found[weight].bound - 1e-9 <= each.cost(weight) <= alone[weight].cost(weight) + 1e-9
    assert plans[4.0].cost(4.0) < 0.99 * min(course.cost(4.0) for course in alone.values())


def test_trajectories_cost_what_their_policy_does() -> None:
    span = Span(windows=1, changes=5)
    sizes = LOADS["walk, delta 10"](12, WARM_UP + span.steps, 1)
    window = Window(sizes[WARM_UP:], np.ones(span.steps), np.zeros(span.steps))
    for name in ("bfd", "mbfp", "exact@1"):
        course = replay(name, sizes, 1)
        assert course.rscore > 0
        cost = sum(window.cost(each, 2.0) for each in trajectories(course.assignments))
        assert cost == pytest.approx(course.cost(2.0))


@pytest.mark.parametrize("load", LOADS)
def test_a_load_is_no_faster_than_a_consumer_and_changes(load: str) -> None:
    sizes = LOADS[load](12, 60, 2)
    assert sizes.shape == (60, 12)
    assert sizes.min() >= 0
    assert sizes.max() <= 1
    assert any((before != after).any() for before, after in pairwise(sizes))
    assert (sizes == LOADS[load](12, 60, 2)).all()
    assert (sizes != LOADS[load](12, 60, 3)).any()


def test_an_interval_is_that_of_a_textbook() -> None:
    mean, half = interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert mean == 3.0
    assert half == pytest.approx(2.776 * math.sqrt(2.5 / 5))
    assert math.isnan(interval([1.0])[1])


@pytest.mark.parametrize("seeds", range(2, MOST_VALUES + 1))
def test_intervals_are_those_of_students_t(seeds: int) -> None:
    """As much of its density lies within them as its integral says, by Simpson's rule."""
    values = [float(number) for number in range(seeds)]
    quantile = interval(values)[1] * math.sqrt(seeds) / statistics.stdev(values)
    freedom = seeds - 1
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    density = scale * (1 + np.linspace(0.0, quantile, 2_001) ** 2 / freedom) ** (-(freedom + 1) / 2)
    within = quantile / 2_000 / 3 * (density[0] + 4 * density[1:-1:2].sum() + 2 * density[2:-1:2].sum() + density[-1])
    assert 2 * within == pytest.approx(0.95, abs=1e-4)


@pytest.mark.slow(8)
def test_the_page_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "--quick",
        "--loads",
        "ramps",
        "--repairs",
        "1",
        "--processes",
        "1",
        "--busy",
        "--folder",
        str(tmp_path),
    ]
    monkeypatch.setattr(sys, "argv", ["regret", *arguments])
    main()
    page = (tmp_path / "regret.md").read_text(encoding="utf-8")
    assert "## Ramps" in page
    assert "| mbfp |" in page
    assert "| a plan that knows the load |" in page
    assert "each the optimum, and proven so" in page
    assert (tmp_path / "regret.csv").read_text(encoding="utf-8").count("bound") == 1 + 2 * len(WEIGHTS)
    monkeypatch.setattr(sys, "argv", ["regret", "--no-bound", *arguments])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "--repairs 1: it must be 0 or more, with the bound of one window" in capsys.readouterr().err
