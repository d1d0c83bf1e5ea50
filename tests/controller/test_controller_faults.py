"""What holds whatever is lost, doubled, late, killed, frozen, woken up or given up.

In these runs a record counts as read when it is in the lake, so a double read is a doubled record; consumers are frozen
between any two of their steps, and go on as they were when they wake up.
"""

from random import Random

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from controller.decide.hearing import CLAIM_EVERY_S
from controller.decide.machine import State
from controller.settings import ControllerSettings
from domain.partitions import TopicPartition
from tests.controller.world import World
from tests.examples import examples

pytestmark = pytest.mark.explores

SETTINGS = ControllerSettings(
    consumer_capacity=100.0,
    packing_capacity=80.0,
    interval_s=10.0,
    least_interval_s=1.0,
    acknowledge_timeout_s=3.0,
    heartbeat_timeout_s=8.0,
    synchronize_timeout_s=5.0,
    ready_timeout_s=10.0,
    scale_down_window_s=10.0,
)
BACKOFF_S = 60.0
SOLVER_S = 3.0
BOUND_S = (
    SETTINGS.synchronize_timeout_s
    + SETTINGS.heartbeat_timeout_s
    + SETTINGS.ready_timeout_s
    + 2 * CLAIM_EVERY_S
    + 2 * SETTINGS.acknowledge_timeout_s
    + BACKOFF_S
)
"""After the last fault, every partition has a reader again within so many seconds: a new controller has found out who
obeys, those that do not are given up, those in their place are ready, a lost command was sent once more. The back-off
is what many lost consumers in a row bring about; without it the bound is a minute shorter."""

CALM_STEP_S = 1.0
"""Of a world that nothing befalls any more: controller and consumers take their turns as before, and wait for less."""

FAULTS = st.sampled_from(
    [
        "load",
        "topic",
        "kill a consumer",
        "freeze a consumer",
        "cut a consumer off",
        "give a node up",
        "restart a consumer",
        "wake everything",
        "lose an answer",
        "lose commits",
        "expire commits",
        "kill the monitor",
        "start the monitor",
        "replace the controller",
        "kill the controller",
        "freeze the controller",
        "wait",
    ]
)


def befall(world: World, fault: str) -> None:
    alive = [number for number, process in sorted(world.consumers.items()) if not process.doomed]
    match fault:
        case "load":
            world.speeds = {partition: world.random.uniform(0, 90) for partition in sorted(world.speeds)}
        case "topic":
            world.speeds[TopicPartition("clicks", world.random.randrange(4))] = world.random.uniform(0, 90)
        case "kill a consumer" if alive:
            world.kill(world.random.choice(alive))
        case "freeze a consumer" if alive:
            world.consumers[world.random.choice(alive)].frozen = True
        case "cut a consumer off" if alive:
            world.consumers[world.random.choice(alive)].silent = True
        case "give a node up" if alive:
            world.lose(world.random.choice(alive))
        case "restart a consumer" if alive:
            world.restart(world.random.choice(alive))
        case "wake everything":
            world.wake()
        case "lose an answer" if alive:
            world.consumers[world.random.choice(alive)].answers_lost += 1
        case "lose commits":
            world.lake.lose_commits()
        case "expire commits":
            world.lake.expire_commits({process.writer for process in world.processes if not process.ended})
        case "kill the monitor":
            world.monitor_lives = False
        case "start the monitor":
            world.monitor_lives = True
        case "replace the controller":
            world.begin_controller()
        case "kill the controller":
            world.listens = False
            go_on(world, world.random.randrange(1, 40))
            world.begin_controller()
        case "freeze the controller":
            world.listens = False
            go_on(world, world.random.randrange(1, 60))
            world.listens = True


def go_on(world: World, steps: int, step_s: float = 0.5) -> None:
    for _ in range(steps):
        world.step(step_s)


def a_world(seed: int, chaos: float, *, seals: bool = True) -> World:
    """Its solver takes time or none; each process has a clock of its own."""
    world = World(SETTINGS, seed, chaos, seals=seals)
    clocks = Random(seed)
    world.a_clock = lambda: (clocks.uniform(0, 1e9), clocks.uniform(0.9, 1.1))
    world.monitor_skew_s = clocks.uniform(-1e4, 1e4)
    world.solver_s = clocks.choice([0.0, SOLVER_S])
    world.speeds = {TopicPartition("orders", number): 20.0 for number in range(6)}
    return world


