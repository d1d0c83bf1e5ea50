"""What large and uneven groups are solved with: bounds that hold, and plans that are feasible and no worse."""

from dataclasses import replace
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.assignment import Assignment
from domain.streams import paper_stream
from solver import Problem, solve
from solver.deadline import Deadline
from solver.evaluation import evaluate
from solver.exact.bounds import fewest_bins, pooled_bound
from solver.exact.coarse import coarse_bound
from solver.exact.instance import Instance
from solver.exact.kept import KeptPricing, kept_set, kept_sets
from solver.exact.knapsack import Grid, best_sets, best_values, profitable_sets
from solver.incumbent import Incumbent
from solver.search import construct
from solver.search.parts import part_by_part
from tests.patience import PATIENCE_S
from tests.solver.partitions import partition

CAPACITY = 100.0
LIMIT_S = PATIENCE_S


def drifted(count: int, seed: int, weight: float = 0.5) -> Problem:
    """A group in the paper's stream, one iteration after it was packed anew."""
    stream = paper_stream(count, 2, 10, clamp=CAPACITY, seed=seed)
    current = solve(Problem(next(stream), CAPACITY), "bfd").assignment
    return Problem(next(stream), CAPACITY, current, weight, time_limit_s=LIMIT_S, seed=seed)


def crowded(consumers: int, each: int, seed: int) -> Problem:
    """Consumers with many small partitions each, some of them overloaded."""
    chance = np.random.default_rng(seed)
    sizes = chance.lognormal(0.0, 1.0, consumers * each)
    sizes *= 0.95 * consumers * CAPACITY / sizes.sum()
    speeds = {partition(number): float(size) for number, size in enumerate(sizes)}
    current = Assignment({partition(number): number % consumers + 1 for number in range(len(sizes))})
    return Problem(speeds, CAPACITY, current, time_limit_s=LIMIT_S, seed=seed)


def within_the_hour() -> Deadline:
    return Deadline.after(3600)


def never() -> bool:
    return False


@pytest.mark.parametrize("units", [20, 100, 400])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_coarse_bound_is_below_the_optimum_and_rises_with_the_units(units: int, seed: int) -> None:
    problem = drifted(60, seed)
    instance = Instance.of(problem)
    optimum = solve(problem)
    complete, partial = kept_sets(instance, 10_000), kept_sets(instance, 0)
    assert not complete.partial
    assert partial.partial == frozenset(range(len(instance.bins)))
    consumers = fewest_bins(instance), optimum.consumers + 1
    listed = coarse_bound(instance, complete, units, consumers, within_the_hour()).bound
    priced = coarse_bound(instance, partial, units, consumers, within_the_hour()).bound
    assert max(listed, priced, pooled_bound(instance)) <= optimum.objective + 1e-6
    if units == 400:
        assert listed >= 0.99 * optimum.objective
        assert priced >= 0.98 * optimum.objective


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("few", [0, 12])
def test_the_kept_set_worth_most_is_found_by_a_knapsack_or_among_all(
    few: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KeptPricing, "_few", few)
    chance = np.random.default_rng(seed)
    problem = replace(crowded(4, 7, seed), pinned={partition(5): 2, partition(6): 9}, packing_capacity=90.0)
    instance = Instance.of(problem)
    prices = chance.uniform(0.0, 0.3, len(instance.sizes))
    room_prices = np.sort(chance.uniform(0.0, 0.5, 21))
    bins = range(len(instance.bins))

    def levels(rooms: np.ndarray) -> np.ndarray:
        return np.minimum(np.ceil(rooms * 20 - 1e-9).astype(np.int64), 20)

    def worth(number: int, items: tuple[int, ...]) -> float:
        kept = kept_set(instance, number, items)
        if kept is None:
            return -np.inf
        required = instance.bins[number].required
        gained = sum(float(prices[item]) for item in kept.items if item not in required)
        return kept.saving + gained + float(room_prices[levels(np.array([kept.room]))[0]])

    def most(number: int) -> float:
        own = instance.bins[number].own
        sets = chain.from_iterable(combinations(own, count) for count in range(len(own) + 1))
        return max(worth(number, items) for items in sets)

    pricing = KeptPricing(instance, bins, levels)
    best = {kept.bin: kept.items for kept in pricing.best(prices, room_prices)}
    for number, at_most in zip(bins, pricing.worths(prices, room_prices, KeptPricing.units), strict=True):
        assert at_most >= most(number) - 1e-9
        if few:
            others = tuple(item for item in best[number] if item not in instance.bins[number].required)
            assert worth(number, others) == pytest.approx(most(number))


