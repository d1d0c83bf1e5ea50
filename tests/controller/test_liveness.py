"""Nothing stops a group that need not stop: what goes on whoever else is away, hangs, or has another clock."""

import pytest

from controller.settings import ControllerSettings
from domain.partitions import TopicPartition
from tests.controller.world import World

SETTINGS = ControllerSettings(
    consumer_capacity=100.0, packing_capacity=80.0, interval_s=20.0, heartbeat_timeout_s=15.0, scale_down_window_s=20.0
)


def orders(count: int, speed: float) -> dict[TopicPartition, float]:
    return {TopicPartition("orders", number): speed for number in range(count)}


def a_world(speeds: dict[TopicPartition, float], **changes: object) -> World:
    world = World(SETTINGS.model_copy(update=changes), seed=1)
    world.speeds = speeds
    run(world, 15)
    assert world.converged
    return world


def run(world: World, seconds: float, *, monitor: bool = True, step_s: float = 0.5) -> None:
    for _ in range(int(seconds / step_s)):
        world.step(step_s, monitor=monitor)


def read(world: World) -> set[TopicPartition]:
    """What consumers hold that go on."""
    return {p for consumer in world.consumers.values() if consumer.speaks for p in consumer.held}


@pytest.mark.parametrize("skew_s", [-900.0, -31.0, 31.0, 3600.0])
def test_the_monitors_clock_decides_nothing(skew_s: float) -> None:
    """Hole 2: a clock half a minute ahead had everything stopped, one behind nothing decided."""
    world = a_world(orders(6, 25.0))
    world.monitor_skew_s = skew_s
    run(world, 60)
    assert read(world) == set(orders(6, 0.0))
    world.speeds = orders(8, 25.0)
    world.kill(1)
    run(world, 20)
    assert read(world) == set(world.speeds)


def test_one_report_from_the_future_changes_nothing() -> None:
    """Hole 2: it cost all partitions ten seconds."""
    world = a_world(orders(6, 25.0))
    before = {number: set(consumer.held) for number, consumer in world.consumers.items()}
    world.monitor_skew_s = 86_400.0
    world.step()
    world.monitor_skew_s = 0.0
    for _ in range(40):
        world.step()
        assert {number: set(consumer.held) for number, consumer in world.consumers.items()} == before


def test_speeds_from_before_a_controller_began_are_known_and_not_fresh() -> None:
    """Hole 2: whatever their time says, nothing is decided on them until newer ones come."""
    world = a_world(orders(4, 20.0), interval_s=5.0)
    world.begin_controller()
    made = len(world.decisions)
    run(world, 30, monitor=False)
    assert len(world.decisions) == made
    assert world.controller.sizes.keys() == world.speeds.keys()
    run(world, 10)
    assert len(world.decisions) > made


@pytest.mark.parametrize("named", [0, 3])
def test_a_monitor_that_names_less_or_nothing_stops_nothing(named: int) -> None:
    """Hole 2: a monitor that lost a right had everything stopped after half a minute."""
    world = a_world(orders(6, 25.0))
    before = {number: set(consumer.held) for number, consumer in world.consumers.items()}
    world.speeds = orders(named, 25.0)
    run(world, 200)
    assert {number: set(consumer.held) for number, consumer in world.consumers.items()} == before


def test_what_was_said_to_be_gone_and_is_named_again_is_read_again() -> None:
    """Hole 2: a topic that is deleted and made anew."""
    world = a_world(orders(2, 25.0))
    world.speeds, world.gone = {}, frozenset(orders(2, 0.0))
    run(world, 10)
    assert read(world) == set()
    world.speeds, world.gone = orders(2, 25.0), frozenset()
    run(world, 30)
    assert read(world) == set(world.speeds)
