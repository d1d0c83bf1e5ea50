"""Consumers that began with another image, template or settings than consumers begin with now are replaced."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from controller.decide.decider import ROLLOUT
from controller.settings import ControllerSettings
from domain.assignment import ConsumerId
from domain.messages import ControlAction, Decision
from domain.partitions import TopicPartition
from tests.controller.world import World
from tests.examples import examples

SETTINGS = ControllerSettings(
    consumer_capacity=100.0, packing_capacity=80.0, interval_s=20.0, scale_down_window_s=20.0, ready_timeout_s=20.0
)
ORDERS = {TopicPartition("orders", number): 30.0 for number in range(6)}
OLD, NEW, BROKEN = "old", "new", "broken"


def a_group(**changes: object) -> World:
    """Three consumers, with two partitions each."""
    world = World(SETTINGS.model_copy(update=changes), 1)
    world.revision, world.broken = OLD, {BROKEN}
    world.began_with = dict.fromkeys(world.consumers, OLD)
    world.speeds = dict(ORDERS)
    for _ in range(60):
        world.step()
    assert world.converged
    assert len(world.consumers) == 3 + SETTINGS.model_copy(update=changes).spare_consumers
    return world


def steps(world: World, seconds: float) -> Iterator[None]:
    for _ in range(int(seconds / 0.5)):
        world.step()
        yield


def run(world: World, seconds: float) -> None:
    for _ in steps(world, seconds):
        pass


def revisions(world: World) -> set[str | None]:
    return {world.began_with[consumer] for consumer in world.consumers}


def read_by(world: World, revision: str) -> set[TopicPartition]:
    return {p for n, consumer in world.consumers.items() if world.began_with[n] == revision for p in consumer.held}


def replacements(world: World) -> list[Decision]:
    return [decision for decision in world.decisions if decision.engine == ROLLOUT]


def all_there_were(world: World) -> set[ConsumerId]:
    return {consumer for _, consumer in world.asked}


def test_each_is_replaced_by_one_that_has_all_that_it_had() -> None:
    world = a_group()
    before = {frozenset(consumer.held) for consumer in world.consumers.values()}
    world.revision = NEW
    run(world, 60)
    assert world.converged
    assert revisions(world) == {NEW}
    assert {frozenset(consumer.held) for consumer in world.consumers.values()} == before
    assert world.most_readers == 1
    assert len(replacements(world)) == 3


def test_one_at_a_time_and_the_next_once_that_one_is_gone() -> None:
    world = a_group()
    world.revision = NEW
    most = 0
    for _ in steps(world, 60):
        most = max(most, len(world.consumers))
        began_new = sum(world.began_with[consumer] == NEW for consumer in world.consumers)
        assert 3 <= len(world.consumers) <= 4
        assert len(replacements(world)) <= began_new + 1
    assert most == 4


def test_a_partition_is_read_where_it_was_until_the_new_consumer_is_ready() -> None:
    world = a_group()
    world.revision = BROKEN
    for _ in steps(world, 60):
        assert {p for consumer in world.consumers.values() for p in consumer.held} == ORDERS.keys()


def test_the_first_that_does_not_become_ready_stops_it() -> None:
    world = a_group()
    before = {number: set(consumer.held) for number, consumer in world.consumers.items()}
    world.revision = BROKEN
    run(world, 300)
    assert world.converged
    assert {number: set(consumer.held) for number, consumer in world.consumers.items()} == before
    assert len(replacements(world)) == 1
    standing = world.standing
    assert standing is not None
    assert standing.rollout is not None
    assert standing.rollout.failed in all_there_were(world) - before.keys()
    assert standing.rollout.outdated == tuple(sorted(before))


def test_a_new_controller_does_not_try_again_what_has_failed() -> None:
    world = a_group()
    world.revision = BROKEN
    run(world, 60)
    world.begin_controller()
    run(world, 120)
    assert len(replacements(world)) == 1


@pytest.mark.parametrize("mended", [NEW, OLD])
def test_another_revision_is_tried(mended: str) -> None:
    """The next one, or the one before again: what is of it already stays."""
    world = a_group()
    world.revision = BROKEN
    run(world, 60)
    before = set(world.consumers)
    world.revision = mended
    run(world, 90)
    assert revisions(world) == {mended}
    assert (set(world.consumers) == before) == (mended == OLD)


def test_an_operator_may_have_it_tried_again() -> None:
    world = a_group()
    world.revision = BROKEN
    run(world, 60)
    world.broken.clear()  # whatever it lacked is there now
    run(world, 60)
    assert OLD in revisions(world)
    world.ask(ControlAction.RESUME_ROLLOUT)
    run(world, 90)
    assert revisions(world) == {BROKEN}


@pytest.mark.parametrize(
    ("pause", "resume"),
    [(ControlAction.PAUSE_ROLLOUT, ControlAction.RESUME_ROLLOUT), (ControlAction.PAUSE, ControlAction.RESUME)],
)
def test_a_pause_holds_it_back_over_a_change_of_controllers(pause: ControlAction, resume: ControlAction) -> None:
    world = a_group()
    world.ask(pause)
    world.revision = NEW
    run(world, 30)
    world.begin_controller()
    run(world, 30)
    assert revisions(world) == {OLD}
    world.ask(resume)
    run(world, 60)
    assert revisions(world) == {NEW}


def test_while_it_is_paused_the_group_grows_all_the_same() -> None:
    world = a_group()
    world.ask(ControlAction.PAUSE_ROLLOUT)
    world.revision = NEW
    world.speeds = dict.fromkeys(ORDERS, 60.0)
    run(world, 60)
    assert world.converged
    assert revisions(world) == {OLD, NEW}
    assert not replacements(world)


@pytest.mark.slow(2)
def test_the_migration_budget_is_kept() -> None:
    """A full consumer is an Rscore of 0.6: one in each window."""
    world = a_group(migration_budget=0.7, migration_window_s=100.0)
    run(world, 100)
    world.revision = NEW
    run(world, 90)
    assert len(replacements(world)) == 1
    run(world, 220)
    assert revisions(world) == {NEW}
    made = [decision.decided_at for decision in replacements(world)]
    assert min(after - before for before, after in pairwise(made)) >= 100.0


def test_a_spare_goes_first() -> None:
    """It has nothing to lose."""
    world = a_group(spare_consumers=1)
    (spare,) = (number for number, consumer in world.consumers.items() if not consumer.held)
    world.revision = NEW
    while NEW not in revisions(world):
        world.step()
    assert not replacements(world)
    assert spare not in world.controller.group.alive
    run(world, 90)
    assert world.converged
    assert revisions(world) == {NEW}
    assert len(world.consumers) == 4


def test_a_partition_that_is_pinned_goes_back_to_its_consumer() -> None:
    world = a_group(pinned={"orders-0": 2})
    world.revision = NEW
    run(world, 200)
    assert world.converged
    assert revisions(world) == {NEW}
    assert TopicPartition("orders", 0) in world.consumers[2].held


def test_who_is_lost_meanwhile_is_replaced_at_once() -> None:
    world = a_group()
    world.revision = NEW
    while not replacements(world):
        world.step()
    world.kill(max(n for n in world.consumers if world.began_with[n] == OLD))
    run(world, 90)
    assert world.converged
    assert revisions(world) == {NEW}


def test_one_that_ends_as_soon_as_it_reads_stops_it() -> None:
    world = a_group()
    world.revision = NEW
    while not read_by(world, NEW):
        world.step()
    world.kill(next(n for n in world.consumers if world.began_with[n] == NEW))
    run(world, 120)
    assert world.converged
    assert world.standing is not None
    assert world.standing.rollout is not None
    assert world.standing.rollout.failed is not None
    assert OLD in revisions(world)


@pytest.mark.parametrize("seed", range(examples(10)))
def test_whatever_is_lost_late_or_doubled_it_comes_to_its_end_with_one_reader(seed: int) -> None:
    world = World(SETTINGS, seed, chaos=0.05)
    world.revision, world.speeds = OLD, dict(ORDERS)
    run(world, 60)
    for revision in (NEW, OLD, NEW):
        world.revision = revision
        run(world, 20)
    for _ in range(5):
        world.ask(ControlAction.RESUME_ROLLOUT)  # chaos may have kept one from being ready in time
        world.settle(200)
        if revisions(world) == {NEW}:
            break
    assert revisions(world) == {NEW}
    assert world.most_readers == 1