def require_converged(world: World, though: str) -> None:
    """A controller whose solver is at work now and then is content in between."""
    go_on(world, int(BOUND_S / CALM_STEP_S), CALM_STEP_S)
    left_s = 2 * SOLVER_S
    while not world.converged and left_s > 0:
        go_on(world, 1)
        left_s -= 0.5
    assert world.converged, though


def require_once(world: World) -> None:
    assert not world.lake.doubled
    assert not world.lake.lost
    assert world.most_readers <= 1


@pytest.mark.slow(2)
@hypothesis_settings(max_examples=examples(80), deadline=None)
@given(seed=st.integers(0, 2**32), chaos=st.floats(0, 0.3), faults=st.lists(FAULTS, max_size=10))
def test_every_record_is_read_once_and_the_group_converges_within_the_bound(
    seed: int, chaos: float, faults: list[str]
) -> None:
    world = a_world(seed, chaos)
    for fault in [*faults, "wait"]:
        befall(world, fault)
        go_on(world, world.random.randrange(1, 20))
    world.chaos, world.monitor_lives = 0.0, True
    require_converged(world, "though some are still frozen, and their nodes hang")
    world.wake()
    require_converged(world, "though all that were frozen have gone on as they were")
    require_once(world)


@hypothesis_settings(max_examples=examples(60), deadline=None)
@given(
    seed=st.integers(0, 2**32),
    chaos=st.sampled_from([0.0, 0.2]),
    steps=st.integers(0, 30),
    faults=st.sampled_from(
        [
            ["replace the controller"],
            ["kill a consumer"],
            ["kill a consumer", "replace the controller"],
            ["freeze a consumer", "replace the controller"],
            ["give a node up", "kill the controller", "wake everything"],
        ]
    ),
)
def test_a_plan_that_is_interrupted_at_any_point_is_completed_or_another_is(
    seed: int, chaos: float, steps: int, faults: list[str]
) -> None:
    world = a_world(seed, 0.0)
    go_on(world, 20)
    world.chaos = chaos
    while world.controller.state is not State.MANAGE:
        befall(world, "load")
        go_on(world, 1)
    for _ in range(steps):
        world.step(0.1)
    for fault in faults:
        befall(world, fault)
    world.chaos = 0.0
    require_converged(world, "whatever the plan was interrupted by")
    require_once(world)


def test_where_nobody_is_told_whom_to_seal_such_runs_find_records_that_are_read_twice() -> None:
    """What the property above rests on; claims alone do not reach a process that was frozen before it claimed."""

    def doubles(seed: int) -> bool:
        world = a_world(seed, 0.0, seals=False)
        go_on(world, seed % 10)
        for fault in ("give a node up", "wake everything"):
            befall(world, fault)
            go_on(world, 40)
        return world.lake.doubled

    assert any(map(doubles, range(40)))


@hypothesis_settings(max_examples=examples(30), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_no_consumer_is_given_more_than_it_can_read_unless_one_partition_is_too_fast(seed: int) -> None:
    world = World(SETTINGS, seed)
    world.speeds = {TopicPartition("orders", number): world.random.uniform(0, 120) for number in range(8)}
    world.settle(60)
    for consumer in world.consumers.values():
        load = sum(world.speeds[partition] for partition in consumer.held)
        assert load <= SETTINGS.consumer_capacity or len(consumer.held) == 1


@pytest.mark.slow(2)
@pytest.mark.parametrize("chaos", [0.0, 0.2])
def test_where_nothing_is_lost_but_messages_nobody_is_sealed(chaos: float) -> None:
    """A seal costs a second of Spark's time, and ends whom it names."""
    world = a_world(3, chaos)
    for _ in range(10):
        befall(world, "load")
        go_on(world, 30)
    assert world.sealed == []
    befall(world, "replace the controller")
    go_on(world, 60)
    befall(world, "load")
    go_on(world, 60)
    assert world.sealed == []
    assert world.lake.sealed == set()


@pytest.mark.parametrize(
    ("commits_at_once", "tells_at_once"), [(1.0, 0.2), (0.2, 1.0)], ids=["slow take-overs", "slow commits"]
)
def test_however_slow_it_all_is_nobody_is_sealed_and_every_record_is_read_once(
    commits_at_once: float, tells_at_once: float
) -> None:
    """Partitions come and go while they are written, committed or taken over."""
    for seed in range(examples(10)):
        world = a_world(seed, 0.0)
        world.lake.commits_at_once, world.lake.tells_at_once = commits_at_once, tells_at_once
        for _ in range(15):
            befall(world, "load")
            go_on(world, world.random.randrange(1, 20))
        require_once(world)
        assert world.sealed == []
        assert world.lake.sealed == set()
