"""Nothing stops a group that need not stop: what goes on whoever else is away, hangs, or has another clock."""

import pytest

from controller.decide.decider import BY_RULE, TRIES
from controller.decide.machine import State
from controller.settings import ControllerSettings
from domain.messages import ControlAction
from domain.partitions import TopicPartition
from solver import solve
from tests.controller.world import World

SETTINGS = ControllerSettings(
    consumer_capacity=100.0, packing_capacity=80.0, interval_s=20.0, heartbeat_timeout_s=15.0, scale_down_window_s=20.0
)


def orders(count: int, speed: float) -> dict[TopicPartition, float]:
    return {TopicPartition("orders", number): speed for number in range(count)}


def a_world(speeds: dict[TopicPartition, float], **changes: object) -> World:
    world = World(SETTINGS.model_copy(update=changes), 1)
    world.speeds = speeds
    run(world, 15)
    assert world.converged
    return world


def a_large_world(settings: ControllerSettings, speeds: dict[TopicPartition, float]) -> World:
    """Larger than what can be solved by trying all plans."""
    world = World(settings, 1)
    world.solver = lambda problem: solve(problem, "mbfp")
    world.speeds = speeds
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


def decided(skew_s: float, consumers_skew_s: float = 0.0) -> list[dict[str, object]]:
    """All decisions of a group that grows, shrinks and loses a consumer, but for what is only shown of them."""
    world = World(SETTINGS, seed=7)
    world.monitor_skew_s = skew_s
    world.a_clock = lambda: (world.now + consumers_skew_s, 1.0)
    for speeds in (orders(6, 25.0), orders(8, 30.0), orders(8, 8.0)):
        world.speeds = speeds
        run(world, 60)
    world.kill(min(world.consumers))
    run(world, 30)
    return [made.model_dump(exclude={"measured_at", "solve_s"}) for made in world.decisions]


@pytest.mark.slow(2)
def test_an_hour_of_anybodys_clock_changes_no_decision() -> None:
    """Hole 2: neither what is decided, nor when, nor why."""
    expected = decided(0.0)
    assert sum(bool(made["carried_out"]) for made in expected) >= 3
    assert decided(-3600.0, consumers_skew_s=3600.0) == expected
    assert decided(3600.0, consumers_skew_s=-3600.0) == expected


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


def test_a_consumer_that_does_not_obey_stops_nobody_else() -> None:
    """Hole 5: no decision for 70 minutes, a new topic unread, and no plan for an operator."""
    world = a_world(orders(6, 25.0))
    world.consumers[1].busy = True
    world.speeds |= {TopicPartition("orders", 0): 60.0}
    run(world, 20)
    assert world.controller.state is State.MANAGE
    world.speeds |= {TopicPartition("clicks", number): 10.0 for number in range(4)}
    world.speeds |= {TopicPartition("orders", 4): 60.0}
    made = len(world.decisions)
    run(world, 40)
    world.ask(ControlAction.REPLAN)
    world.step()
    assert len(world.decisions) > made + 1
    loads = {n: sum(world.speeds[p] for p in c.held) for n, c in world.consumers.items() if not c.busy}
    assert max(loads.values()) <= 100.0
    assert read(world) == world.speeds.keys()


def test_a_consumer_that_does_not_obey_within_its_time_is_given_up() -> None:
    """Hole 5: it is sealed, as one that is silent."""
    world = a_world(orders(6, 25.0), obey_timeout_s=60.0)
    disobedient = world.consumers[1]
    disobedient.busy = True
    world.speeds |= {TopicPartition("orders", 0): 60.0}
    run(world, 55)
    assert world.consumers[1] is disobedient
    run(world, 40)
    assert disobedient not in world.consumers.values()
    assert set(world.sealed) == {disobedient.writer}
    assert world.converged
    assert world.most_readers == 1


def test_a_consumer_that_has_nothing_to_obey_may_write_for_as_long_as_it_likes() -> None:
    """Hole 5: only who was told something can disobey."""
    world = a_world(orders(6, 25.0), obey_timeout_s=60.0)
    before = world.consumers[1]
    before.busy = True
    run(world, 200)
    assert world.consumers[1] is before


