"""Topics whose tables take nothing: nobody reads them, nothing is planned for them, and they are tried again."""

from collections.abc import Iterator

import pytest

from controller.decide.history import beginning
from controller.decide.machine import State
from controller.decide.parking import LONGEST_S, Parking
from controller.settings import ControllerSettings
from domain.messages import (
    ConsumerReport,
    ConsumerState,
    ControlAction,
    ControllerClaim,
    ControlRequest,
    Cycle,
    Order,
    PartitionRef,
    Read,
    Refusing,
    Standing,
)
from domain.partitions import TopicPartition
from tests.controller.world import World
from tests.examples import examples

ORDERS, CLICKS = ([TopicPartition(topic, number) for number in range(3)] for topic in ("orders", "clicks"))
SETTINGS = ControllerSettings(
    consumer_capacity=100.0, packing_capacity=80.0, interval_s=20.0, scale_down_window_s=20.0, park_after_s=10.0
)


def told(
    *, for_s: float | None = None, wrote: str | None = None, holds: tuple[str, ...] = ("orders",)
) -> ConsumerReport:
    """A report of a consumer that tries to write orders in vain, or has written."""
    reads = [
        Read(
            topic=topic,
            partition=0,
            stint=Order(1, 1),
            first_offset=0,
            last_offset=0,
            records=1,
            first_read_at=1.0,
            last_read_at=1.0,
        )
        for topic in ([] if wrote is None else [wrote])
    ]
    refusing = () if for_s is None else (Refusing(topic="orders", for_s=for_s, reason="another type"),)
    return ConsumerReport(
        consumer=1,
        incarnation="a",
        sequence=1,
        sent_at=1.0,
        state=ConsumerState.DEGRADED,
        partitions=tuple(PartitionRef(topic=topic, partition=0) for topic in holds),
        cycle=Cycle(bytes=1, records=1, fetch_s=1.0, write_s=1.0, reads=tuple(reads)) if reads else None,
        refusing=refusing,
    )


def pauses(parking: Parking, at: float, count: int) -> Iterator[float]:
    """How long a topic is parked that is refused on every trial."""
    parking.heard(at, told(for_s=10.0))
    for _ in range(count):
        (parked,) = parking.standing
        yield parked.until - at
        at = parked.until + 5.0
        parking.heard(at, told(for_s=1.0))


def test_a_topic_is_parked_once_its_table_has_refused_for_so_long() -> None:
    parking = Parking(10.0)
    parking.heard(100.0, told(for_s=9.9))
    assert parking.parked == frozenset()
    parking.heard(100.1, told(for_s=10.0))
    assert parking.parked == {"orders"}
    (parked,) = parking.standing
    assert (parked.reason, parked.since, parked.until, parked.times) == ("another type", 100.1, 120.1, 1)


def test_what_a_consumer_does_not_read_any_more_parks_nothing() -> None:
    parking = Parking(10.0)
    parking.heard(100.0, told(for_s=60.0, holds=("clicks",)))
    assert parking.standing == ()


def test_pauses_double_up_to_the_longest() -> None:
    found = list(pauses(Parking(10.0), 100.0, 12))
    assert found[:4] == [20.0, 40.0, 80.0, 160.0]
    assert found[-2:] == [LONGEST_S, LONGEST_S]


def test_on_trial_it_is_parked_at_the_first_refusal_but_not_for_one_of_before() -> None:
    parking = Parking(10.0)
    parking.heard(100.0, told(for_s=10.0))
    parking.heard(121.0, told(for_s=5.0))
    assert parking.on_trial == {"orders"}, "it was refused before the trial began"
    parking.heard(121.0, told(for_s=0.5))
    assert parking.parked == {"orders"}


def test_one_that_never_let_go_is_parked_again_after_the_limit() -> None:
    parking = Parking(10.0)
    parking.heard(100.0, told(for_s=10.0))
    parking.unpark(101.0, "orders")
    parking.heard(110.9, told(for_s=20.9))
    assert parking.parked == frozenset()
    parking.heard(111.0, told(for_s=21.0))
    assert parking.parked == {"orders"}


