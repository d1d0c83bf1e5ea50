"""The size of a partition: its write speed, and what it takes to catch up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.decide.sizes import Size, Sizes, size
from controller.settings import ControllerSettings
from domain.consumer_class import ConsumerClass
from domain.partitions import TopicPartition
from domain.speeds import Lag, WriteSpeeds
from tests.controller.world import World

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
SPEEDS = st.floats(0, 1e12)


def lags(*behind: float) -> dict[TopicPartition, Lag]:
    return {TopicPartition("orders", number): Lag(0, each, None) for number, each in enumerate(behind)}


def test_a_backlog_adds_what_it_takes_to_drain_it_in_the_recovery_time() -> None:
    assert size(40.0, behind=600.0, recovery_time_s=60, capacity=100.0) == Size(40.0, backlog=10.0)


def test_a_recovery_time_of_0_is_the_papers_model() -> None:
    assert size(40.0, behind=1e9, recovery_time_s=0, capacity=100.0) == Size(40.0)


def test_a_backlog_makes_no_partition_larger_than_a_consumer_and_hides_none_that_is_written_faster() -> None:
    assert size(40.0, behind=1e9, recovery_time_s=60, capacity=100.0).total == 100.0
    assert size(140.0, behind=1e9, recovery_time_s=60, capacity=100.0) == Size(140.0)


@given(SPEEDS, SPEEDS, SPEEDS, st.floats(1, 1e6), st.floats(1, 1e12))
def test_a_size_is_at_least_the_write_speed_and_grows_with_the_backlog_up_to_the_capacity(
    write_speed: float, behind: float, more: float, recovery_time_s: float, capacity: float
) -> None:
    one = size(write_speed, behind, recovery_time_s, capacity)
    other = size(write_speed, behind + more, recovery_time_s, capacity)
    assert write_speed <= one.total <= other.total <= max(write_speed, capacity) * (1 + 1e-9)


def test_what_is_not_measured_stays_as_it_was_and_is_not_fresh() -> None:
    sizes = Sizes(recovery_time_s=10, capacity=100)
    sizes.measured(WriteSpeeds(0, {P: 5.0, Q: 6.0}, lags=lags(100.0, 0.0)))
    assert (sizes.present, sizes.fresh) == ({P: Size(5.0, 10.0), Q: Size(6.0)}, frozenset({P, Q}))
    sizes.measured(WriteSpeeds(1, {P: 4.0}, frozenset({Q}), lags={Q: Lag(0, 0.0, None)}))
    assert (sizes.present, sizes.fresh) == ({P: Size(4.0, 10.0), Q: Size(6.0)}, frozenset())
    sizes.forget(P)
    assert sizes.present == {Q: Size(6.0)}


def test_where_backlogs_do_not_count_a_speed_without_a_lag_is_fresh() -> None:
    sizes = Sizes(recovery_time_s=0, capacity=100)
    sizes.measured(WriteSpeeds(0, {P: 5.0}))
    assert (sizes.present, sizes.fresh) == ({P: Size(5.0)}, frozenset({P}))


SETTINGS = ControllerSettings(
    consumer_capacity=100.0, packing_capacity=75.0, scale_down_window_s=60.0, interval_s=20.0, recovery_time_s=100.0
)


def group_with(speeds: dict[TopicPartition, float], settings: ControllerSettings = SETTINGS) -> World:
    world = World(settings, seed=1)
    world.speeds = speeds
    world.settle()
    return world


def test_a_group_that_is_behind_grows_and_shrinks_again_when_the_backlog_is_drained() -> None:
    world = group_with({P: 30.0, Q: 30.0})
    assert len(world.consumers) == 1
    world.lags = {P: 3000.0, Q: 3000.0}
    world.settle()
    assert len(world.consumers) == 2
    grown = next(decision for decision in reversed(world.decisions) if decision.carried_out)
    assert grown.triggers == ("consumer 1 has 120 bytes/s to read, 60 of them to catch up, above its capacity of 100",)
    assert [(entry.speed, entry.backlog) for entry in grown.assignment] == [(60.0, 30.0), (60.0, 30.0)]
    assert grown.recovery_time_s == 100.0
    world.lags = {}
    world.settle()
    assert len(world.consumers) == 1


def test_a_huge_backlog_gives_each_partition_a_consumer_at_most_and_alarms_nobody_for_ever() -> None:
    world = group_with({TopicPartition("orders", number): 10.0 for number in range(4)})
    world.lags = dict.fromkeys(world.speeds, 1e12)
    world.settle()
    assert len(world.consumers) == 4
    grown = len(world.decisions)
    assert not any(decision.saturated for decision in world.decisions)
    for _ in range(200):
        world.step()
    assert not any(decision.carried_out for decision in world.decisions[grown:])


def test_without_a_recovery_time_a_backlog_moves_nothing() -> None:
    world = group_with({P: 30.0, Q: 30.0}, SETTINGS.model_copy(update={"recovery_time_s": 0.0}))
    world.lags, world.lags_unknown = {P: 1e12}, frozenset({Q})
    world.settle()
    assert len(world.consumers) == 1


@pytest.mark.parametrize("unknown", [frozenset({P}), frozenset({P, Q})])
def test_no_consumer_is_given_up_while_a_lag_is_not_known(unknown: frozenset[TopicPartition]) -> None:
    world = group_with({P: 60.0, Q: 60.0})
    assert len(world.consumers) == 2
    world.lags_unknown = unknown
    world.speeds = {P: 20.0, Q: 20.0}
    world.settle()
    assert len(world.consumers) == 2
    assert "the speed or the lag of orders-0" in world.decisions[-1].reason
    world.lags_unknown = frozenset()
    world.settle()
    assert len(world.consumers) == 1


@pytest.mark.parametrize(("speed", "total"), [(30.0, 100.0), (150.0, 400.0), (500.0, 500.0)])
def test_a_backlog_makes_no_partition_need_a_larger_consumer_than_its_write_speed_does(
    speed: float, total: float
) -> None:
    classes = [ConsumerClass("large", 400.0, 3.0), ConsumerClass("small", 50.0, 0.6)]
    sizes = Sizes(recovery_time_s=10, capacity=100, classes=classes)
    sizes.measured(WriteSpeeds(0, {P: speed}, lags={P: Lag(1, 1e6, None)}))
    assert sizes.present[P].total == total