def test_what_a_dead_consumer_read_waits_for_no_solver() -> None:
    """Hole 5: nor for the plan that is being carried out."""
    world = a_world(orders(6, 10.0))
    world.speeds = orders(6, 25.0)
    run(world, 20)
    assert len(world.consumers) == 2
    world.speeds = orders(6, 8.0)
    world.solver_s = 1e9
    run(world, 30)
    assert world.controller.state is State.REASSIGN
    world.kill(1)
    run(world, 4)
    assert read(world) == world.speeds.keys()


@pytest.mark.slow(2)
def test_deaths_that_come_faster_than_answers_leave_nothing_unread_for_long() -> None:
    """The bar of `bench.scale`, in a small group: a solver of 12 s, and a death every 6 s for two minutes."""
    world = a_large_world(SETTINGS, orders(60, 12.0))
    run(world, 30)
    world.solver_s = 12.0
    read_at = dict.fromkeys(world.speeds, world.now)
    for step in range(240):
        if step % 12 == 0:
            world.kill(world.random.choice(sorted(world.consumers)))
        world.step()
        read_at |= dict.fromkeys(read(world), world.now)
        assert world.now - min(read_at.values()) <= 5.0
    assert any(decision.engine == "mbfp" for decision in world.decisions[-8:]), "the solver's answers count"


def test_a_hand_over_goes_on_while_the_solver_is_asked() -> None:
    """Hole 5: a partition that was let go stayed unread until the solver had answered about something else."""
    world = a_world(orders(4, 20.0))
    world.speeds = orders(4, 30.0)
    while world.controller.state is not State.MANAGE:
        world.step(0.1)
    world.solver_s = 1e9
    world.ask(ControlAction.REPLAN)
    assert str(world.controller.state) == State.REASSIGN.value
    run(world, 5)
    assert len([consumer for consumer in world.consumers.values() if consumer.held]) == 2
    assert read(world) == world.speeds.keys()


def test_an_answer_about_a_group_that_has_changed_is_mended() -> None:
    """Hole 5: it was thrown away; with a death every ten seconds and a solver of thirteen nothing was decided."""
    world = a_world(orders(8, 30.0))
    world.solver_s = 13.0
    for _ in range(6):
        world.speeds = {p: world.random.uniform(25.0, 35.0) for p in world.speeds}
        world.kill(min(n for n, c in world.consumers.items() if c.held))
        run(world, 10)
        assert read(world) == world.speeds.keys()
    carried_out = [d for d in world.decisions[2:] if d.carried_out]
    assert len(carried_out) >= 6
    run(world, 60)
    assert world.converged
    assert world.most_readers == 1


@pytest.mark.parametrize("how", ["kill", "restart"])
def test_without_a_monitor_what_a_dead_consumer_read_gets_a_reader(how: str) -> None:
    """Hole 6: it stayed unread for 71 minutes."""
    world = a_world(orders(6, 25.0))
    run(world, 40, monitor=False)
    world.kill(1) if how == "kill" else world.restart(1)
    run(world, 15, monitor=False)
    assert read(world) == world.speeds.keys()
    assert max(sum(world.speeds[p] for p in c.held) for c in world.consumers.values()) <= 80.0
    consumers = len(world.consumers)
    world.speeds = orders(6, 1.0)
    run(world, 200, monitor=False)
    assert len(world.consumers) == consumers, "nothing is given up on missing data"


def test_without_a_monitor_the_next_controller_goes_by_what_was_told_last() -> None:
    """Hole 6: or takes all partitions for equal, where nothing is known."""
    for told in (True, False):
        world = a_world(orders(6, 25.0))
        if not told:
            world.told = None
        world.begin_controller()
        run(world, 10, monitor=False)
        world.kill(1)
        run(world, 15, monitor=False)
        assert read(world) == world.speeds.keys()


def test_where_numbers_run_out_all_is_read_by_those_that_can_be() -> None:
    """Hole 7: with more consumers hanging than there are spare numbers, the whole plan was held back."""
    world = a_large_world(SETTINGS.model_copy(update={"max_consumers": 11}), orders(11, 70.0))
    run(world, 10)
    assert len(world.consumers) == 11
    for number in range(1, 11):
        world.consumers[number].frozen = True
    run(world, 40)
    assert read(world) == world.speeds.keys()
    assert world.most_readers == 1