def test_once_it_was_written_nothing_is_remembered_of_it() -> None:
    parking = Parking(10.0)
    parking.heard(100.0, told(for_s=10.0))
    parking.heard(119.0, told(wrote="orders"))
    assert parking.parked == {"orders"}, "that was written before it was parked"
    parking.heard(121.0, told(wrote="clicks"))
    assert parking.on_trial == {"orders"}
    parking.heard(122.0, told(wrote="orders"))
    assert parking.standing == ()


def test_unparked_it_is_on_trial_at_once_and_pauses_begin_anew() -> None:
    parking = Parking(10.0)
    assert list(pauses(parking, 100.0, 3)) == [20.0, 40.0, 80.0]
    at = parking.standing[0].until - 100.0
    parking.unpark(at, "clicks")
    assert parking.parked == {"orders"}
    parking.unpark(at, "orders")
    assert parking.on_trial == {"orders"}
    parking.heard(at + 1.0, told(for_s=0.5))
    assert parking.standing[0].until == at + 21.0


def test_unparked_on_trial_its_refusals_of_before_count_for_nothing() -> None:
    parking = Parking(10.0)
    parking.heard(100.0, told(for_s=10.0))
    parking.pass_time(121.0)
    assert parking.on_trial == {"orders"}
    parking.unpark(122.0, "orders")
    parking.heard(123.0, told(for_s=2.5))
    assert parking.on_trial == {"orders"}, "its table refused before it was mended"
    parking.heard(132.0, told(for_s=11.5))
    assert parking.standing[0].until == 132.0 + 20.0, "pauses begin anew"


def test_the_next_controller_knows_what_is_parked_and_who_asked_for_it_meanwhile() -> None:
    parking = Parking(10.0)
    parking.heard(100.0, told(for_s=10.0))
    standing = Standing(began_at=0.0, counted_on=(), parked=parking.standing)
    claim = ControllerClaim(epoch=1, incarnation="a", sent_at=105.0, heard_to=3, standing=standing)
    of_another = ControlRequest(action=ControlAction.UNPARK, topic="clicks", sent_at=1.0)
    for meanwhile in ((), (of_another,)):
        begun = beginning([claim, *meanwhile], claim)
        after = Parking(10.0)
        after.inherit(begun.parked, 1_000.0 - begun.parked_told_at)  # by another clock
        after.pass_time(1_000.0)
        assert after.parked == {"orders"}
        after.pass_time(1_015.0)
        assert after.on_trial == {"orders"}
    asked = ControlRequest(action=ControlAction.UNPARK, topic="orders", sent_at=1.0)
    for begun in (beginning([claim, asked], claim), beginning([claim, asked])):
        after.inherit(begun.parked, 1_000.0 - begun.parked_told_at)
        after.pass_time(1_000.0)
        assert after.on_trial == {"orders"}


def a_world(orders: float = 25.0) -> World:
    """Two consumers, one of which has to be for orders alone."""
    world = World(SETTINGS, seed=1)
    world.speeds = {**dict.fromkeys(ORDERS, orders), **dict.fromkeys(CLICKS, 20.0)}
    run(world, 20)
    assert len(world.consumers) == 2
    return world


def run(world: World, seconds: float) -> None:
    for _ in range(int(seconds / 0.5)):
        world.step()


def read(world: World) -> set[TopicPartition]:
    return {partition for consumer in world.consumers.values() for partition in consumer.held}


def parked(world: World) -> list[str]:
    assert world.standing is not None
    return [each.topic for each in world.standing.parked_at(world.now)]


def test_a_parked_topic_is_read_by_nobody_and_all_others_go_on() -> None:
    world = a_world()
    world.lake.at_fault = {"orders"}
    run(world, 15)
    assert (read(world), parked(world)) == (set(CLICKS), ["orders"])
    ends = {partition: len(world.lake.rows[partition]) for partition in CLICKS}
    run(world, 5)
    assert all(len(world.lake.rows[partition]) > ends[partition] for partition in CLICKS)
    assert world.controller.state is State.SENTINEL
    assert world.lake.sealed == set()


