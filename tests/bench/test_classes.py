"""The bench's stream with consumers of several classes: what is proven of its plans."""

from pathlib import Path

import pytest

from bench.classes import CAPACITY, CLASSES, Options, stream
from domain.assignment import Assignment, ConsumerId
from solver import Problem, solve


@pytest.mark.slow(30)
def test_of_a_thousand_partitions_a_plan_is_proven_to_cost_at_most_one_percent_more_than_the_best() -> None:
    """The first, and the one after it, where moving costs something: each as soon as that is proven."""
    options = Options(1000, iterations=2, delta=2.0, limit_s=600.0, seed=1, folder=Path(), busy=True)
    current, names = Assignment(), dict[ConsumerId, str]()
    for speeds in stream(options):
        solution = solve(
            Problem(
                speeds,
                CAPACITY,
                current,
                time_limit_s=options.limit_s,
                absolute_gap=4.2,
                classes=CLASSES,
                class_names=names,
            )
        )
        assert solution.gap <= 0.01
        assert not solution.saturated
        current, names = solution.assignment, {consumer: of.name for consumer, of in solution.classes.items()}
    assert set(names.values()) >= {"ordinary", "large"}
