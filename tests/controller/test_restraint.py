"""The group does not flap, does not starve, and changes nothing without need: the whole controller, over time."""

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.settings import ControllerSettings
from domain.messages import ControlAction, Decision, DecisionKind, Restraint
from domain.partitions import TopicPartition
from tests.controller.world import World
from tests.examples import examples

WINDOW_S = 60.0
SETTINGS = ControllerSettings(
    consumer_capacity=100.0,
    packing_capacity=80.0,
    interval_s=10.0,
    least_interval_s=2.0,
    heartbeat_timeout_s=15.0,
    scale_down_window_s=WINDOW_S,
)
STEP_S, CALM_STEP_S = 1.0, 2.0
"""Of the world; and where nothing is to happen for long, in which as many decisions are made."""


def orders(*speeds: float) -> dict[TopicPartition, float]:
    return {TopicPartition("orders", number): speed for number, speed in enumerate(speeds)}


def a_world(load: dict[TopicPartition, float], changes: dict[str, object] | None = None) -> World:
    world = World(SETTINGS.model_copy(update=changes or {}), seed=1)
    world.speeds = load
    return world


def run(
    world: World,
    seconds: float,
    load: Callable[[float], dict[TopicPartition, float]] | None = None,
    step_s: float = STEP_S,
) -> None:
    began = world.now
    while world.now < began + seconds:
        if load is not None:
            world.speeds = load(world.now - began)
        world.step(step_s)


def scale_downs(world: World) -> list[float]:
    """When plans with fewer consumers than had partitions were carried out."""
    return [
        decision.decided_at
        for decision in world.decisions
        if decision.carried_out
        and decision.plan.consumers < len({e.previous for e in decision.assignment if e.previous is not None})
    ]


def migrations(decision: Decision) -> int:
    return sum(entry.previous not in (None, entry.consumer) for entry in decision.assignment)


def held_back_by(world: World) -> set[Restraint]:
    return {each.by for decision in world.decisions for each in decision.held_back}


@pytest.mark.slow(2)
@settings(max_examples=examples(25), deadline=None)
@given(
    period_s=st.floats(4, 400),
    low=st.floats(0, 30),
    high=st.floats(20, 90),
    phases=st.lists(st.floats(0, 1), min_size=4, max_size=4),
)
def test_under_a_sawtooth_there_is_at_most_one_scale_down_in_a_window(
    period_s: float, low: float, high: float, phases: list[float]
) -> None:
    def load(at: float) -> dict[TopicPartition, float]:
        return orders(*(low + (high - low) * math.modf(at / period_s + phase)[0] for phase in phases))

    world = a_world(load(0.0))
    run(world, 600, load)
    downs = scale_downs(world)
    assert all(later - earlier >= WINDOW_S for earlier, later in pairwise(downs))
    assert world.most_readers == 1


def test_a_load_that_falls_slowly_is_followed_once_in_a_window() -> None:
    world = a_world(orders(60, 60, 60, 60, 60))
    run(world, 30)
    run(world, 400, lambda at: orders(*(max(5.0, 60.0 - 0.25 * at) for _ in range(5))))
    downs = scale_downs(world)
    assert len(downs) > 1
    assert all(later - earlier >= WINDOW_S for earlier, later in pairwise(downs))


@pytest.mark.parametrize("forecast", [False, True])
def test_who_looks_ahead_follows_a_steep_fall_once_and_when_it_is_over(forecast: bool) -> None:
    world = a_world(orders(60, 60, 60, 60, 60), {"forecast": forecast, "scale_down_window_s": 2.0})
    run(world, 30)
    over_at = world.now + 30
    run(world, 90, lambda at: orders(*(max(6.0, 60.0 - 1.8 * at) for _ in range(5))))
    downs = scale_downs(world)
    assert (len(downs) == 1) is (downs[0] >= over_at) is forecast
    assert world.decisions[-1].plan.consumers == 1
    told = [each.why for decision in world.decisions for each in decision.held_back]
    assert any("the load is falling" in why for why in told) is forecast


def test_a_controller_that_begins_gives_no_consumer_up_before_it_has_seen_a_whole_window() -> None:
    world = a_world(orders(60, 60))
    run(world, 2 * WINDOW_S)
    world.begin_controller()
    began = world.now
    world.speeds = orders(30, 30)
    run(world, 2 * WINDOW_S)
    (down,) = scale_downs(world)
    assert down - began >= WINDOW_S


