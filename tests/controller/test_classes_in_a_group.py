"""Consumers of more than one size: which is created of which class, and what becomes of that."""

from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.decide.decider import ROLLOUT
from controller.settings import ControllerSettings
from domain.consumer_class import ConsumerClass, class_names
from domain.messages import ControlAction, Decision, DecisionKind, Restraint
from domain.partitions import TopicPartition
from tests.controller.world import World
from tests.examples import examples

LARGE = ConsumerClass("large", 400.0, 3.0)
SMALL = ConsumerClass("small", 50.0, 0.6)
SETTINGS = ControllerSettings(
    consumer_capacity=100.0,
    packing_capacity=80.0,
    interval_s=8.0,
    least_interval_s=2.0,
    heartbeat_timeout_s=15.0,
    ready_timeout_s=20.0,
    creation_retry_s=30.0,
    scale_down_window_s=12.0,
    rscore_tolerance=0.0,
    max_consumers=5,
)
WITH_CLASSES = SETTINGS.with_classes([LARGE, SMALL])


def p(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


def a_group(speeds: dict[int, float], settings: ControllerSettings = WITH_CLASSES) -> World:
    world = World(settings, 1)
    world.speeds = {p(number): speed for number, speed in speeds.items()}
    world.settle(80)
    return world


def go_on(world: World, speeds: dict[int, float], seconds: float = 60.0) -> None:
    world.speeds = {p(number): speed for number, speed in speeds.items()}
    for _ in range(int(seconds / 0.5)):
        world.step()


def alive(world: World) -> dict[int, str]:
    """The class of each consumer that there is."""
    return {number: world.class_names[number] for number in sorted(world.consumers)}


def classes(world: World) -> list[str]:
    return sorted(alive(world).values())


def carried_out(world: World) -> list[Decision]:
    return [decision for decision in world.decisions if decision.carried_out]


def test_each_partition_is_read_by_a_consumer_of_a_class_that_can() -> None:
    world = a_group({0: 200.0, 1: 60.0, 2: 20.0})
    assert classes(world) == ["large"]
    world = a_group({0: 150.0, 1: 70.0, 2: 70.0, 3: 70.0, 4: 70.0})
    assert "large" in classes(world)
    assert carried_out(world)[-1].shortfall is None
    assert carried_out(world)[-1].saturated == ()


def test_a_partition_that_outgrows_its_consumer_gets_a_larger_one() -> None:
    world = a_group({0: 70.0})
    assert classes(world) == ["ordinary"]
    go_on(world, {0: 130.0})
    assert world.converged
    assert classes(world) == ["large"]
    forced = next(decision for decision in carried_out(world) if decision.classes == {"large": (2,)})
    assert forced.grounds is DecisionKind.FORCED
    assert "consumer 1 has 130 bytes/s to read, above its capacity of 100" in forced.triggers
    assert forced.assignment[0].reason == "it is faster than its consumer, and gets a larger one"
    assert (forced.price_before, forced.plan.price) == (1.0, 3.0)


def test_one_that_no_class_reads_has_one_of_the_largest_and_is_told_of() -> None:
    world = a_group({0: 500.0, 1: 30.0})
    assert classes(world) == ["large", "small"]
    assert [each.speed for each in world.decisions[-1].saturated] == [500.0]
    go_on(world, {0: 500.0, 1: 30.0}, 20.0)
    assert world.decisions[-1].triggers == ("8 s have passed since the last decision",)


def test_what_costs_less_waits_for_the_window_though_it_takes_more_consumers() -> None:
    world = a_group({0: 130.0, 1: 30.0, 2: 30.0})
    assert classes(world) == ["large"]
    go_on(world, {0: 40.0, 1: 30.0, 2: 30.0}, 9.0)
    assert classes(world) == ["large"]
    go_on(world, {0: 40.0, 1: 30.0, 2: 30.0})
    plan = next(decision for decision in carried_out(world) if decision.shrinks)
    assert plan.grounds is DecisionKind.VOLUNTARY
    assert plan.plan.consumers > plan.found
    assert plan.plan.cost < 3.0
    assert "large" not in classes(world)


@pytest.mark.parametrize("asked", [False, True], ids=["by itself", "asked for"])
def test_what_costs_less_is_not_done_on_missing_data(asked: bool) -> None:
    world = a_group({0: 130.0, 1: 30.0, 2: 30.0})
    world.unknown = frozenset({p(7)})
    go_on(world, {0: 40.0, 1: 30.0, 2: 30.0}, 6.0)
    if asked:
        world.ask(ControlAction.REPLAN)
    go_on(world, {0: 40.0, 1: 30.0, 2: 30.0})
    assert classes(world) == ["large"]
    assert {each.grounds for each in world.decisions} >= ({DecisionKind.MANUAL} if asked else set())
    assert Restraint.MISSING_DATA in {each.by for each in world.decisions[-1].held_back}


def test_a_forced_plan_gives_no_consumer_up_for_a_cheaper_one() -> None:
    """It is made for the speeds of a moment."""
    world = a_group({0: 390.0, 1: 75.0})
    assert classes(world) == ["large", "ordinary"]
    go_on(world, {0: 60.0, 1: 75.0, 2: 60.0}, 6.0)
    forced = carried_out(world)[-1]
    assert forced.grounds is DecisionKind.FORCED
    assert "large" in alive(world).values()
    assert forced.plan.cost >= 4.0


def test_consumers_keep_their_class_with_the_next_controller() -> None:
    world = a_group({0: 150.0, 1: 75.0, 2: 30.0})
    before, held = alive(world), {number: frozenset(each.held) for number, each in world.consumers.items()}
    world.begin_controller()
    decided = len(world.decisions)
    go_on(world, {0: 150.0, 1: 75.0, 2: 30.0})
    assert world.converged
    assert alive(world) == before
    assert {number: frozenset(each.held) for number, each in world.consumers.items()} == held
    assert not any(decision.carried_out for decision in world.decisions[decided:])
    assert world.standing is not None
    assert class_names(world.standing.classes) == {n: name for n, name in before.items() if name != "ordinary"}


def test_a_class_that_the_settings_do_not_name_any_more_counts_as_ordinary() -> None:
    world = a_group({0: 150.0, 1: 75.0})
    world.settings = SETTINGS
    world.begin_controller()
    go_on(world, {0: 75.0, 1: 75.0})
    assert world.converged
    assert all(decision.classes == {} for decision in world.decisions[-1:])


def test_spares_are_ordinary_and_are_not_taken_for_others() -> None:
    world = a_group({0: 75.0}, WITH_CLASSES.model_copy(update={"spare_consumers": 1}))
    assert classes(world) == ["ordinary", "ordinary"]
    go_on(world, {0: 150.0})
    assert classes(world) == ["large", "ordinary"]
    go_on(world, {0: 60.0})
    assert classes(world) == ["ordinary", "ordinary"]


@pytest.mark.parametrize("spares", [0, 1])
def test_a_consumer_that_is_replaced_gets_one_of_its_class(spares: int) -> None:
    world = a_group({0: 150.0, 1: 75.0, 2: 30.0}, WITH_CLASSES.model_copy(update={"spare_consumers": spares}))
    before, decided = classes(world), len(carried_out(world))
    world.began_with = dict.fromkeys(world.consumers, "old")
    world.revision = "new"
    go_on(world, {0: 150.0, 1: 75.0, 2: 30.0}, 120.0)
    assert world.converged
    assert {decision.engine for decision in carried_out(world)[decided:]} == {ROLLOUT}
    assert {world.began_with[number] for number in world.consumers} == {"new"}
    assert classes(world) == before


def test_a_number_that_was_given_to_a_consumer_of_another_class_meanwhile_is_not_taken_for_the_planned_one() -> None:
    world = a_group({0: 70.0})
    world.solver_s = 4.0
    go_on(world, {0: 130.0}, 2.0)
    assert world.questions
    go_on(world, {0: 130.0, 1: 90.0}, 1.0)
    assert alive(world) == {1: "ordinary", 2: "ordinary"}
    decided = len(world.decisions)
    while len(world.decisions) == decided:
        go_on(world, {0: 130.0, 1: 90.0}, 0.5)
    answer = world.decisions[-1]
    assert answer.carried_out
    assert answer.classes == {"large": (3,)}
    assert {entry.partition: entry.consumer for entry in answer.assignment} == {0: 3, 1: 2}


@pytest.mark.parametrize("refuses", [True, False], ids=["refused", "never ready"])
def test_after_one_of_a_class_could_not_be_created_none_is_asked_for_until_it_is_tried_again(refuses: bool) -> None:
    world = a_group({0: 70.0})
    world.room, world.refuses = 1, refuses
    go_on(world, {0: 130.0}, 28.0 if refuses else 45.0)
    asked = [number for at, number in world.asked if world.class_names[number] == "large"]
    assert len(asked) == 1
    world.room = 9
    go_on(world, {0: 130.0}, 90.0)
    assert world.converged
    assert classes(world) == ["large"]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["load", "load", "controller", "kill", "pause", "no room"]),
        st.lists(st.sampled_from([0.0, 20.0, 45.0, 70.0, 130.0, 350.0, 500.0]), min_size=3, max_size=3),
    ),
    min_size=1,
    max_size=6,
)