def test_it_is_no_load_however_far_it_is_behind_and_the_group_shrinks() -> None:
    world = a_world()
    world.lake.at_fault = {"orders"}
    run(world, 15)
    decided = len(world.decisions)
    world.lags = dict.fromkeys(ORDERS, 1e9)
    world.speeds.update(dict.fromkeys(ORDERS, 150.0))
    run(world, 60)
    later = world.decisions[decided:]
    assert len(world.consumers) == 1
    assert {partition.topic for each in later for partition in each.saturated} == set()
    assert all(entry.speed == 0.0 for each in later for entry in each.assignment if entry.topic == "orders")


@pytest.mark.parametrize("unparked", [True, False], ids=["by an operator", "by itself"])
def test_once_its_table_is_mended_all_of_it_is_read_once(unparked: bool) -> None:
    world = a_world()
    world.lake.at_fault = {"orders"}
    run(world, 15)
    assert parked(world) == ["orders"]
    world.lake.at_fault = set()
    if unparked:
        world.ask(ControlAction.UNPARK, "orders")
        run(world, 5)
    else:
        run(world, 30)
    assert set(ORDERS) <= read(world)
    world.settle()
    assert not world.lake.doubled
    assert not world.lake.lost
    assert all(len(world.lake.rows[partition]) > 20 for partition in ORDERS)
    assert len(world.consumers) == 2, "it is load again"
    assert parked(world) == []
    assert world.lake.sealed == set(), "nobody had to be put out of action"


def test_a_trial_that_is_refused_makes_no_consumer_and_ends_none() -> None:
    world = a_world()
    world.lake.at_fault = {"orders"}
    run(world, 60)
    before = world.born
    world.lags = dict.fromkeys(ORDERS, 1e9)
    run(world, 300)
    assert world.standing is not None
    assert world.standing.parked[0].times >= 3
    assert (world.born, len(world.consumers)) == (before, 1)
    assert world.lake.sealed == set()


def test_what_is_parked_stays_so_under_the_next_controller() -> None:
    world = a_world()
    world.lake.at_fault = {"orders"}
    run(world, 15)
    assert world.standing is not None
    until = world.standing.parked[0].until
    world.begin_controller()
    run(world, 2)
    assert (read(world), parked(world)) == (set(CLICKS), ["orders"])
    run(world, 2)
    assert world.standing.parked[0].until == pytest.approx(until, abs=3.0)
    world.lake.at_fault = set()
    run(world, 60)
    world.settle()
    assert not world.lake.doubled
    assert not world.lake.lost


def test_a_topic_that_is_gone_is_parked_no_more() -> None:
    world = a_world()
    world.lake.at_fault = {"orders"}
    run(world, 15)
    world.gone = frozenset(ORDERS)
    for partition in ORDERS:
        del world.speeds[partition]
    run(world, 5)
    assert world.standing is not None
    assert world.standing.parked == ()


@pytest.mark.parametrize("seed", range(examples(5)))
def test_whatever_is_lost_late_or_doubled_each_record_is_there_once_when_it_is_mended(seed: int) -> None:
    world = World(SETTINGS, seed, chaos=0.1)
    world.speeds = {**dict.fromkeys(ORDERS, 25.0), **dict.fromkeys(CLICKS, 20.0)}
    for _ in range(6):
        world.lake.at_fault ^= {"orders"}
        run(world, world.random.randrange(5, 40))
        if world.random.random() < 0.5:
            world.begin_controller()
        if world.random.random() < 0.5:
            world.ask(ControlAction.UNPARK, "orders")
    world.lake.at_fault = set()
    world.ask(ControlAction.UNPARK, "orders")
    world.settle()
    assert not world.lake.doubled
    assert not world.lake.lost
    assert world.most_readers == 1
