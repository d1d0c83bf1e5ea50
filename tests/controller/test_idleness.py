"""With `min_consumers = 0` nobody reads where there is nothing to read: the whole controller, over time."""

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from controller.decide.decider import ZERO
from controller.decide.idleness import Idleness
from controller.decide.machine import State
from controller.settings import ControllerSettings
from domain.messages import ControlAction, DecisionKind
from domain.partitions import TopicPartition
from domain.speeds import Lag, WriteSpeeds
from tests.controller.test_controller_faults import (
    BOUND_S,
    CALM_STEP_S,
    FAULTS,
    befall,
    go_on,
    require_converged,
    require_once,
)
from tests.controller.test_controller_faults import SETTINGS as OF_FAULTS
from tests.controller.world import World
from tests.examples import examples

IDLE_S = 60.0
SETTINGS = OF_FAULTS.model_copy(
    update={"min_consumers": 0, "idle_time_s": IDLE_S, "recovery_time_s": 0.0, "scale_down_window_s": 600.0}
)
STEPS_A_S = 2
PARTITIONS = [TopicPartition("orders", number) for number in range(4)]
SLOW, QUIET = dict.fromkeys(PARTITIONS, 20.0), dict.fromkeys(PARTITIONS, 0.0)


class IdleWorld(World):
    """Its monitor tells how far the commits are behind."""

    def write_speeds(self) -> WriteSpeeds:
        told = super().write_speeds()
        ends, commits = self.lake.produced, self.lake.commits
        known = [p for p in told.lags if p in commits or not ends[p]]
        behind = {p: max(0, ends[p] - (commits[p].offset if p in commits else 0)) for p in known}
        lags = {p: Lag(records, float(records), None) for p, records in behind.items()}
        return WriteSpeeds(told.measured_at, told.bytes_per_s, told.unknown, lags=lags, gone=told.gone)

    def write(self, seconds: float, speeds: dict[TopicPartition, float]) -> None:
        self.speeds = speeds
        go_on(self, int(seconds * STEPS_A_S))

    @property
    def read_to_the_end(self) -> bool:
        return all(set(self.lake.rows.get(p, ())) == set(range(end)) for p, end in self.lake.produced.items())

    @property
    def at_zero(self) -> bool:
        """Nobody is there, and all that was written was read."""
        content = self.controller.state is State.SENTINEL and not self.controller.desired
        return content and not self.consumers and self.read_to_the_end


def a_world(changes: dict[str, object] | None = None, seed: int = 1, chaos: float = 0.0) -> IdleWorld:
    return IdleWorld(ControllerSettings.model_validate(SETTINGS.model_dump() | (changes or {})), seed, chaos)


def idle(changes: dict[str, object] | None = None) -> IdleWorld:
    world = a_world(changes)
    world.write(30, SLOW)
    assert world.converged
    world.write(IDLE_S + 10, QUIET)
    return world


def test_nobody_reads_once_there_was_nothing_to_read_for_the_idle_time() -> None:
    world = a_world()
    world.write(30, SLOW)
    world.write(IDLE_S - 5, QUIET)
    assert world.converged
    world.write(15, QUIET)
    assert world.at_zero
    assert world.standing is not None
    assert world.standing.rests
    made = world.decisions[-1]
    assert (made.engine, made.carried_out, made.grounds) == (ZERO, True, DecisionKind.VOLUNTARY)
    assert made.triggers == ("nothing was written, and nothing was left to read, for 60 s",)
    assert (made.consumers_before, made.plan.consumers, made.assignment, made.shortfall) == (1, 0, (), None)
    decisions = len(world.decisions)
    world.write(10 * SETTINGS.interval_s, QUIET)
    assert world.at_zero
    assert len(world.decisions) == decisions


def test_the_first_growth_brings_a_consumer_that_reads_everything() -> None:
    world = idle()
    decisions, asked = len(world.decisions), len(world.asked)
    world.write(0.5, QUIET | {PARTITIONS[2]: 1.0})
    assert len(world.asked) == asked + 1
    woken = world.decisions[decisions]
    assert woken.triggers[0] == "nobody read, and there is something to read: orders-2"
    assert [entry.key for entry in woken.assignment] == PARTITIONS
    world.write(30, QUIET | {PARTITIONS[2]: 1.0})
    assert world.converged
    assert world.standing is not None
    assert not world.standing.rests


