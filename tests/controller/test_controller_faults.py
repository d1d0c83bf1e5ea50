"""The invariants of the handover, whatever is lost, doubled, late or killed."""

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.settings import ControllerSettings
from domain.partitions import TopicPartition
from tests.controller.world import World

SETTINGS = ControllerSettings(
    consumer_capacity=100.0,
    packing_capacity=80.0,
    interval_s=10.0,
    least_interval_s=1.0,
    acknowledge_timeout_s=3.0,
    scale_down_window_s=10.0,
)

FAULTS = st.sampled_from(["load", "kill", "controller", "topic", "wait"])


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), chaos=st.floats(0, 0.3), faults=st.lists(FAULTS, max_size=8))
def test_no_partition_ever_has_two_readers_and_the_group_converges(seed: int, chaos: float, faults: list[str]) -> None:
    world = World(SETTINGS, seed, chaos)
    world.speeds = {TopicPartition("orders", number): 20.0 for number in range(6)}
    for fault in [*faults, "wait"]:
        match fault:
            case "load":
                world.speeds = {partition: world.random.uniform(0, 90) for partition in world.speeds}
            case "kill" if world.consumers:
                world.kill(world.random.choice(sorted(world.consumers)))
            case "controller":
                world.begin_controller()
            case "topic":
                world.speeds[TopicPartition("clicks", world.random.randrange(4))] = world.random.uniform(0, 90)
        for _ in range(world.random.randrange(1, 20)):
            world.step()
    world.settle()
    assert world.most_readers == 1


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_no_consumer_is_given_more_than_it_can_read_unless_one_partition_is_too_fast(seed: int) -> None:
    world = World(SETTINGS, seed)
    world.speeds = {TopicPartition("orders", number): world.random.uniform(0, 120) for number in range(8)}
    world.settle(60)
    for consumer in world.consumers.values():
        load = sum(world.speeds[partition] for partition in consumer.held)
        assert load <= SETTINGS.consumer_capacity or len(consumer.held) == 1
