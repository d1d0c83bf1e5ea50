"""What the record of a decision says: why partitions move, what keeping would cost, what falls short."""

from collections.abc import Mapping

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from controller.decide.plan import decide
from controller.decide.question import Situation, pose
from controller.decide.restraint import Restraints
from controller.decide.sizes import Size
from controller.decide.triggers import REPLAN, Trigger
from controller.settings import ControllerSettings
from domain.assignment import Assignment
from domain.messages import Decision, DecisionKind, Foresight, Restraint
from domain.partitions import TopicPartition
from tests.controller.exhaustive import solve_exhaustively
from tests.examples import examples

SETTINGS = ControllerSettings(consumer_capacity=100.0, packing_capacity=80.0, scale_down_window_s=0.0)
WHY = Trigger("because", frozenset())


def p(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


def decided(
    speeds: Mapping[int, float],
    current: Mapping[int, int],
    settings: ControllerSettings = SETTINGS,
    *,
    backlogs: Mapping[int, float] | None = None,
    highest: Mapping[int, float] | None = None,
    climbing: Mapping[int, float] | None = None,
    gone: Mapping[int, int] | None = None,
    paused: bool = False,
    manual: bool = False,
    missing: frozenset[TopicPartition] = frozenset(),
    planned: Mapping[int, int] | None = None,
    foresight: Foresight | None = None,
) -> Decision:
    sizes = {p(number): Size(speed, (backlogs or {}).get(number, 0.0)) for number, speed in speeds.items()}
    situation = Situation(
        triggers=(REPLAN,) if manual else (WHY,),
        sizes=sizes,
        highest={p(number): Size(speed) for number, speed in (highest or speeds).items()},
        climbing={
            p(n): sizes[p(n)].growing_to(speed, settings.consumer_capacity) for n, speed in (climbing or {}).items()
        },
        measured_at=99.0,
        current=Assignment({p(number): consumer for number, consumer in current.items()}),
        gone={p(number): consumer for number, consumer in (gone or {}).items()},
        named=sizes.keys() | missing,
        missing=missing,
        paused=paused,
        manual=manual,
        planned=None if planned is None else Assignment({p(number): planned[number] for number in planned}),
        foresight=foresight,
    )
    question = pose(situation, settings)
    restraints = Restraints(settings, paused=paused)
    restraints.highest.record(100.0, 100.0, sizes)
    solution = solve_exhaustively(question.problem)
    return decide(number=1, epoch=1, at=100.0, question=question, solution=solution, restraints=restraints)


def moves(decision: Decision) -> dict[int, str | None]:
    return {entry.partition: entry.reason for entry in decision.assignment if entry.consumer != entry.previous}


def held_back_by(decision: Decision) -> list[Restraint]:
    return [each.by for each in decision.held_back]


@pytest.mark.parametrize(
    ("proven_of", "packing_capacity", "packed_to", "consumers"),
    [(0, None, 75.0, 3), (1, None, 75.0, 3), (2, None, 80.0, 2), (3, None, 80.0, 2), (3, 75.0, 75.0, 3)],
)
def test_a_plan_for_what_most_are_foreseen_to_grow_to_leaves_less_room(
    proven_of: int, packing_capacity: float | None, packed_to: float, consumers: int
) -> None:
    """But no less than settings ask for."""
    foresight = Foresight(horizon_s=20.0, quantile=0.9, partitions=proven_of, due=0, held=0)
    settings = ControllerSettings(consumer_capacity=100.0, packing_capacity=packing_capacity)
    decision = decided({0: 60.0, 1: 45.0, 2: 34.0}, {0: 1, 1: 1, 2: 2}, settings, foresight=foresight)
    assert decision.packing_capacity == packed_to
    assert decision.plan.consumers == consumers


@pytest.mark.parametrize(("weight", "gap"), [(0.0, 0.0), (0.5, 0.005), (20.0, 0.01)])
def test_what_may_be_left_to_gain_is_priced_as_migration_is_and_never_a_consumer(weight: float, gap: float) -> None:
    sizes = {p(0): Size(50.0)}
    situation = Situation(
        triggers=(WHY,),
        sizes=sizes,
        highest=sizes,
        measured_at=99.0,
        current=Assignment(),
        gone={},
        named=sizes.keys(),
        missing=frozenset(),
        paused=False,
    )
    question = pose(situation, SETTINGS.model_copy(update={"migration_weight": weight, "rscore_tolerance": 0.01}))
    assert question.problem.absolute_gap == pytest.approx(gap)


def test_a_climb_forces_no_plan_and_one_that_is_forced_is_made_for_where_it_leads() -> None:
    climbing = {0: 80.0, 1: 60.0}
    decision = decided({0: 45, 1: 35}, {0: 1, 1: 1}, climbing=climbing)
    assert decision.grounds is DecisionKind.VOLUNTARY
    assert not decision.carried_out
    decision = decided({0: 45, 1: 60, 2: 10}, {0: 1, 1: 1, 2: 1}, climbing=climbing | {2: 20.0})
    assert decision.grounds is DecisionKind.FORCED
    assert [(entry.speed, entry.foreseen) for entry in decision.assignment] == [(80, 35), (60, 0), (20, 10)]


@pytest.mark.parametrize(
    ("climbing", "change", "moved"),
    [
        ({}, {}, {3}),
        ({0: 50.0}, {}, {2}),
        ({0: 50.0}, {"max_consumers": 1}, set()),
        ({0: 98.0}, {}, {1, 2, 3}),
        ({0: 50.0}, {"pinned": {"orders-0": 1, "orders-1": 1, "orders-2": 1}}, {3}),
    ],
    ids=["measured", "foreseen", "no more consumers", "one that fills it", "pinned"],
)
def test_what_is_left_to_a_consumer_on_a_climb_does_not_fill_it(
    climbing: Mapping[int, float], change: Mapping[str, object], moved: set[int]
) -> None:
    """All but the slowest are 100 together; with the slowest in place of another they are 96.5."""
    speeds = {0: 49.0 if climbing else 50.0, 1: 26.0, 2: 24.0, 3: 20.5}
    decision = decided(speeds, dict.fromkeys(speeds, 1), SETTINGS.model_copy(update=change), climbing=climbing)
    assert decision.grounds is DecisionKind.FORCED
    assert moves(decision).keys() == moved


def test_a_partition_leaves_a_consumer_that_was_above_its_capacity() -> None:
    decision = decided({0: 60, 1: 50}, {0: 1, 1: 1})
    assert decision.carried_out
    assert decision.grounds is DecisionKind.FORCED
    assert moves(decision) == {1: "its consumer was above its capacity"}
    assert decision.keeping is None
    assert decision.not_keepable == ("consumer 1 has to read 110.0, more than 100.0",)


def test_a_partition_leaves_a_consumer_that_is_no_longer_needed() -> None:
    decision = decided({0: 30, 1: 20}, {0: 1, 1: 2})
    assert decision.carried_out
    assert moves(decision) == {1: "its consumer is no longer needed"}
    assert decision.keeping is not None
    assert decision.keeping.objective == 2.0


def test_a_partition_that_nobody_reads_says_whose_it_was() -> None:
    decision = decided({0: 30, 1: 20, 2: 10}, {0: 1}, gone={1: 7})
    assert moves(decision) == {1: "its consumer, 7, is gone", 2: "nobody read it"}
    assert decision.lost == (7,)


def test_who_is_lost_or_on_its_way_is_among_the_consumers_before() -> None:
    before = [
        decided({0: 60, 1: 60}, {0: 1}, gone={1: 7}),
        decided({0: 60, 1: 60}, {0: 1}, gone={1: 7}, planned={0: 1, 1: 3}),
        decided({0: 60, 1: 60}, {0: 1, 1: 1}, planned={0: 1, 1: 2}),
        decided({0: 60}, {}),
    ]
    assert [decision.found for decision in before] == [2, 2, 2, 0]


def test_a_pinned_partition_goes_where_it_is_pinned() -> None:
    settings = SETTINGS.model_copy(update={"pinned": {"orders-1": 2}})
    decision = decided({0: 70, 1: 20}, {0: 1, 1: 1}, settings)
    assert decision.carried_out
    assert moves(decision) == {1: "it is pinned to consumer 2"}


def test_a_partition_makes_room_for_another() -> None:
    # 0 must go to consumer 1, which has no room beside 1.
    settings = SETTINGS.model_copy(update={"pinned": {"orders-0": 1}})
    decision = decided({0: 70, 1: 60, 2: 10}, {0: 2, 1: 1, 2: 1}, settings)
    assert moves(decision) == {0: "it is pinned to consumer 1", 1: "makes room for orders-0"}


def test_a_partition_faster_than_a_consumer_is_alone_and_reported_with_the_partitions_its_topic_needs() -> None:
    decision = decided({0: 170, 1: 20, 2: 20}, {0: 1, 1: 1, 2: 2})
    (saturated,) = decision.saturated
    assert (saturated.partition, saturated.speed) == (0, 170)
    assert saturated.partitions_needed == 9  # three for each of the topic's three: 170 in parts of at most 80
    assert moves(decision) == {1: "orders-0, on the same consumer, is faster than a consumer, and stays alone"}


def test_more_consumers_are_made_where_there_are_fewer_than_the_least() -> None:
    settings = SETTINGS.model_copy(update={"min_consumers": 2})
    decision = decided({0: 10, 1: 10}, {0: 1, 1: 1}, settings)
    assert decision.carried_out
    assert list(moves(decision).values()) == ["there shall be 2 consumers or more"]


def test_what_falls_short_of_the_most_consumers_is_said() -> None:
    settings = SETTINGS.model_copy(update={"max_consumers": 2})
    decision = decided({0: 90, 1: 90, 2: 50}, {}, settings)
    assert decision.carried_out
    assert decision.shortfall is not None
    assert decision.shortfall.excess == 40.0
    again = decided({0: 90, 1: 90, 2: 50}, {e.partition: e.consumer for e in decision.assignment}, settings)
    assert not again.carried_out
    assert again.shortfall == decision.shortfall


def test_where_the_group_falls_short_anyway_a_little_less_excess_is_not_worth_a_migration() -> None:
    settings = SETTINGS.model_copy(update={"max_consumers": 2})
    assert not decided({0: 90, 1: 91, 2: 50}, {0: 1, 1: 2, 2: 2}, settings).carried_out
    assert decided({0: 60, 1: 91, 2: 50}, {0: 1, 1: 2, 2: 2}, settings).carried_out


def test_a_plan_with_fewer_consumers_must_fit_the_highest_speeds_of_the_window() -> None:
    decision = decided({0: 30, 1: 20}, {0: 1, 1: 2}, highest={0: 70, 1: 20})
    assert held_back_by(decision) == [Restraint.NOT_BETTER]
    assert decision.window_s == 0.0


def test_a_forced_plan_never_has_fewer_consumers() -> None:
    decision = decided({0: 60, 1: 50, 2: 1, 3: 1}, {0: 1, 1: 1, 2: 2, 3: 3})
    assert decision.carried_out
    assert decision.plan.consumers == 3


def test_a_load_that_was_too_high_a_while_ago_forces_nothing_now() -> None:
    decision = decided({0: 40, 1: 40}, {0: 1, 1: 1}, highest={0: 90, 1: 90})
    assert decision.grounds is DecisionKind.VOLUNTARY
    assert not decision.carried_out


def test_missing_data_holds_back_also_what_an_operator_asked_for() -> None:
    missing = frozenset({p(7)})
    assert held_back_by(decided({0: 30, 1: 20}, {0: 1, 1: 2}, manual=True, missing=missing)) == [Restraint.MISSING_DATA]
    assert held_back_by(decided({0: 30, 1: 20}, {0: 1, 1: 2}, missing=missing)) == [Restraint.MISSING_DATA]


def test_a_paused_controller_relieves_nobody() -> None:
    decision = decided({0: 60, 1: 50}, {0: 1, 1: 1}, paused=True)
    assert held_back_by(decision) == [Restraint.PAUSED]
    assert not moves(decision)


def test_a_paused_controller_gives_unread_partitions_a_reader_and_moves_no_other() -> None:
    settings = SETTINGS.model_copy(update={"pinned": {"orders-1": 2}})
    decision = decided({0: 60, 1: 50, 2: 10}, {0: 1, 1: 1}, settings, paused=True, gone={2: 3})
    assert decision.carried_out
    assert moves(decision) == {2: "its consumer, 3, is gone"}


def test_an_operator_that_asks_for_a_plan_gets_it_also_while_paused() -> None:
    decision = decided({0: 30, 1: 20}, {0: 1, 1: 2}, paused=True, manual=True, highest={0: 90, 1: 90})
    assert decision.carried_out
    assert decision.grounds is DecisionKind.MANUAL


@settings(max_examples=examples(60), deadline=None)
@example(
    partitions=[(10.0, consumer) for consumer in (1, 2, 3, 4)],
    peak=1.0,
    pinned={},
    least=1,
    most=3,
    paused=True,
    manual=False,
)
@example(  # whose consumer would be one too many
    partitions=[(0.0, None), (0.0, 1), (0.0, 2), (0.0, 4)],
    peak=1.0,
    pinned={0: 3},
    least=1,
    most=3,
    paused=True,
    manual=False,
)
@given(
    partitions=st.lists(st.tuples(st.floats(0, 150), st.none() | st.integers(1, 4)), min_size=1, max_size=6),
    peak=st.floats(1, 2),
    pinned=st.dictionaries(st.integers(0, 5), st.integers(1, 3), max_size=2),
    least=st.integers(1, 3),
    most=st.integers(3, 6),
    paused=st.booleans(),
    manual=st.booleans(),
)
def test_whatever_is_decided_has_reasons(
    partitions: list[tuple[float, int | None]],
    peak: float,
    pinned: dict[int, int],
    least: int,
    most: int,
    paused: bool,
    manual: bool,
) -> None:
    rules = {
        "pinned": {f"orders-{number}": consumer for number, consumer in pinned.items()},
        "min_consumers": least,
        "max_consumers": most,
    }
    decision = decided(
        {number: speed for number, (speed, _) in enumerate(partitions)},
        {number: consumer for number, (_, consumer) in enumerate(partitions) if consumer is not None},
        SETTINGS.model_copy(update=rules),
        highest={number: peak * speed for number, (speed, _) in enumerate(partitions)},
        paused=paused,
        manual=manual,
    )
    assert decision.carried_out == (not decision.held_back)
    assert all((entry.reason is None) == (entry.consumer == entry.previous) for entry in decision.assignment)
    unread = any(consumer is None for _, consumer in partitions)
    assert decision.carried_out or not unread, "nothing keeps a partition without a reader from getting one"
    if paused and not manual and decision.carried_out:
        assert all(entry.previous in (None, entry.consumer) for entry in decision.assignment)
