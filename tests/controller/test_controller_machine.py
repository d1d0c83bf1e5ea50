"""What the controller decides, event by event."""

from collections.abc import Iterable

import pytest

from controller.decide.events import Ticked
from controller.decide.machine import State
from controller.settings import ControllerSettings
from domain.messages import Action, Decision, Throughput
from domain.partitions import TopicPartition
from tests.controller.world import World

SETTINGS = ControllerSettings(
    consumer_capacity=100.0, packing_capacity=80.0, interval_s=20.0, heartbeat_timeout_s=15.0, scale_down_window_s=20.0
)


def partitions(count: int, speed: float) -> dict[TopicPartition, float]:
    return {TopicPartition("orders", number): speed for number in range(count)}


def a_world(speeds: dict[TopicPartition, float], settings: ControllerSettings = SETTINGS) -> World:
    world = World(settings, seed=1)
    world.speeds = speeds
    return world


def loads(world: World) -> list[float]:
    return sorted(sum(world.speeds[p] for p in consumer.held) for consumer in world.consumers.values())


def partitions_read(world: World) -> int:
    return sum(len(consumer.held) for consumer in world.consumers.values())


def run(world: World, seconds: float, *, monitor: bool = True) -> None:
    for _ in range(int(seconds / 0.5)):
        world.step(monitor=monitor)


def next_decision(world: World) -> Decision:
    made = len(world.decisions)
    for _ in range(100):
        if len(world.decisions) > made:
            return world.decisions[-1]
        world.step()
    raise AssertionError("nothing was decided")


def consumer_numbers(world: World) -> Iterable[int]:
    return sorted(world.consumers)


def test_every_partition_gets_a_consumer_within_the_packing_capacity() -> None:
    world = a_world(partitions(6, 25.0))
    run(world, 10)
    assert loads(world) == [75.0, 75.0]
    assert world.controller.state is State.SENTINEL


def test_what_was_started_last_is_known_to_the_next_controller() -> None:
    """Hole 12: whoever was heard of was taken for one that may have read anything."""
    world = a_world(partitions(6, 25.0))
    while Action.START not in [command.action for _, command in world.commands]:
        world.step(0.3)
    world.begin_controller()
    known = world.controller.group.former.unsealed.values()
    assert sorted(len(reach) for reach in known if reach is not None) == [3, 3]


def test_an_idle_topic_has_one_consumer() -> None:
    world = a_world(partitions(5, 0.0))
    run(world, 10)
    assert consumer_numbers(world) == [1]


def test_a_consumer_above_its_capacity_is_relieved_before_the_interval_is_over() -> None:
    world = a_world(partitions(4, 20.0))
    run(world, 10)
    assert loads(world) == [80.0]
    world.speeds = partitions(4, 30.0)
    run(world, 10)
    assert len(loads(world)) == 2
    assert max(loads(world)) <= SETTINGS.consumer_capacity
    assert "above its capacity" in world.decisions[-1].triggers[0]


@pytest.mark.parametrize(("jumping", "at_once"), [([7], False), (range(8), True)], ids=["one", "all"])
def test_the_next_plan_comes_at_once_where_the_load_has_outgrown_the_one_before(
    jumping: Iterable[int], at_once: bool
) -> None:
    world = a_world(partitions(8, 26.0))
    run(world, 10)
    world.speeds[TopicPartition("orders", 0)] = 60.0
    first = next_decision(world)
    world.speeds |= {TopicPartition("orders", number): 76.0 for number in jumping}
    second = next_decision(world)
    assert all("above its capacity" in why for why in (first.triggers[0], second.triggers[0]))
    assert (second.decided_at - first.decided_at < SETTINGS.least_interval_s) is at_once


def test_what_has_outgrown_a_plan_has_jumped_and_is_not_foreseen_to_climb_on() -> None:
    world = a_world(partitions(6, 26.0), SETTINGS.model_copy(update={"forecast": True}))
    run(world, 10)
    world.speeds = partitions(6, 36.0)
    first = next_decision(world)
    for speed in (42.0, 46.0, 49.0, 52.0):
        world.speeds = partitions(6, speed)
        world.step(1.0)
    second = world.decisions[-1]
    assert 0 < second.decided_at - first.decided_at < SETTINGS.least_interval_s
    assert {(entry.speed, entry.foreseen) for entry in second.assignment} == {(52.0, 0.0)}


