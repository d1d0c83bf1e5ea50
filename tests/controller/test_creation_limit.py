"""A consumer that cannot be created: what is planned instead, for how long, and what the record says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.decide.creation_limit import after_failure
from controller.decide.machine import State
from controller.decide.question import Situation, pose
from controller.decide.sizes import Size
from controller.decide.triggers import Trigger
from controller.settings import ControllerSettings
from domain.assignment import Assignment
from domain.messages import ControllerClaim, CreationLimit, Restraint
from domain.partitions import TopicPartition
from tests.controller.world import World

SETTINGS = ControllerSettings(
    consumer_capacity=100.0,
    packing_capacity=80.0,
    interval_s=10.0,
    least_interval_s=1.0,
    ready_timeout_s=20.0,
    creation_retry_s=120.0,
    scale_down_window_s=20.0,
)


def orders(count: int, speed: float) -> dict[TopicPartition, float]:
    return {TopicPartition("orders", number): speed for number in range(count)}


def run(world: World, seconds: float) -> None:
    for _ in range(int(seconds / 0.5)):
        world.step()


def a_full_world(*, refuses: bool) -> World:
    """Two consumers with all that they can read, no room for a third, and then more to read."""
    world = World(SETTINGS, seed=1)
    world.speeds = orders(4, 40.0)
    run(world, 10)
    assert sorted(world.consumers) == [1, 2]
    world.room, world.refuses = 2, refuses
    world.asked.clear()
    world.speeds = orders(4, 70.0)
    return world


REFUSED = pytest.mark.parametrize("refuses", [True, False], ids=["refused", "never ready"])


@REFUSED
def test_a_consumer_that_cannot_be_is_not_asked_for_again_for_a_while(refuses: bool) -> None:
    world = a_full_world(refuses=refuses)
    run(world, SETTINGS.creation_retry_s - 1)
    assert [consumer for _, consumer in world.asked] == [3, 4], "each that the first plan wanted, once"


@REFUSED
def test_meanwhile_every_partition_is_read_where_it_was_and_nothing_moves(refuses: bool) -> None:
    world = a_full_world(refuses=refuses)
    before = {number: set(world.consumers[number].held) for number in (1, 2)}
    for _ in range(int(SETTINGS.creation_retry_s / 0.5) - 1):
        world.step()
        assert {number: set(world.consumers[number].held) for number in (1, 2)} == before


@REFUSED
def test_the_record_says_that_the_plan_is_held_back_and_why(refuses: bool) -> None:
    world = a_full_world(refuses=refuses)
    run(world, SETTINGS.creation_retry_s / 2)
    decision = world.decisions[-1]
    assert not decision.carried_out
    assert [each.by for each in decision.held_back] == [Restraint.CREATION, Restraint.NOT_BETTER]
    assert decision.held_back[0].why.startswith("no more than 2 consumers: consumer 4 could not be created ")
    assert decision.shortfall is not None
    assert decision.shortfall.reason.startswith("no more than 2 consumers: ")


@REFUSED
def test_claims_tell_it_while_it_holds_and_the_next_controller_tries_anew(refuses: bool) -> None:
    world = a_full_world(refuses=refuses)
    run(world, SETTINGS.creation_retry_s / 2)
    told = claimed(world)
    assert told is not None
    assert (told.most, told.consumer) == (2, 4)
    assert told.failed_at < world.now < told.until
    world.begin_controller()
    world.step()
    assert claimed(world) is None


def claimed(world: World) -> CreationLimit | None:
    return [each for each in world.history if isinstance(each, ControllerClaim)][-1].creation_limit


@REFUSED
def test_after_that_while_they_are_asked_for_again(refuses: bool) -> None:
    world = a_full_world(refuses=refuses)
    run(world, SETTINGS.creation_retry_s / 2)
    world.room = 10
    run(world, SETTINGS.creation_retry_s)
    assert sorted(world.consumers) == [1, 2, 3, 4]
    world.settle(20)


def test_a_consumer_that_dies_meanwhile_is_replaced() -> None:
    world = a_full_world(refuses=True)
    run(world, 20)
    world.kill(1)
    run(world, 20)
    assert sorted(world.consumers) == [1, 2]
    assert world.controller.state is State.SENTINEL


def test_a_consumer_created_since_that_is_ready_ends_it() -> None:
    world = a_full_world(refuses=True)
    run(world, 20)
    world.room = 10
    world.kill(1)
    run(world, SETTINGS.creation_retry_s / 2)
    assert sorted(world.consumers) == [1, 2, 3, 4]


def test_where_no_consumer_can_be_one_is_tried() -> None:
    world = World(SETTINGS, seed=1)
    world.room = 0
    world.speeds = orders(4, 40.0)
    run(world, 60)
    later = [at for at, _ in world.asked if at > world.asked[0][0] + 5]
    assert len(later) == len(set(later)), "one at a time"
    world.room = 10
    run(world, SETTINGS.creation_retry_s)
    world.settle(20)
    assert len(world.consumers) == 2


def test_spares_are_not_asked_for_either() -> None:
    world = World(SETTINGS.model_copy(update={"spare_consumers": 1}), seed=1)
    world.room = 1
    world.speeds = orders(1, 40.0)
    run(world, SETTINGS.creation_retry_s - 10)
    assert [consumer for _, consumer in world.asked] == [1, 2]
    world.room = 2
    run(world, 30)
    assert sorted(world.consumers) == [1, 2]


def test_the_death_of_a_consumer_that_was_ready_limits_nothing() -> None:
    world = World(SETTINGS, seed=1)
    world.speeds = orders(4, 40.0)
    run(world, 10)
    world.kill(1)
    world.speeds = orders(4, 70.0)
    run(world, 20)
    assert sorted(world.consumers) == [1, 2, 3, 4]


def test_of_several_failures_the_lowest_count_holds_from_the_last_on() -> None:
    first = after_failure(None, 100.0, 7, others=5, retry_s=60.0)
    second = after_failure(first, 110.0, 8, others=6, retry_s=60.0)
    assert (second.most, second.until, second.consumer) == (5, 170.0, 8)


@given(
    readers=st.lists(st.integers(1, 6), min_size=1, max_size=6),
    most=st.integers(0, 8),
    max_consumers=st.integers(1, 8),
    min_consumers=st.integers(1, 8),
    pins=st.dictionaries(st.integers(0, 5), st.integers(1, 8), max_size=4),
)
def test_a_limit_takes_no_reader_away_and_always_leaves_a_problem(
    readers: list[int], most: int, max_consumers: int, min_consumers: int, pins: dict[int, int]
) -> None:
    settings = SETTINGS.model_copy(
        update={
            "max_consumers": max_consumers,
            "min_consumers": min(min_consumers, max_consumers),
            "pinned": {f"orders-{number}": min(consumer, max_consumers) for number, consumer in pins.items()},
        }
    )
    sizes = {partition: Size(10.0) for partition in orders(6, 10.0)}
    current = Assignment({TopicPartition("orders", number): consumer for number, consumer in enumerate(readers)})
    situation = Situation(
        triggers=(Trigger("because", frozenset()),),
        sizes=sizes,
        highest=sizes,
        measured_at=0.0,
        current=current,
        gone={},
        named=sizes.keys(),
        missing=frozenset(),
        limit=after_failure(None, 0.0, 9, others=most, retry_s=60.0),
    )
    question = pose(situation, settings)
    allowed = len(sizes) if question.problem.max_consumers is None else question.problem.max_consumers
    assert allowed >= min(len(current.consumers), max_consumers)
    assert allowed <= max_consumers or question.problem.max_consumers is None
    if question.limit is not None:
        assert allowed == max(1, most, len(current.consumers | set(settings.pins.values()))) < max_consumers
