"""Consumers that are ready before they are needed."""

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from controller.decide.machine import State
from controller.decide.spares import spares
from controller.settings import ControllerSettings
from domain.messages import ConsumerState
from domain.partitions import TopicPartition
from tests.controller.world import World

SETTINGS = ControllerSettings(
    consumer_capacity=100.0,
    packing_capacity=80.0,
    interval_s=20.0,
    heartbeat_timeout_s=15.0,
    scale_down_window_s=20.0,
    spare_consumers=1,
    max_consumers=5,
)
NUMBERS = st.integers(1, 8)


def partitions(count: int, speed: float) -> dict[TopicPartition, float]:
    return {TopicPartition("orders", number): speed for number in range(count)}


def a_world(speeds: dict[TopicPartition, float], settings: ControllerSettings = SETTINGS) -> World:
    world = World(settings, seed=1)
    world.speeds = speeds
    return world


def run(world: World, seconds: float) -> None:
    for _ in range(int(seconds / 0.5)):
        world.step()


def idle(world: World) -> list[int]:
    return [number for number, consumer in sorted(world.consumers.items()) if not consumer.held]


def test_a_spare_is_made_and_reads_nothing() -> None:
    world = a_world(partitions(2, 25.0))
    run(world, 15)
    assert sorted(world.consumers) == [1, 2]
    assert idle(world) == [2]
    assert world.controller.group[2].state is ConsumerState.READY
    assert world.controller.state is State.SENTINEL


def test_a_group_that_begins_has_a_consumer_that_is_ready_when_the_first_speed_is_known() -> None:
    world = a_world({}, SETTINGS.model_copy(update={"spare_consumers": 0}))
    world.unknown = frozenset(partitions(3, 0.0))
    run(world, 5)
    first = world.consumers[1]
    assert idle(world) == [1]
    assert world.controller.group[1].state is ConsumerState.READY
    world.unknown, world.speeds = frozenset(), partitions(3, 25.0)
    run(world, 5)
    assert world.consumers == {1: first}
    assert first.held == world.speeds.keys()


def test_no_consumer_begins_before_a_speed_is_known_where_nothing_is_to_be_read_or_nobody_may_have_to() -> None:
    nothing = a_world({}, SETTINGS.model_copy(update={"spare_consumers": 0}))
    nobody = a_world({}, SETTINGS.model_copy(update={"spare_consumers": 0, "min_consumers": 0}))
    nobody.unknown = frozenset(partitions(3, 0.0))
    for world in (nothing, nobody):
        run(world, 5)
        assert not world.consumers


def test_a_plan_takes_the_spare_and_another_one_is_made() -> None:
    world = a_world(partitions(4, 20.0))
    run(world, 15)
    spare = world.consumers[2]
    world.speeds = partitions(4, 30.0)
    run(world, 30)
    assert world.consumers[2] is spare
    assert spare.held
    assert idle(world) == [3]


def test_a_consumer_that_is_not_needed_any_more_becomes_the_spare() -> None:
    world = a_world(partitions(4, 30.0))
    run(world, 30)
    assert len(world.consumers) == 3
    world.speeds = partitions(4, 10.0)
    run(world, 60)
    assert len(world.consumers) == 2
    assert len(idle(world)) == 1


def test_a_spare_that_dies_is_replaced() -> None:
    world = a_world(partitions(2, 25.0))
    run(world, 15)
    del world.consumers[2]
    run(world, 30)
    assert len(idle(world)) == 1


def test_there_are_never_more_consumers_than_the_most_because_of_spares() -> None:
    world = a_world(partitions(2, 60.0), SETTINGS.model_copy(update={"spare_consumers": 4, "max_consumers": 3}))
    run(world, 30)
    assert len(world.consumers) == 3


def test_without_spares_nothing_is_kept() -> None:
    world = a_world(partitions(4, 30.0), SETTINGS.model_copy(update={"spare_consumers": 0}))
    run(world, 30)
    assert not idle(world)


@given(st.integers(0, 4), st.frozensets(NUMBERS), st.dictionaries(NUMBERS, st.booleans()), st.integers(0, 10))
def test_spares_are_kept_before_they_are_made(
    wanted: int, needed: frozenset[int], existing: dict[int, bool], most: int
) -> None:
    free = (number for number in count(1) if number not in needed and number not in existing)
    alive = {number for number, counted_on in existing.items() if counted_on}
    found = spares(wanted, needed, alive, most, free)
    made = found - existing.keys()
    assert len(found) <= wanted
    assert not found & needed
    assert not any(not existing[spare] for spare in found & existing.keys())
    if made:
        assert len(needed) + len(found) <= most
        assert all(number in found | needed for number, counted_on in existing.items() if counted_on)