def test_a_load_between_packing_and_consumer_capacity_moves_nothing() -> None:
    world = a_world(partitions(4, 20.0))
    run(world, 10)
    world.speeds = partitions(4, 24.0)
    run(world, 60)
    assert loads(world) == [96.0]
    assert not world.decisions[-1].carried_out


def test_a_capacity_that_consumers_tell_of_is_planned_with() -> None:
    learning = {"consumer_capacity": "auto", "capacity_floor": 100.0, "packing_capacity": None}
    world = a_world(partitions(6, 25.0), ControllerSettings(**{**SETTINGS.model_dump(), **learning}))
    run(world, 10)
    assert loads(world) == [75.0, 75.0]
    for consumer in world.consumers.values():
        consumer.throughput = Throughput(bytes_per_s=400.0, variation=0.0, cycles=9, record_bytes=1000.0)
    run(world, 90)
    assert loads(world) == [150.0]


def test_consumers_that_are_not_needed_any_more_are_ended() -> None:
    world = a_world(partitions(8, 30.0))
    run(world, 10)
    assert len(world.consumers) == 4
    world.speeds = partitions(8, 5.0)
    run(world, 40)
    assert loads(world) == [40.0]
    assert world.most_readers == 1


def test_the_partitions_of_a_consumer_that_died_go_to_others() -> None:
    world = a_world(partitions(6, 25.0))
    run(world, 10)
    world.kill(1)
    run(world, 20)
    world.settle(10)


def test_a_consumer_that_is_silent_for_long_is_ended() -> None:
    world = a_world(partitions(2, 10.0))
    run(world, 10)
    (silent,) = world.consumers.values()
    silent.silent = True
    run(world, SETTINGS.heartbeat_timeout_s - 1)
    assert list(world.consumers.values()) == [silent]
    run(world, 30)
    assert silent not in world.consumers.values()
    assert partitions_read(world) == 2
    assert world.sealed
    assert set(world.sealed) == {silent.writer}
    assert world.most_readers == 1


def test_what_a_consumer_on_a_node_that_hangs_for_ever_had_goes_to_others() -> None:
    world = a_world(partitions(6, 25.0))
    run(world, 10)
    world.consumers[1].frozen = True
    run(world, SETTINGS.heartbeat_timeout_s + 20)
    assert world.consumers[1].doomed, "it is still there, and keeps its number"
    assert consumer_numbers(world) == [1, 2, 3]
    world.settle(10)
    assert set(world.sealed) == {world.consumers[1].writer}


@pytest.mark.parametrize("what", ["the controller", "the way between them"])
def test_silence_that_the_controller_did_not_listen_to_means_nothing(what: str) -> None:
    world = a_world(partitions(6, 25.0))
    run(world, 10)
    before = list(world.consumers.values())
    if what == "the controller":
        world.listens = False
        run(world, 10 * SETTINGS.heartbeat_timeout_s)
        world.listens = True
    else:
        world.chaos = 1.0
        for _ in range(int(10 * SETTINGS.heartbeat_timeout_s)):
            world.messages.clear()
            world.step(1.0)
        world.chaos = 0.0
    run(world, 30)
    assert list(world.consumers.values()) == before
    assert world.sealed == []


def test_the_next_controller_has_those_sealed_that_died_unseen() -> None:
    world = a_world(partitions(6, 25.0))
    run(world, 10)
    dead = world.consumers[1].writer
    world.listens = False
    world.kill(1)
    world.begin_controller()
    run(world, 30)
    assert set(world.sealed) == {dead}
    world.settle(10)
    world.begin_controller()
    run(world, 30)
    world.kill(2)
    run(world, 30)
    assert dead not in world.sealed[len(world.sealed) - 1 :], "it is settled, and the claims say so"


