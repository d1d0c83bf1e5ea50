"""What is said of a group that is watched: decisions, rebalances, savings, and the words for them. No cluster."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from app.watch.decide import words
from app.watch.decide.membership import GroupMember, Membership, Protocol
from app.watch.decide.rebalances import Rebalances
from app.watch.decide.saving import Comparison, Readership, Saving
from app.watch.decide.watcher import Moment, Watcher
from cli.terminal.glyphs import TopicPalette
from cli.terminal.watch_screen import WatchScreen
from controller.settings import ControllerSettings
from domain.assignment import Assignment
from domain.consumer_class import ConsumerClass
from domain.messages import DecisionKind, Restraint
from domain.partitions import TopicPartition
from domain.speeds import Lag, WriteSpeeds
from tests.controller.exhaustive import solve_exhaustively
from tests.sandbox.watch_messages import partition

SETTINGS = ControllerSettings(
    consumer_capacity=100.0,
    packing_capacity=100.0,
    scale_down_window_s=10.0,
    recovery_time_s=0.0,
    rscore_tolerance=0.0,
    max_consumers=5,
)
NAMES = ("orders-0", "orders-1", "orders-2")


def group(*held: tuple[str, ...], state: str = "Stable", assignor: str = "range") -> Membership:
    """Members `a`, `b`, `c` with these partitions each."""
    members = tuple(
        GroupMember(name, f"app@{name}", frozenset(map(partition, of_it)), frozenset({"orders"}))
        for name, of_it in zip("abcdef", held, strict=False)
    )
    return Membership(Protocol.CLASSIC, state, members, assignor if state == "Stable" else "")


def speeds_of(at: float, *speeds: float, behind: int = 0) -> WriteSpeeds:
    known = {partition(name): speed for name, speed in zip(NAMES, speeds, strict=False)}
    return WriteSpeeds(at, known, lags=dict.fromkeys(known, Lag(behind, 10.0 * behind, None)))


def watcher(settings: ControllerSettings = SETTINGS) -> Watcher:
    return Watcher("billing", settings, lambda problem, _engine: solve_exhaustively(problem))


def watched(found: Membership, *speeds: float, seconds: int = 0, settings: ControllerSettings = SETTINGS) -> Moment:
    """The last of so many moments, a second from one to the next, in which nothing changes."""
    watching = watcher(settings)
    for at in range(1000, 1001 + seconds):
        moment = watching.look(float(at), found, speeds_of(float(at), *speeds), {})
    return moment


def test_what_a_consumer_cannot_read_is_moved_now() -> None:
    moment = watched(group(("orders-0", "orders-1"), ("orders-2",)), 90.0, 60.0, 5.0)
    assert moment.decision is not None
    assert moment.decision.grounds is DecisionKind.FORCED
    assert moment.decision.carried_out
    assert (moment.consumers, moment.needed) == (2, 2)
    assert moment.overloaded == (1,)
    assert moment.idle == (2,)
    assert [each.to for each in moment.members[0].partitions] == [None, 2]
    (remark,) = words.remarks(moment)
    assert remark == "consumer 1 has 150% of a consumer's capacity to read, while consumer 2 has next to nothing"


def test_fewer_consumers_wait_for_the_window_and_every_moment_begins_anew() -> None:
    spread = group(("orders-0",), ("orders-1",), ("orders-2",))
    early = watched(spread, 20.0, 20.0, 20.0, seconds=3)
    assert early.decision is not None
    assert (early.consumers, early.needed) == (3, 1)
    assert [each.by for each in early.decision.held_back] == [Restraint.WINDOW]
    assert "and waits" in words.advice(early)
    # What would have been carried out a moment ago was not: it is no reason to wait.
    late = watched(spread, 20.0, 20.0, 20.0, seconds=15)
    assert late.decision is not None
    assert late.decision.carried_out
    assert late.needed == 1
    assert "would now go from 3 to 1 consumer, and move 2 partitions" in words.advice(late)


def test_decisions_are_as_far_apart_as_the_controllers_unless_the_group_changes() -> None:
    watching = watcher()
    spread, moved = group(("orders-0",), ("orders-1",)), group((), ("orders-0", "orders-1"))

    def decided_at(at: float, found: Membership) -> float:
        decision = watching.look(at, found, speeds_of(at, 20.0, 20.0), {}).decision
        assert decision is not None
        return decision.decided_at

    looks = ((1000.0, spread), (1004.0, spread), (1005.0, spread), (1006.0, moved), (1007.0, moved))
    assert [decided_at(*look) for look in looks] == [1000.0, 1000.0, 1005.0, 1006.0, 1006.0]


def test_where_the_load_has_outgrown_a_decision_the_next_one_is_made_at_once() -> None:
    watching, found = watcher(), group(("orders-0",), ("orders-1",))

    def decided_at(at: float, speed: float) -> float:
        decision = watching.look(at, found, speeds_of(at, speed, speed), {}).decision
        assert decision is not None
        return decision.decided_at

    looks = ((1000.0, 20.0), (1001.0, 24.0), (1002.0, 25.0), (1003.0, 31.0), (1004.0, 50.0))
    assert [decided_at(*look) for look in looks] == [1000.0, 1000.0, 1002.0, 1002.0, 1004.0]


@pytest.mark.parametrize(("last", "climbs"), [((1004.0, 26.0), False), ((1005.0, 24.0), True)], ids=["jump", "climb"])
def test_what_has_jumped_is_not_foreseen_to_climb_on(last: tuple[float, float], climbs: bool) -> None:
    watching = watcher(SETTINGS.model_copy(update={"forecast": True}))
    found = group(("orders-0",), ("orders-1",))
    for at, speed in ((1000.0, 20.0), (1001.0, 21.0), (1002.0, 22.0), (1003.0, 23.0), last):
        decision = watching.look(at, found, speeds_of(at, speed, speed), {}).decision
    assert decision is not None
    assert decision.decided_at == last[0]
    assert {entry.foreseen > 0 for entry in decision.assignment} == {climbs}


def test_a_group_that_is_as_it_should_be_is_left_alone() -> None:
    moment = watched(group(("orders-0",), ("orders-1", "orders-2")), 90.0, 40.0, 50.0, seconds=30)
    assert moment.decision is not None
    assert not moment.decision.carried_out
    assert moment.needed == 2
    assert "leave everything as it is" in words.advice(moment)
    assert not list(words.remarks(moment))


def test_members_keep_their_numbers_and_who_comes_gets_a_free_one() -> None:
    watching = watcher()

    def numbers(*names: str) -> dict[str, int]:
        found = Membership(Protocol.CLASSIC, "Stable", tuple(GroupMember(name, "app@host") for name in names))
        return {each.member: each.consumer for each in watching.look(1000.0, found, None, None).members}

    assert numbers("a", "b", "c") == {"a": 1, "b": 2, "c": 3}
    assert numbers("a", "c") == {"a": 1, "c": 3}
    assert numbers("0", "a", "c", "d") == {"a": 1, "c": 3, "0": 2, "d": 4}


@pytest.mark.parametrize(
    ("assignor", "reads_on"), [("range", False), ("sticky", False), ("cooperative-sticky", True), ("ours", True)]
)
def test_during_a_rebalance_nothing_is_advised_and_who_reads_on_is_a_matter_of_the_assignor(
    assignor: str, reads_on: bool
) -> None:
    watching = watcher()
    watching.look(1000.0, group(NAMES, assignor=assignor), speeds_of(1000.0, 1.0, 1.0, 1.0), {})
    moment = watching.look(1001.0, group((), state="PreparingRebalance"), speeds_of(1001.0, 1.0, 1.0, 1.0), {})
    assert moment.decision is None
    assert "rebalance is under way" in words.advice(moment)
    assert len(moment.members[0].partitions) == (3 if reads_on else 0)
    assert moment.rebalances_seen == 1


def test_what_nobody_tells_is_not_known_and_the_group_is_shown_as_it_was() -> None:
    watching = watcher()
    watching.look(1000.0, group(NAMES), speeds_of(1000.0, 50.0, 1.0, 1.0), {})
    away = watching.look(1001.0, None, None, None, ["the broker is away"])
    assert (away.state, away.decision, away.needed) == (None, None, None)
    assert len(away.members[0].partitions) == 3
    assert next(words.remarks(away)) == "the broker is away"
    assert "not known just now" in words.advice(away)


def test_without_fresh_speeds_nothing_is_advised() -> None:
    watching = watcher()
    nothing = watching.look(1000.0, group(NAMES), WriteSpeeds(1000.0, {}, frozenset(map(partition, NAMES))), {})
    assert nothing.decision is None
    assert "no write speeds are known" in words.advice(nothing)


def test_topics_that_are_not_measured_and_partitions_that_nobody_reads_are_named() -> None:
    moment = watched(group(("orders-0", "clicks-0")), 10.0, 10.0)
    assert moment.unwatched == ("clicks",)
    assert [each.partition for each in moment.unread] == [1]
    said = " ".join(words.remarks(moment))
    assert "1 partition without a reader: orders-1" in said
    assert "reads clicks, too" in said


def test_an_empty_group_is_told_what_it_would_take() -> None:
    moment = watched(Membership(Protocol.CLASSIC, "Empty"), 90.0, 90.0, 90.0)
    assert (moment.consumers, moment.needed) == (0, 3)
    assert moment.decision is not None
    assert moment.decision.found == 0


def test_a_partition_that_is_gone_is_forgotten() -> None:
    watching = watcher()
    watching.look(1000.0, group(NAMES), speeds_of(1000.0, 90.0, 1.0, 1.0), {})
    gone = frozenset({partition("orders-0")})
    left = WriteSpeeds(1001.0, {partition("orders-1"): 1.0, partition("orders-2"): 1.0}, gone=gone)
    for at in (1001.0, 1002.0):
        moment = watching.look(at, group(NAMES[1:]), left, {})
        assert moment.decision is not None
        assert {entry.key for entry in moment.decision.assignment} == set(map(partition, NAMES[1:]))
        assert not any("gone" in why for why in moment.decision.triggers)


# Rebalances


def readers(**of: int) -> Assignment:
    return Assignment({TopicPartition("orders", int(name[1:])): consumer for name, consumer in of.items()})


def test_a_rebalance_lasts_until_all_is_read_and_costs_what_was_not() -> None:
    seen = Rebalances()
    seen.look(0.0, readers(p0=1, p1=2), settled=True)
    seen.look(1.0, readers(), settled=False)
    seen.look(3.0, readers(), settled=False)
    (under_way,) = seen.seen
    assert (under_way.began_at, under_way.ended_at, under_way.unassigned_s) == (1.0, None, 4.0)
    seen.look(4.0, readers(p0=1, p1=1), settled=True)
    (over,) = seen.seen
    assert (over.ended_at, over.moved, over.unassigned_s) == (4.0, 1, 6.0 - 2.0)
    seen.look(5.0, readers(p0=1, p1=1), settled=True)
    assert seen.seen == (over,)


def test_what_moves_between_two_looks_is_a_rebalance_too() -> None:
    seen = Rebalances()
    seen.look(0.0, readers(p0=1, p1=2), settled=True)
    seen.look(1.0, readers(p0=2, p1=2), settled=True)
    (it,) = seen.seen
    assert (it.moved, it.unassigned_s, it.ended_at) == (1, 0.0, 1.0)


def test_the_first_look_and_partitions_that_are_new_are_none() -> None:
    seen = Rebalances()
    seen.look(0.0, readers(p0=1), settled=True)
    seen.look(1.0, readers(p0=1, p1=1), settled=True)
    assert not seen.seen


def test_partitions_that_are_gone_are_not_waited_for() -> None:
    seen = Rebalances()
    seen.look(0.0, readers(p0=1, p1=2), settled=True)
    seen.look(1.0, readers(p1=2), settled=True)
    assert seen.seen[-1].ended_at is None
    seen.forget([P0])
    seen.look(2.0, readers(p1=2), settled=True)
    assert seen.seen[-1].ended_at == 2.0


P0 = TopicPartition("orders", 0)
SOME, NONE = {P0: Lag(5, 50.0, None)}, {P0: Lag(0, 0.0, 0.0)}


def committing_every_2_s(until: int) -> Rebalances:
    seen = Rebalances()
    for at in range(until):
        seen.look(float(at), readers(p0=1), settled=True)
        seen.commits(float(at), {P0: at // 2}, SOME)
    return seen


def test_commits_that_stand_still_longer_than_usual_are_what_a_rebalance_cost() -> None:
    seen = committing_every_2_s(11)
    assert seen.usual_s == 2.0
    seen.look(11.0, readers(), settled=False)
    seen.commits(11.0, {P0: 5}, SOME)
    seen.look(12.0, readers(p0=2), settled=True)
    seen.commits(12.0, {P0: 5}, SOME)
    assert seen.seen[-1].commits_awaited == 1
    seen.commits(17.0, {P0: 6}, SOME)
    (it,) = seen.seen
    assert (it.standstill_s, it.commits_awaited) == (7.0 - 2.0, 0)  # since 10.0
    assert seen.usual_s == 2.0, "it is no usual one"


def test_where_nothing_waits_nothing_stands_still() -> None:
    seen = committing_every_2_s(11)
    seen.look(11.0, readers(p0=2), settled=True)
    seen.commits(11.0, {P0: 5}, NONE)
    seen.commits(60.0, {P0: 6}, SOME)
    assert seen.seen[-1].commits_awaited == 0
    assert seen.seen[-1].standstill_s is None


def test_without_a_usual_time_the_cost_is_not_known() -> None:
    seen = Rebalances()
    seen.look(0.0, readers(p0=1), settled=True)
    seen.commits(0.0, {P0: 1}, SOME)
    seen.look(1.0, readers(p0=2), settled=True)
    seen.commits(9.0, {P0: 2}, SOME)
    assert seen.usual_s is None
    assert seen.seen[-1].standstill_s is None


# Saving


def test_what_a_consumer_cannot_read_waits_and_what_nobody_reads_does() -> None:
    p0, p1 = (TopicPartition("orders", number) for number in range(2))
    reckoned = Readership(capacity=10.0)
    reckoned.pass_time(2.0, {p0: 15.0, p1: 4.0}, 3, readers(p0=1))
    assert reckoned.waiting == pytest.approx({p0: 10.0, p1: 8.0})
    assert reckoned.waited == pytest.approx(2.0 * 18.0)
    assert reckoned.consumer_s == 6.0
    reckoned.pass_time(2.0, {p0: 0.0, p1: 0.0}, 3, readers(p0=1, p1=2), unread=frozenset({p1}))
    assert reckoned.waiting == pytest.approx({p0: 0.0, p1: 8.0})
    reckoned.pass_time(1.0, {p0: 5.0}, 3, readers(p0=1))
    assert reckoned.waiting[p1] == pytest.approx(8.0), "its speed is not known, and it is not read"
    reckoned.forget([p1])
    assert p1 not in reckoned.waiting


@given(
    st.lists(st.tuples(st.floats(0, 300), st.floats(0, 300)), min_size=1, max_size=20),
    st.floats(0.1, 5.0),
    st.floats(1.0, 200.0),
)
def test_a_reckoning_neither_loses_nor_makes_bytes(
    written: list[tuple[float, float]], seconds: float, capacity: float
) -> None:
    reckoned, total = Readership(capacity), 0.0
    for one, other in written:
        reckoned.pass_time(seconds, {P0: one, TopicPartition("orders", 1): other}, 1, readers(p0=1, p1=1))
        total += seconds * (one + other)
        waiting = sum(reckoned.waiting.values())
        assert -1e-6 <= waiting <= total + 1e-6
    assert waiting >= total - capacity * seconds * len(written) - 1e-3


def test_three_half_empty_consumers_are_compared_with_the_one_that_kcga_would_have() -> None:
    moment = watched(group(("orders-0",), ("orders-1",), ("orders-2",)), 20.0, 20.0, 20.0, seconds=900)
    saved = moment.saving
    assert saved is not None
    assert saved.seconds == 900
    assert saved.consumer_hours == pytest.approx(0.75)
    assert saved.consumer_hours_with_kcga == pytest.approx(0.25)
    assert saved.waited_s == saved.waited_s_with_kcga == 0
    said = " ".join(words.saving(moment))
    assert "0.75 consumer-hours, 0.25 with kcga, 67% fewer" in said
    assert "a week like this: 504 consumer-hours, 168 with kcga" in said


def test_a_group_that_cannot_keep_up_is_compared_with_one_that_can() -> None:
    moment = watched(group(NAMES), 90.0, 90.0, 90.0, seconds=100)
    assert moment.saving is not None
    assert moment.saving.consumers == 3
    assert moment.saving.waited_s > 10
    assert moment.saving.waited_s_with_kcga == 0
    assert "200% more" in " ".join(words.saving(moment))


def test_what_kcga_moves_waits_for_its_next_reader() -> None:
    comparison = Comparison(SETTINGS, lambda problem, _: solve_exhaustively(problem))

    def saved(since: int, until: int, grown: float) -> Saving:
        for at in range(since, until):
            comparison.measured(float(at), speeds_of(float(at), grown, 30.0, 30.0), 3, readers(p0=1, p1=2, p2=3))
        assert comparison.saving is not None
        return comparison.saving

    before, after = saved(0, 30, grown=30.0), saved(30, 60, grown=60.0)
    assert (before.consumers, after.consumers) == (1, 2)
    assert before.waited_s_with_kcga == 0
    assert after.waited_s_with_kcga > 0
    assert after.waited_s == 0


def test_time_in_which_nobody_knows_what_was_counts_for_neither() -> None:
    comparison = Comparison(SETTINGS, lambda problem, _: solve_exhaustively(problem))
    for at in (0.0, 1.0, 1000.0, 1001.0):
        comparison.measured(at, speeds_of(at, 10.0), 1, readers(p0=1))
    assert comparison.saving is not None
    assert comparison.saving.seconds == 2.0


# Classes

WITH_LARGE = SETTINGS.with_classes([ConsumerClass("large", 300.0, 2.5)])


def test_a_group_is_advised_a_larger_consumer_for_what_no_ordinary_one_can_read() -> None:
    found, speeds = group(("orders-0", "orders-1"), ("orders-2",)), (150.0, 30.0, 40.0)
    moment = watched(found, *speeds, settings=WITH_LARGE)
    assert moment.decision is not None
    assert moment.decision.carried_out
    (large,) = moment.decision.classes["large"]
    assert large > 2, "those that there are are ordinary"
    assert partition("orders-0") in {each.key for each in moment.decision.assignment if each.consumer == large}
    assert moment.overloaded == (1,)
    assert not any(each.oversized for member in moment.members for each in member.partitions)
    assert " (1 large) at a price of " in words.advice(moment)
    assert not [remark for remark in words.remarks(moment) if "is faster than" in remark]
    ordinary = watched(found, *speeds)
    assert "orders-0 is faster than a consumer" in " ".join(words.remarks(ordinary))
    too_fast = watched(found, 400.0, 30.0, 40.0, settings=WITH_LARGE)
    assert "orders-0 is faster than any consumer" in " ".join(words.remarks(too_fast))


def test_a_consumer_of_a_class_counts_as_its_price_and_reads_as_much_as_it_can() -> None:
    moment = watched(group(NAMES), 150.0, 30.0, 40.0, seconds=100, settings=WITH_LARGE)
    assert moment.saving is not None
    assert moment.saving.waited_s_with_kcga == 0
    paid = moment.saving.consumer_hours_with_kcga / moment.saving.consumer_hours
    assert paid == pytest.approx(2.5)
    assert moment.saving.consumers == 1
    assert "(each consumer counts as its price)" in " ".join(words.saving(moment))


# The picture


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_picture_says_who_has_too_much_what_kcga_would_do_and_what_it_saves(width: int) -> None:
    moment = watched(group(("orders-0", "orders-1"), ("orders-2",)), 90.0, 60.0, 5.0, seconds=10)
    console = Console(file=io.StringIO(), width=width, height=40, force_terminal=True, no_color=True, record=True)
    console.print(WatchScreen(moment, TopicPalette()))
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert all(len(line) <= width for line in lines)
    text = " ".join(" ".join(lines).split())
    assert lines[0] == "kcga  beside billing"
    for said in (
        "150%",
        "app@a",
        "kcga would now keep 2 consumers, and move 1 partition",
        "a week like this",
        "next to nothing",
    ):
        assert said in text