def test_a_pin_to_a_consumer_that_hangs_keeps_nothing_unread() -> None:
    """Hole 8: everything that was packed with it was unread for as long as it hung."""
    world = a_world(orders(6, 20.0), pinned={"orders-0": 2})
    hangs = world.consumers[2]
    assert TopicPartition("orders", 0) in hangs.held
    hangs.frozen = True
    run(world, 40)
    assert read(world) == world.speeds.keys()
    hangs.frozen = False
    run(world, 60)
    assert TopicPartition("orders", 0) in world.consumers[2].held
    assert read(world) == world.speeds.keys()
    assert world.most_readers == 1


def test_a_pin_to_one_consumer_too_many_keeps_nothing_unread() -> None:
    """While the group was paused, nobody got it, and each turn decided so."""
    pinned = TopicPartition("orders", 4)
    world = a_world(orders(4, 30.0), max_consumers=2, pinned={str(pinned): 3})
    world.ask(ControlAction.PAUSE)
    world.speeds = {**world.speeds, pinned: 1.0}
    run(world, 10)
    assert read(world) == world.speeds.keys()
    assert len(world.consumers) == 2
    world.ask(ControlAction.RESUME)
    world.settle(60)
    assert pinned in world.consumers[3].held


def test_a_pin_and_another_partition_share_the_room_for_one_consumer() -> None:
    """Each was given a new one, and the plan held back for one consumer too many, until the solver had answered."""
    pinned, other = TopicPartition("orders", 4), TopicPartition("orders", 5)
    world = a_world(orders(2, 70.0), max_consumers=3, pinned={str(pinned): 7})
    world.ask(ControlAction.PAUSE)
    world.speeds = {**world.speeds, pinned: 60.0, other: 50.0}
    run(world, 10)
    assert [decision.carried_out for decision in world.decisions if decision.engine == BY_RULE] == [True, True]
    assert read(world) == world.speeds.keys()
    assert pinned in world.consumers[7].held
    assert len(world.consumers) == 3


def test_what_is_held_and_not_measured_yet_weighs_what_it_did() -> None:
    """Hole 14: after a fail-over it weighed nothing, and its consumer was packed to 147 of 100."""
    world = a_world(orders(6, 25.0))
    world.begin_controller()
    world.speeds = {p: s for p, s in world.speeds.items() if p.partition < 3} | {TopicPartition("new", 0): 70.0}
    world.unknown = frozenset(p for p in orders(6, 0.0) if p.partition >= 3)
    run(world, 30)
    real = {**orders(6, 25.0), **world.speeds}
    assert max(sum(real[p] for p in c.held) for c in world.consumers.values()) <= 100.0


def test_a_consumer_with_partitions_that_never_were_measured_is_given_nothing_more() -> None:
    """Hole 14: where not even the last report had a size."""
    world = a_world(orders(6, 25.0))
    world.told = None
    world.begin_controller()
    world.speeds = {p: s for p, s in world.speeds.items() if p.partition % 3 == 0}
    world.speeds |= {TopicPartition("new", 0): 40.0, TopicPartition("new", 1): 30.0}
    world.unknown = frozenset(orders(6, 0.0).keys() - world.speeds.keys())
    run(world, 60)
    real = {**orders(6, 25.0), **world.speeds}
    assert read(world) == real.keys()
    assert max(sum(real[p] for p in c.held) for c in world.consumers.values()) <= 100.0


def test_a_process_that_restarts_late_has_the_time_of_a_new_one() -> None:
    """Hole 15: more than 90 s after its creation it was given up within a second."""
    world = a_world(orders(6, 25.0))
    run(world, SETTINGS.ready_timeout_s + 10)
    world.restart(1)
    again = world.consumers[1]
    again.has_spark = False
    run(world, 20)
    assert world.consumers[1] is again
    again.has_spark = True
    run(world, 1)
    run(world, SETTINGS.ready_timeout_s)
    assert read(world) >= world.speeds.keys()


class WithABadNumber(World):
    """No consumer 2 can be created."""

    def create(self, consumer: int) -> None:
        if consumer == 2:
            self.room = len(self.consumers)
        super().create(consumer)
        self.room = 100


def test_a_number_that_can_never_be_created_is_left_for_another() -> None:
    """Hole 26: it was tried for ever, and the group stayed one short."""
    world = WithABadNumber(SETTINGS.model_copy(update={"creation_retry_s": 5.0}), 1)
    world.speeds = orders(3, 70.0)
    run(world, 100)
    assert sorted(world.consumers) == [1, 3, 4]
    assert [number for _, number in world.asked].count(2) == TRIES
    assert world.converged