@given(happens=STEPS, seed=st.integers(0, 1000), chaos=st.sampled_from([0.0, 0.15]))
@settings(max_examples=examples(20), deadline=None)
def test_whatever_happens_plans_are_right_about_classes_and_the_group_converges(
    happens: list[tuple[str, list[float]]], seed: int, chaos: float
) -> None:
    world = World(WITH_CLASSES, seed, chaos)
    for what, speeds in happens:
        world.speeds = {p(number): speed for number, speed in enumerate(speeds)}
        world.room = 2 if what == "no room" else 99
        for turn in range(24):
            world.step()
            if turn == 8 and what == "controller":
                world.begin_controller()
            if turn == 8 and what == "kill" and world.consumers:
                world.kill(min(world.consumers))
            for decision in carried_out(world)[-1:]:
                require_true(world, decision)
    world.room = 99
    world.settle()
    for decision in world.decisions[-3:]:
        assert decision.plan.price is not None
    last = carried_out(world)[-1]
    planned = class_names(last.classes)
    for consumer in {entry.consumer for entry in last.assignment}:
        assert planned.get(consumer, "ordinary") == world.class_names[consumer]


def require_true(world: World, decision: Decision) -> None:
    """What the plan that holds says of the classes of consumers that there are is what they are."""
    planned = class_names(decision.classes)
    for entry in decision.assignment:
        if entry.consumer in world.consumers and entry.consumer in world.controller.group:
            assert planned.get(entry.consumer, "ordinary") == world.class_names[entry.consumer]
    assert set(chain(*decision.classes.values())) <= {entry.consumer for entry in decision.assignment}