def test_what_is_left_to_read_wakes_a_group_and_keeps_it_awake() -> None:
    world = idle()
    world.lake.produced[PARTITIONS[0]] += 5  # and the speed that this was written at was never told
    world.write(0.5, QUIET)
    assert world.controller.desired
    world.write(30, QUIET)
    assert world.read_to_the_end
    world.consumers[1].frozen = True
    world.lake.produced[PARTITIONS[0]] += 5
    world.write(5, QUIET)
    assert world.controller.desired


def test_what_is_parked_keeps_no_idle_group_awake_and_each_trial_wakes_it_with_one_consumer() -> None:
    orders = [TopicPartition("orders", number) for number in range(2)]
    clicks = [TopicPartition("clicks", number) for number in range(2)]
    quiet = dict.fromkeys(orders + clicks, 0.0)
    world = a_world({"park_after_s": 10.0})
    world.lake.at_fault = {"orders"}
    world.write(60, dict.fromkeys(orders + clicks, 20.0))
    world.write(8 * IDLE_S, quiet)
    assert world.standing is not None
    assert [each.topic for each in world.standing.parked_at(world.now)] == ["orders"]
    assert (len(world.consumers), world.standing.rests) == (0, True)
    tried, born = world.standing.parked[0].times, world.born
    world.write(world.standing.parked[0].until - world.now + 30, quiet)
    assert (world.standing.parked[0].times, world.born) == (tried + 1, born + 1)
    world.lake.at_fault = set()
    world.ask(ControlAction.UNPARK, "orders")
    world.write(30, quiet)
    assert (world.standing.parked, world.lake.lost, world.lake.doubled) == ((), False, False)
    world.write(IDLE_S + 15, quiet)
    assert world.at_zero


@pytest.mark.parametrize("what", ["the lag is unknown", "the speed is unknown", "the monitor is away", "paused"])
def test_a_group_that_may_have_something_to_read_keeps_its_consumers(what: str) -> None:
    world = a_world()
    world.write(30, SLOW)
    world.speeds = dict(QUIET)
    if what == "the lag is unknown":
        world.lags_unknown = frozenset(PARTITIONS[:1])
    elif what == "the speed is unknown":
        del world.speeds[PARTITIONS[0]]
        world.unknown = frozenset(PARTITIONS[:1])
    elif what == "the monitor is away":
        go_on(world, int(IDLE_S))
        world.monitor_lives = False
    else:
        world.ask(ControlAction.PAUSE)
    go_on(world, int(3 * IDLE_S) * STEPS_A_S)
    assert world.controller.desired.keys() >= set(PARTITIONS)
    world.lags_unknown, world.unknown, world.monitor_lives, world.speeds = frozenset(), frozenset(), True, dict(QUIET)
    world.ask(ControlAction.RESUME)
    go_on(world, int(IDLE_S + 15) * STEPS_A_S)
    assert world.at_zero


def test_with_one_consumer_at_least_an_idle_group_keeps_it() -> None:
    assert idle({"min_consumers": 1}).converged


def test_a_schedule_brings_an_idle_group_its_consumers() -> None:
    # The world begins 1,000 s after midnight, and writes for 30 s.
    world = idle({"schedules": [{"cron": "20 0 * * *", "duration_s": 120, "min_consumers": 2}]})
    assert world.at_zero
    world.write(1_220 - (world.now - 86_400), QUIET)
    assert len(world.consumers) == 2
    world.write(180, QUIET)
    assert world.at_zero


def test_spares_wait_for_an_idle_group() -> None:
    world = idle({"spare_consumers": 1})
    assert not world.controller.desired
    assert len(world.consumers) == 1
    (spare,) = world.consumers
    world.write(0.5, SLOW)
    assert world.controller.desired == dict.fromkeys(PARTITIONS, spare)