def test_without_fresh_speeds_nothing_is_decided() -> None:
    world = a_world(partitions(2, 10.0))
    run(world, 10)
    run(world, SETTINGS.speeds_timeout_s + 1, monitor=False)
    made = len(world.decisions)
    run(world, 5 * SETTINGS.interval_s, monitor=False)
    assert len(world.decisions) == made


def test_a_controller_that_was_frozen_decides_once_it_has_heard_what_was_said_meanwhile() -> None:
    world = a_world(partitions(4, 20.0))
    run(world, 25)
    made = len(world.decisions)
    world.listens = False
    run(world, SETTINGS.interval_s + 5)
    world.listens = True
    world.handle(Ticked(world.now))
    assert world.questions == []
    world.speeds = partitions(4, 30.0)
    run(world, 5)
    assert len(world.decisions) > made
    assert "above its capacity" in world.decisions[made].triggers[0]


def test_a_partition_that_cannot_be_measured_keeps_its_last_speed_and_its_consumer() -> None:
    world = a_world(partitions(6, 25.0))
    run(world, 10)
    before = {number: set(consumer.held) for number, consumer in world.consumers.items()}
    world.unknown = frozenset(partitions(3, 0.0))
    world.speeds = {p: s for p, s in partitions(6, 25.0).items() if p not in world.unknown}
    run(world, 60)
    assert {number: set(consumer.held) for number, consumer in world.consumers.items()} == before


def test_a_partition_that_the_monitor_says_is_gone_is_stopped() -> None:
    world = a_world(partitions(6, 10.0))
    run(world, 10)
    world.speeds = partitions(3, 10.0)
    world.gone = frozenset(partitions(6, 10.0).keys() - world.speeds.keys())
    run(world, 10)
    assert partitions_read(world) == 3


def test_the_next_controller_takes_over_what_consumers_report_and_moves_nothing() -> None:
    world = a_world(partitions(6, 25.0))
    run(world, 10)
    before = {number: set(consumer.held) for number, consumer in world.consumers.items()}
    world.begin_controller()
    run(world, 30)
    assert {number: set(consumer.held) for number, consumer in world.consumers.items()} == before
    assert world.controller.state is State.SENTINEL


def test_a_consumer_that_writes_for_long_when_a_controller_begins_is_waited_for() -> None:
    world = a_world(partitions(4, 20.0))
    run(world, 10)
    before, process = len(world.decisions), world.consumers[1]
    process.busy = True
    world.begin_controller()
    run(world, 3 * SETTINGS.synchronize_timeout_s)
    meanwhile = world.controller.state
    process.busy = False
    run(world, 2)
    assert (meanwhile, world.controller.state) == (State.SYNCHRONIZE, State.SENTINEL)
    assert world.consumers == {1: process}
    assert not any(decision.carried_out for decision in world.decisions[before:])


def test_a_consumer_that_reports_and_never_obeys_a_controller_that_begins_is_given_up() -> None:
    world = a_world(partitions(4, 20.0))
    run(world, 10)
    process = world.consumers[1]
    process.busy = True
    world.begin_controller()
    run(world, SETTINGS.ready_timeout_s + 30)
    assert process not in world.consumers.values()
    assert world.converged


def test_a_plan_beyond_the_most_consumers_is_told_apart() -> None:
    world = a_world(partitions(6, 70.0), SETTINGS.model_copy(update={"max_consumers": 3}))
    run(world, 30)
    assert len(world.consumers) <= 3


@pytest.mark.parametrize(
    "interrupted_after",
    [pytest.param(steps, marks=[pytest.mark.slow(2)] if steps % 24 else []) for steps in range(0, 40, 3)],
)
def test_a_plan_is_completed_from_wherever_the_controller_was_interrupted(interrupted_after: int) -> None:
    world = a_world(partitions(8, 30.0))
    run(world, 10)
    world.speeds = {p: 5.0 if p.partition < 5 else 60.0 for p in partitions(8, 0.0)}
    run(world, SETTINGS.least_interval_s)
    for _ in range(interrupted_after):
        world.step(0.1)
    world.begin_controller()
    world.settle()
    assert world.most_readers == 1