def test_parts_make_a_feasible_plan_and_later_ones_never_a_worse_one() -> None:
    problem = drifted(120, 3)

    def improve(part: Problem, plan: Assignment | None, deadline: Deadline) -> Assignment:
        del plan, deadline
        return solve(part).assignment

    plan = part_by_part(problem, None, 30, improve, within_the_hour())
    before = evaluate(problem, plan)
    later = evaluate(problem, part_by_part(problem, plan, 40, improve, within_the_hour(), 1))
    assert before.is_feasible
    assert later.is_feasible
    assert later.objective <= before.objective
    assert before.objective >= solve(problem).objective - 1e-6


def test_new_consumers_of_all_parts_together_have_the_lowest_numbers_that_are_free() -> None:
    problem = Problem({partition(number): 90.0 for number in range(12)}, CAPACITY, time_limit_s=LIMIT_S)
    plan = part_by_part(problem, None, 4, lambda part, _, __: solve(part, "bfd").assignment, within_the_hour())
    assert sorted(plan.consumers) == list(range(1, 13))


def test_consumers_with_too_many_partitions_to_list_what_they_keep_are_still_planned_and_bounded() -> None:
    problem = crowded(6, 30, 1)
    instance = Instance.of(problem)
    assert kept_sets(instance, 10_000).partial
    incumbent = Incumbent(problem)
    construct.offer_plans(instance, incumbent, within_the_hour())
    assert incumbent.best is not None
    assert incumbent.best.figures.is_feasible
    assert pooled_bound(instance) <= incumbent.objective
    assert incumbent.objective <= 1.02 * pooled_bound(instance)


def test_a_small_partition_gives_way_where_a_consumer_would_be_opened_otherwise() -> None:
    speeds = {partition(number): speed for number, speed in enumerate((75.0, 50.0, 40.0, 20.0))}
    current = Assignment({partition(0): 2, partition(1): 1, partition(3): 1})
    instance = Instance.of(Problem(speeds, CAPACITY, current))
    kept = [tuple(bin_.own) for bin_ in instance.bins]
    cleared = construct.plan(instance, kept, frozenset())
    assert cleared == Assignment({partition(0): 2, partition(1): 1, partition(2): 1, partition(3): 2})
    assert (
        len(construct.plan(instance, kept, frozenset(), way=construct.THRIFTY._replace(clearing=False)).consumers) == 3
    )


# What is worth as much as its room, but for the last digit, counts as one or the other by the order of the sum.
worths = st.floats(0, 1).map(lambda worth: round(worth, 6))
items = st.lists(st.tuples(st.integers(1, 30), worths), min_size=1, max_size=8)


def subsets(count: int) -> list[tuple[int, ...]]:
    return list(chain.from_iterable(combinations(range(count), size) for size in range(count + 1)))


@given(items)
@settings(deadline=None)
def test_the_best_set_for_a_room_is_the_best_of_all_sets_that_fit_it(given_items: list[tuple[int, float]]) -> None:
    sizes = np.array([size for size, _ in given_items])
    prices = np.array([price for _, price in given_items])
    sets = best_sets(prices, sizes, 60)
    assert best_values(prices, sizes, 60) == pytest.approx(sets.values)
    for room in (10, 37, 60):
        fitting = [subset for subset in subsets(len(sizes)) if sizes[list(subset)].sum() <= room]
        best = max(prices[list(subset)].sum() for subset in fitting)
        found = list(sets.sets_in(np.array([room]))[0])
        assert sets.values[room] == pytest.approx(best)
        assert sizes[found].sum() <= room
        assert prices[found].sum() == pytest.approx(best)


@pytest.mark.parametrize("gain", [1e-9, -1e-9, -0.3], ids=["gains", "loses nothing", "may lose"])
@given(given_items=items)
@settings(deadline=None)
def test_all_sets_that_gain_as_much_beside_their_room_are_found_whatever_the_grid(
    gain: float, given_items: list[tuple[int, float]]
) -> None:
    """Where none has to gain, those that another item fits into are left out, and what is worth nothing counts."""
    sizes = np.array([size / 31 for size, _ in given_items])
    prices = np.array([price for _, price in given_items])
    rooms, room_prices = np.array([0.3, 0.7, 1.0]), np.array([0.2, 0.6, 1.0])
    found = profitable_sets(
        prices, sizes, Grid.of(sizes, 8), rooms, room_prices, tolerance=gain, at_most=10_000, stop=never
    )
    expected = [
        subset
        for subset in subsets(len(sizes))
        if (load := sizes[list(subset)].sum()) <= 1 + 1e-9
        and prices[list(subset)].sum() - room_prices[room := np.searchsorted(rooms, load - 1e-9)] > gain
        and (
            (prices[list(subset)] > 0).all()
            if gain > 0
            else all(load + sizes[other] > rooms[room] + 1e-9 for other in {*range(len(sizes))} - {*subset})
        )
    ]
    assert found == sorted(expected)