@settings(max_examples=examples(15), deadline=None)
@given(speeds=st.lists(st.floats(0, 120), min_size=1, max_size=6))
def test_under_a_steady_load_nothing_moves(speeds: list[float]) -> None:
    world = a_world(orders(*speeds))
    run(world, 30)
    settled = len(world.decisions)
    run(world, 600, step_s=CALM_STEP_S)
    assert len(world.decisions) > settled
    assert sum(map(migrations, world.decisions[settled:])) == 0


@settings(max_examples=examples(15), deadline=None)
@given(before=st.lists(st.floats(30, 90), min_size=3, max_size=5), after=st.floats(0, 10))
def test_a_load_that_has_fallen_for_good_is_followed_within_two_windows(before: list[float], after: float) -> None:
    world = a_world(orders(*before))
    run(world, 30)
    world.speeds = orders(*(after for _ in before))
    run(world, 2 * WINDOW_S + 4 * SETTINGS.interval_s)
    assert len(world.consumers) == 1


@settings(max_examples=examples(15), deadline=None)
@given(unknown=st.sets(st.integers(0, 3), min_size=1), never_measured=st.booleans(), after=st.floats(0, 10))
def test_no_consumer_is_given_up_while_a_speed_is_not_known(
    unknown: set[int], never_measured: bool, after: float
) -> None:
    world = a_world(orders(60, 60, 60, 60))
    run(world, 30)
    assert len(world.consumers) == 4
    if never_measured:
        world.unknown = frozenset({TopicPartition("clicks", 0)})
        world.speeds = orders(after, after, after, after)
    else:
        world.unknown = frozenset(TopicPartition("orders", number) for number in unknown)
        world.speeds = {p: after for p in orders(0, 0, 0, 0) if p not in world.unknown}
    run(world, 4 * WINDOW_S, step_s=CALM_STEP_S)
    assert len(world.consumers) == 4
    assert scale_downs(world) == []


def test_growing_waits_for_nothing() -> None:
    always = {"cron": "* * * * *", "duration_s": 86_400.0}
    world = World(
        ControllerSettings.model_validate(SETTINGS.model_dump() | {"quiet_periods": [always], "migration_budget": 0.0}),
        seed=1,
    )
    world.speeds = orders(20, 20, 20, 20)
    run(world, 20)
    world.speeds = orders(30, 30, 30, 30)
    run(world, 10)
    assert len(world.consumers) == 2


@settings(max_examples=examples(15), deadline=None)
@given(
    budget=st.floats(0, 1.5),
    loads=st.lists(st.lists(st.floats(0, 60), min_size=4, max_size=4), min_size=2, max_size=6),
)
def test_plans_that_need_not_be_stay_within_the_migration_budget(budget: float, loads: list[list[float]]) -> None:
    window_s = 200.0
    world = a_world(
        orders(*loads[0]), {"migration_budget": budget, "migration_window_s": window_s, "scale_down_window_s": 10.0}
    )
    for number, speeds in enumerate(loads):
        world.speeds = orders(*speeds)
        run(world, 45)
        if number % 2:
            world.begin_controller()
    made = [decision for decision in world.decisions if decision.carried_out]
    for place, decision in enumerate(made):
        if decision.grounds is DecisionKind.VOLUNTARY and decision.plan.rscore > 0:
            lately = [d for d in made[: place + 1] if d.decided_at > decision.decided_at - window_s]
            assert sum(d.plan.rscore for d in lately) <= budget + 1e-9


def test_a_plan_beyond_the_budget_is_held_back_and_says_so() -> None:
    world = a_world(orders(60, 60), {"migration_budget": 0.1})
    run(world, 20)
    world.speeds = orders(30, 30)
    run(world, 2 * WINDOW_S)
    assert len(world.consumers) == 2
    (held,) = world.decisions[-1].held_back
    assert held.by is Restraint.BUDGET
    assert "too small for it at any time" in held.why


def test_in_a_quiet_period_nothing_changes_that_can_stay() -> None:
    # The world begins 1,000 s after midnight.
    settings = ControllerSettings.model_validate(
        SETTINGS.model_dump() | {"quiet_periods": [{"cron": "0 0 * * *", "duration_s": 1400}]}
    )
    world = World(settings, seed=1)
    world.speeds = orders(60, 60)
    run(world, 20)
    world.speeds = orders(30, 30)
    run(world, 360)
    assert len(world.consumers) == 2
    assert world.decisions[-1].held_back[0].by is Restraint.QUIET
    run(world, 60)
    assert len(world.consumers) == 1


