"""The published rules of the autoscalers, on cases that can be worked out by hand."""

import pytest

from bench.latency.autoscalers import FlinkSettings, LagRule, flink_parallelism


def test_the_lag_over_the_threshold_is_how_many_consumers_there_are() -> None:
    assert LagRule(10, partitions=60).replicas(0, lag=35, present=1) == 4


def test_a_lag_within_a_tenth_of_what_is_wanted_changes_nothing() -> None:
    rule = LagRule(10, partitions=60)
    assert rule.replicas(0, lag=109, present=10) == 10
    assert rule.replicas(15, lag=111, present=10) == 12


def test_a_sync_doubles_the_group_or_adds_four_at_most() -> None:
    assert LagRule(10, partitions=60).replicas(0, lag=600, present=2) == 6
    assert LagRule(10, partitions=60).replicas(0, lag=600, present=8) == 16


def test_there_are_never_more_consumers_than_partitions() -> None:
    assert LagRule(10, partitions=5).replicas(0, lag=1e9, present=4) == 5


def test_a_group_shrinks_to_what_was_wanted_at_most_in_the_last_five_minutes() -> None:
    rule = LagRule(10, partitions=60)
    assert rule.replicas(0, lag=80, present=8) == 8
    assert rule.replicas(100, lag=50, present=8) == 8
    assert rule.replicas(300, lag=20, present=8) == 8
    assert rule.replicas(315, lag=20, present=8) == 5
    assert rule.replicas(415, lag=20, present=5) == 2


def test_a_group_without_lag_shrinks_to_one_consumer() -> None:
    assert LagRule(10, partitions=60).replicas(0, lag=0, present=3) == 1


AT_ONCE = FlinkSettings(restart_s=0.0, catch_up_s=100.0)
"""Nothing is expected to pile up during a restart."""


@pytest.mark.parametrize(
    ("rate", "backlog", "present", "wanted"),
    [
        (700, 0, 10, 10),  # exactly at the target utilisation
        (990, 0, 10, 10),  # below the upper bound of 1.0
        (1_400, 0, 10, 20),  # 1,400 / 0.7 takes 20 readers
        (1_450, 0, 10, 30),  # 21, and the next that divides 60 partitions is 30
        (10, 0, 50, 20),  # not to less than 0.4 of what there are
        (700, 50_000, 10, 15),  # 700 / 0.7, and 50,000 to be read in 100 s
        (100_000, 0, 10, 60),  # no more than partitions
    ],
)
def test_the_parallelism_of_flink(rate: float, backlog: float, present: int, wanted: int) -> None:
    found = flink_parallelism(AT_ONCE, rate=rate, backlog=backlog, true_rate=100, present=present, partitions=60)
    assert found == wanted