def test_without_an_idle_time_only_a_group_that_has_nothing_to_read_rests() -> None:
    world = a_world({"idle_time_s": 0})
    world.write(60, SLOW)
    assert world.converged
    assert not any(decision.engine == ZERO for decision in world.decisions)
    world.write(10, QUIET)
    assert world.at_zero


def test_a_group_that_has_nothing_to_read_begins_with_nobody() -> None:
    world = a_world()
    world.write(2 * IDLE_S, QUIET)
    assert world.born == 0
    world.write(30, SLOW)
    assert world.converged


def test_a_new_controller_lets_an_idle_group_rest() -> None:
    world = idle()
    born = world.born
    world.begin_controller()
    world.write(2 * IDLE_S, QUIET)
    assert world.born == born
    assert world.at_zero


def test_an_operator_who_wants_a_plan_wakes_nobody() -> None:
    world = idle()
    world.ask(ControlAction.REPLAN)
    world.write(10, QUIET)
    assert world.at_zero
    assert (
        world.decisions[-1].reason
        == "keeping everything is the best plan: 0 consumers and an Rscore of 0.00 (objective 0.00)"
    )


def test_how_long_all_was_quiet_is_known_without_a_gap_only() -> None:
    first, second = PARTITIONS[:2]

    def told(at: float, *partitions: TopicPartition, gone: frozenset[TopicPartition] = frozenset()) -> WriteSpeeds:
        return WriteSpeeds(
            at, dict.fromkeys(partitions, 0.0), lags=dict.fromkeys(partitions, Lag(0, 0.0, 0.0)), gone=gone
        )

    idleness = Idleness(longest_gap_s=10)
    assert not idleness.lasted(0, 0)
    for at in (0.0, 8.0, 16.0):
        idleness.measured(at, told(at, first), {first})
    assert idleness.lasted(16, 16)
    assert not idleness.lasted(17, 26), "what was since the newest speeds is not known"
    assert idleness.lasted(16, 26)
    assert not idleness.lasted(0, 27)
    idleness.measured(27, told(27, first), {first})
    assert idleness.lasted(0, 27)
    assert not idleness.lasted(1, 27), "there was a gap"
    idleness.measured(30, told(30, first), {first, second})
    assert not idleness.lasted(0, 30), "the other is not known"
    idleness.measured(31, told(31, first, second), {first, second})
    idleness.measured(32, told(32, first, gone=frozenset({second})), {first})
    assert idleness.lasted(1, 32)
    assert idleness.quiet == {first}


@pytest.mark.explores
@pytest.mark.slow
@hypothesis_settings(max_examples=examples(60), deadline=None)
@given(
    seed=st.integers(0, 2**32),
    chaos=st.sampled_from([0.0, 0.1, 0.3]),
    solver_s=st.sampled_from([0.0, 3.0]),
    happenings=st.lists(
        st.tuples(st.one_of(FAULTS, st.sampled_from(["quiet", "some"])), st.integers(1, 200)), max_size=8
    ),
)
def test_whatever_happens_all_is_read_and_then_nobody_reads(
    seed: int, chaos: float, solver_s: float, happenings: list[tuple[str, int]]
) -> None:
    world = a_world(seed=seed, chaos=chaos)
    world.solver_s = solver_s
    world.speeds = dict(SLOW)
    for what, steps in happenings:
        if what in ("quiet", "some"):
            world.speeds = {p: 30.0 if what == "some" and world.random.random() < 0.3 else 0.0 for p in world.speeds}
        else:
            befall(world, what)
        go_on(world, steps)
    world.chaos, world.monitor_lives = 0.0, True
    world.wake()
    world.speeds = dict.fromkeys(world.speeds, 0.0)
    go_on(world, int((BOUND_S + IDLE_S) / CALM_STEP_S), CALM_STEP_S)
    for _ in range(int(BOUND_S) * STEPS_A_S):
        if world.at_zero:
            break
        world.step()
    assert world.at_zero
    require_once(world)
    world.speeds = dict.fromkeys(world.speeds, 20.0)
    require_converged(world, "though nobody read")