def test_a_schedule_has_its_consumers_at_once_and_they_go_after_it() -> None:
    # The world begins 1,000 s after midnight.
    schedule = {"cron": "20 0 * * *", "duration_s": 300, "min_consumers": 3}
    world = World(ControllerSettings.model_validate(SETTINGS.model_dump() | {"schedules": [schedule]}), seed=1)
    world.speeds = orders(10, 10, 10, 10)
    run(world, 195)
    assert len(world.consumers) == 1
    run(world, 15)
    assert len(world.consumers) == 3
    (grown,) = [decision for decision in world.decisions if decision.plan.consumers == 3 and decision.carried_out]
    assert grown.triggers == ("a schedule wants 3 consumers or more now, and 1 has partitions",)
    run(world, 280)
    assert len(world.consumers) == 3
    run(world, WINDOW_S)
    assert len(world.consumers) == 1


def test_a_schedule_of_more_consumers_than_partitions_is_content_with_one_each() -> None:
    always = {"cron": "* * * * *", "duration_s": 60, "min_consumers": 9}
    world = World(ControllerSettings.model_validate(SETTINGS.model_dump() | {"schedules": [always]}), seed=1)
    world.speeds = orders(10, 10)
    run(world, 60)
    assert len(world.consumers) == 2
    given_readers, grown, *later = world.decisions
    assert given_readers.carried_out
    assert grown.carried_out
    assert not any(decision.carried_out for decision in later)


def test_a_paused_controller_restores_what_a_dead_consumer_read_and_moves_nothing_else() -> None:
    world = a_world(orders(60, 60, 20))
    run(world, 20)
    world.ask(ControlAction.PAUSE)
    world.speeds = orders(60, 60, 50)
    overloaded, other = sorted(world.consumers, key=lambda n: -len(world.consumers[n].held))
    before = set(world.consumers[overloaded].held)
    run(world, 60)
    assert world.consumers[overloaded].held == before
    assert Restraint.PAUSED in held_back_by(world)
    world.kill(other)
    run(world, 20)
    assert world.consumers[overloaded].held == before
    assert sum(len(consumer.held) for consumer in world.consumers.values()) == 3
    world.ask(ControlAction.RESUME)
    run(world, 20)
    assert world.consumers[overloaded].held < before


def test_a_pause_outlives_the_controller() -> None:
    world = a_world(orders(60, 60))
    run(world, 20)
    world.ask(ControlAction.PAUSE)
    world.begin_controller()
    assert world.controller.paused
    world.ask(ControlAction.RESUME)
    world.begin_controller()
    assert not world.controller.paused


def test_a_pause_is_said_again_and_again() -> None:
    world = a_world(orders(10))
    world.ask(ControlAction.PAUSE)
    run(world, 10)
    world.history.clear()
    run(world, 10)
    assert world.paused


def test_an_operator_gets_a_plan_at_once_whatever_holds_it_back() -> None:
    world = a_world(orders(60, 60), {"interval_s": 3600.0, "migration_budget": 0.0})
    run(world, 20)
    world.ask(ControlAction.PAUSE)
    world.speeds = orders(30, 30)
    world.step(STEP_S)
    world.ask(ControlAction.REPLAN)
    assert world.decisions[-1].grounds is DecisionKind.MANUAL
    assert world.decisions[-1].carried_out
    run(world, 20)
    assert len(world.consumers) == 1
    made = len(world.decisions)
    run(world, 60)
    assert len(world.decisions) == made


def test_what_changed_nothing_is_not_considered_over_and_over() -> None:
    world = a_world(orders(90, 90, 90), {"max_consumers": 2, "interval_s": 30.0})
    run(world, 20)
    made = len(world.decisions)
    run(world, 120)
    assert len(world.decisions) - made <= 5


def test_a_partition_that_vanished_is_a_reason_to_consider() -> None:
    world = a_world(orders(60, 60), {"interval_s": 3600.0})
    run(world, 20)
    world.speeds, world.gone = orders(60), frozenset({TopicPartition("orders", 1)})
    run(world, 20)
    assert any("partition is gone: orders-1" in trigger for d in world.decisions for trigger in d.triggers)
