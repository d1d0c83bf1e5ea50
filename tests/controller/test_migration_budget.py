"""What plans may cost within a window, and lambda from prices."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.decide.restraint import MigrationBudget
from controller.settings import migration_weight
from tests.examples import examples


def test_what_was_spent_within_the_window_is_gone_and_comes_back_when_it_is_over() -> None:
    budget = MigrationBudget(4.0, 60.0)
    budget.spend(100.0, 1.5)
    budget.spend(130.0, 1.0)
    assert budget.left(131.0) == 1.5
    assert budget.left(159.9) == 1.5
    assert budget.left(160.0) == 3.0
    assert budget.left(190.0) == 4.0


def test_plans_that_had_to_be_may_overspend_and_what_is_left_is_never_below_nothing() -> None:
    budget = MigrationBudget(1.0, 60.0)
    budget.spend(0.0, 5.0)
    assert budget.left(1.0) == 0.0
    budget.spend(2.0, 0.5)
    assert budget.left(60.0) == 0.5


def test_a_plan_that_moves_nothing_costs_nothing() -> None:
    budget = MigrationBudget(1.0, 60.0)
    budget.spend(0.0, 0.0)
    assert budget.left(0.0) == 1.0


def test_without_a_limit_there_is_no_end_of_it() -> None:
    budget = MigrationBudget(math.inf, 60.0)
    budget.spend(0.0, 1e300)
    assert budget.left(0.0) == math.inf


@given(st.lists(st.tuples(st.floats(0, 50), st.floats(0, 2)), max_size=12), st.floats(0, 100))
@settings(max_examples=examples(50), deadline=None, derandomize=True)
def test_what_is_left_is_the_limit_without_all_that_is_younger_than_the_window(
    plans: list[tuple[float, float]], now: float
) -> None:
    budget = MigrationBudget(5.0, 20.0)
    plans = sorted((at, cost) for at, cost in plans if at <= now)
    for at, cost in plans:
        budget.spend(at, cost)
    spent = math.fsum(cost for at, cost in plans if at > now - 20.0)
    assert budget.left(now) == pytest.approx(max(0.0, 5.0 - spent))


PRICES = {
    "consumer_hour_price": 0.36,
    "unread_partition_second_price": 0.01,
    "handover_s": 2.0,
    "stands_s": 100.0,
}


def test_lambda_is_what_a_handover_costs_over_what_a_consumer_costs_while_the_plan_stands() -> None:
    assert migration_weight(**PRICES) == pytest.approx(0.02 / 0.01)


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("unread_partition_second_price", 2.0),
        ("handover_s", 2.0),
        ("consumer_hour_price", 0.5),
        ("stands_s", 0.5),
    ],
)
def test_lambda_rises_with_what_is_unread_and_falls_with_what_consumers_cost(name: str, factor: float) -> None:
    doubled = {**PRICES, name: 2 * PRICES[name]}
    assert migration_weight(**doubled) == pytest.approx(factor * migration_weight(**PRICES))
