"""The view that messages are folded into."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.group_view.fold import GroupFold, GroupMessage
from domain.group_view.view import GroupView, HeldPartition, Sample, Transit
from domain.messages import ConsumerState, ControllerClaim, Standing, WriteSpeedReport
from domain.speeds import Lag, WriteSpeeds
from tests.sandbox.watch_messages import (
    BEGAN,
    cycle,
    decision,
    partition,
    read,
    report,
    resting,
    story,
    told,
    write_speeds,
)

MOVE = {"orders-0": (1, 1), "orders-1": (1, 2)}


def view_of(*messages: GroupMessage, since: float | None = None, until: float = 0.0) -> GroupView:
    fold = GroupFold(since=since, silent_after_s=15)
    for message in messages:
        fold.receive(message)
    if until:
        fold.pass_time(until)
    return fold.view()


def test_before_any_message_nothing_is_known() -> None:
    view = view_of()
    assert (view.consumers, view.transits, view.decisions, view.partitions) == ((), (), (), frozenset())
    assert (view.total_speed, view.lag, view.highest_lag, view.last_decision) == (None, None, None, None)
    assert view.elapsed_s == 0


def test_a_consumer_holds_its_partitions_with_their_speeds() -> None:
    view = view_of(
        write_speeds(BEGAN, {"orders-0": 100.0, "orders-1": 50.0, "clicks-0": None}),
        report(2, BEGAN, "orders-1", "orders-0", "clicks-0"),
    )
    (consumer,) = view.consumers
    assert consumer.partitions == (
        HeldPartition(partition("clicks-0"), None),
        HeldPartition(partition("orders-0"), 100.0),
        HeldPartition(partition("orders-1"), 50.0),
    )
    assert consumer.load == view.total_speed == 150.0


def test_the_newest_report_counts_whatever_comes_after_it() -> None:
    stopped, started = report(1, BEGAN + 2, sequence=2), report(1, BEGAN + 1, "orders-0")
    assert view_of(started, stopped).consumers[0].partitions == ()
    assert view_of(stopped, started).consumers[0].partitions == ()


def test_a_restarted_consumer_takes_the_place_of_what_it_was() -> None:
    old = report(1, BEGAN, "orders-0", sequence=40)
    new = report(1, BEGAN + 5, incarnation="0", state=ConsumerState.STARTING)
    for view in (view_of(old, new), view_of(new, old)):
        assert [(consumer.state, consumer.partitions) for consumer in view.consumers] == [(ConsumerState.STARTING, ())]


def test_a_consumer_that_leaves_is_gone() -> None:
    view = view_of(report(1, BEGAN), report(1, BEGAN + 1, sequence=2, state=ConsumerState.LEAVING))
    assert view.consumers == ()
    assert view.consumers_over_time == (Sample(BEGAN, 0), Sample(BEGAN, 1), Sample(BEGAN + 1, 0))


def test_a_consumer_that_falls_silent_reads_nothing_and_is_gone_once_the_plan_leaves_it_out() -> None:
    plan = decision(1, BEGAN, {"orders-0": (None, 1)})
    spoke: list[GroupMessage] = [write_speeds(BEGAN, {"orders-0": 1.0}), plan, report(1, BEGAN, "orders-0")]
    assert view_of(*spoke, until=BEGAN + 15).unread == ()
    silent = view_of(*spoke, until=BEGAN + 16)
    assert [consumer.silent for consumer in silent.consumers] == [True]
    assert silent.alive == 0
    assert [transit.partition for transit in silent.unread] == [partition("orders-0")]
    assert silent.consumers_over_time[-1] == Sample(BEGAN + 16, 0)
    assert view_of(*spoke, decision(2, BEGAN + 16, {"orders-0": (1, 2)})).consumers == ()


def test_where_nobody_has_to_read_no_partition_lacks_a_reader() -> None:
    speeds = write_speeds(BEGAN, {"orders-0": 0.0, "orders-1": 0.0})
    at_rest = view_of(speeds, resting(1, rests=True))
    assert at_rest.rests
    assert at_rest.unread == ()
    woken = view_of(speeds, resting(1, rests=True), resting(2, rests=False))
    assert not woken.rests
    assert len(woken.unread) == 2


def test_a_partition_that_no_one_reads_and_no_plan_names_has_no_reader() -> None:
    view = view_of(write_speeds(BEGAN, {"orders-0": 7.0, "orders-1": None}), report(1, BEGAN, "orders-1"))
    assert view.transits == (Transit(partition("orders-0"), 7.0, reader=None, source=None, target=None),)
    assert view.unread == view.transits


def test_a_partition_is_on_the_move_until_its_new_consumer_reads_it() -> None:
    before: list[GroupMessage] = [
        write_speeds(BEGAN, {"orders-0": 7.0, "orders-1": 3.0}),
        decision(2, BEGAN, MOVE),
        report(1, BEGAN, "orders-0", "orders-1"),
        report(2, BEGAN),
    ]
    moving = Transit(partition("orders-1"), 3.0, reader=1, source=1, target=2)
    assert moving.is_migration
    assert view_of(*before).transits == (moving,)
    stopped = [*before, report(1, BEGAN + 1, "orders-0", sequence=2)]
    assert view_of(*stopped).transits == (replace(moving, reader=None),)
    assert view_of(*stopped, report(2, BEGAN + 2, "orders-1", sequence=2)).transits == ()


def test_what_was_to_move_to_a_consumer_that_is_given_up_stays_where_it_is_read() -> None:
    moving = decision(2, BEGAN + 1, {"orders-1": (1, 2)})
    before = (decision(1, BEGAN, {"orders-1": (None, 1)}), report(1, BEGAN + 1, "orders-1"), moving)
    counted_on = claiming(BEGAN + 1, 1, 2)
    assert [transit.target for transit in view_of(*before, counted_on).transits] == [2]
    given_up = claiming(BEGAN + 2, 1)
    assert view_of(*before, counted_on, given_up).transits == ()
    assert view_of(*before, given_up, counted_on).transits == ()


def claiming(at: float, *counted_on: int) -> ControllerClaim:
    standing = Standing(began_at=BEGAN, counted_on=counted_on)
    return ControllerClaim(epoch=1, incarnation="a", sequence=int(at - BEGAN), sent_at=at, standing=standing)


def test_a_partition_that_is_only_taken_over_yet_is_read_by_nobody() -> None:
    """However long that takes: of a table that does not tell what it holds, for ever."""
    taken = report(2, BEGAN, "orders-0", "orders-1")
    taking_over = taken.model_copy(update={"taking_over": taken.partitions[1:]})
    view = view_of(
        write_speeds(BEGAN, {"orders-0": 7.0, "orders-1": 3.0}),
        decision(2, BEGAN, {"orders-0": (None, 2), "orders-1": (1, 2)}),
        taking_over,
    )
    assert view.consumers[0].partitions == (HeldPartition(partition("orders-0"), 7.0),)
    assert view.unread == (Transit(partition("orders-1"), 3.0, reader=None, source=1, target=2),)


def test_a_plan_that_is_not_carried_out_moves_nothing() -> None:
    view = view_of(
        write_speeds(BEGAN, {"orders-0": 7.0, "orders-1": 3.0}),
        decision(2, BEGAN, MOVE, carried_out=False),
        report(1, BEGAN, "orders-0", "orders-1"),
    )
    assert view.transits == ()
    assert view.last_decision is not None


def test_what_was_written_is_the_sum_of_all_cycles_each_counted_once() -> None:
    first = report(1, BEGAN, "orders-0", cycle=cycle(read("orders-0", BEGAN, BEGAN), size=700))
    second = report(1, BEGAN + 1, "orders-0", sequence=2, cycle=cycle(read("orders-0", BEGAN, BEGAN), size=300))
    other = report(1, BEGAN + 2, "orders-0", incarnation="b", cycle=cycle(read("orders-0", BEGAN, BEGAN), size=50))
    view = view_of(second, first, second, other, first, report(1, BEGAN + 3, "orders-0", sequence=3))
    assert (view.bytes_written, view.records_written) == (1050, 30)


def test_the_lag_in_seconds_is_the_longest_of_any_partition_that_is_known() -> None:
    def speeds(*seconds: float | None) -> WriteSpeedReport:
        lags = {partition(f"orders-{place}"): Lag(1, 1.0, lag_s) for place, lag_s in enumerate(seconds)}
        return WriteSpeedReport.of(WriteSpeeds(BEGAN, dict.fromkeys(lags, 1.0), lags=lags))

    assert view_of(speeds(3.0, 12.0, None)).lag_s == 12.0
    assert view_of(speeds(None)).lag_s is None
    behind = {partition("orders-0"): Lag(0, 0.0, 0.0), partition("orders-1"): Lag(9, 90.0, None)}
    assert view_of(WriteSpeedReport.of(WriteSpeeds(BEGAN, dict.fromkeys(behind, 0.0), lags=behind))).lag_s is None
    assert view_of().lag_s is None


def test_the_highest_lag_is_that_of_all_partitions_together_at_one_time() -> None:
    def lag(at: float, first: int, second: int) -> WriteSpeedReport:
        return write_speeds(BEGAN + at, dict.fromkeys(MOVE, 1.0), {"orders-0": first, "orders-1": second})

    view = view_of(lag(1, 90, 0), lag(3, 0, 80), lag(2, 60, 60))
    assert (view.lag, view.highest_lag) == (80, 120)
    assert view_of(lag(1, 5, 5), write_speeds(BEGAN + 2, {"orders-0": 1.0})).lag is None


def test_the_newest_speeds_count_and_are_sampled_in_order() -> None:
    view = view_of(
        write_speeds(BEGAN, {"orders-0": 1.0}),
        write_speeds(BEGAN + 2, {"orders-0": 3.0}),
        write_speeds(BEGAN + 1, {"orders-0": 2.0}),
    )
    assert view.total_speed == 3.0
    assert view.speed_over_time == (Sample(BEGAN, 1.0), Sample(BEGAN + 2, 3.0))


def test_the_highest_epoch_of_a_controller_is_known() -> None:
    claims = [ControllerClaim(epoch=epoch, incarnation="c", sent_at=BEGAN) for epoch in (4, 2)]
    assert view_of(*claims).controller_epoch == 4


def test_messages_from_before_the_run_are_left_aside() -> None:
    old: list[GroupMessage] = [
        write_speeds(BEGAN, {"orders-0": 1.0}, {"orders-0": 9}),
        report(1, BEGAN, "orders-0"),
        decision(1, BEGAN, MOVE),
        ControllerClaim(epoch=4, incarnation="c", sent_at=BEGAN),
    ]
    assert view_of(*old, since=BEGAN + 1) == view_of(since=BEGAN + 1)


names = st.sampled_from(["orders-0", "orders-1", "clicks-0"])
times = st.integers(0, 40).map(lambda second: BEGAN + second)
speeds = st.builds(
    write_speeds,
    times,
    st.dictionaries(names, st.none() | st.sampled_from([0.0, 1.0, 2.5])),
    st.dictionaries(names, st.integers(0, 9)),
)
claims = st.builds(
    lambda at, epoch: ControllerClaim(epoch=epoch, incarnation="c", sent_at=at), times, st.integers(0, 3)
)
consumer_reports = st.builds(
    lambda consumer, at, held, incarnation, state, with_cycle: report(
        consumer,
        at,
        *sorted(held),
        # Of one process, a later report has a higher sequence: what was sent at the same time is the same report.
        sequence=int(at - BEGAN),
        incarnation=incarnation,
        state=state,
        cycle=cycle(read("orders-0", at, at)) if with_cycle else None,
    ),
    st.integers(1, 3),
    times,
    st.sets(names),
    st.sampled_from("ab"),
    st.sampled_from(ConsumerState),
    st.booleans(),
)
plans = st.dictionaries(names, st.tuples(st.none() | st.integers(1, 3), st.integers(1, 3)))
decisions = st.builds(
    lambda at, plan, carried_out: decision(int(at - BEGAN), at, plan, carried_out=carried_out),
    times,
    plans,
    st.booleans(),
)


def identity(message: GroupMessage) -> tuple[object, ...]:
    """Two messages with the same are the same message."""
    fields = message.model_dump()
    kinds = ("kind", "consumer", "incarnation", "epoch", "number", "sequence", "measured_at")
    return tuple(fields.get(each) for each in kinds)


def told_apart(view: GroupView) -> GroupView:
    """Without the courses over time, which show what was known when."""
    return replace(view, consumers_over_time=(), speed_over_time=(), lag_over_time=())


@given(st.data())
def test_messages_late_or_twice_give_the_same_view(data: st.DataObject) -> None:
    any_message = st.one_of(speeds, claims, consumer_reports, decisions)
    sent: list[GroupMessage] = data.draw(st.lists(any_message, unique_by=identity, max_size=14))
    arrived = [*data.draw(st.permutations(sent)), *sent[:4]]
    assert told_apart(view_of(*arrived)) == told_apart(view_of(*sent))


@given(st.lists(st.one_of(speeds, consumer_reports, decisions), unique_by=identity, max_size=14))
def test_every_partition_of_interest_is_read_or_in_transit(sent: list[GroupMessage]) -> None:
    view = view_of(*sent)
    read_by = {held.partition for each in view.consumers if not each.silent for held in each.partitions}
    assert view.partitions <= read_by | {transit.partition for transit in view.unread}
    assert all(transit.reader != transit.target or transit.reader is None for transit in view.transits)


def test_the_story_ends_as_it_was_told() -> None:
    view = told(story()).view()
    assert [(consumer.consumer, len(consumer.partitions)) for consumer in view.consumers] == [(1, 7), (2, 4), (3, 0)]
    assert [str(each.partition) for each in view.transits if each.is_migration] == ["orders-3", "payments-2"]
    assert [sample.value for sample in view.consumers_over_time] == [0, 1, 2, 3]
    assert (view.totals.scale_ups, view.totals.scale_downs, view.totals.migrations) == (2, 0, 6)


def test_of_many_cycles_and_processes_each_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("domain.group_view.fold.CYCLES", 3)
    fold = GroupFold()
    for sequence in (1, 2, 4, 3, 5, 6, 2, 6, 7):
        fold.receive(report(1, BEGAN + sequence, sequence=sequence, cycle=cycle(size=10)))
    assert fold.view().bytes_written == 70
    for process in range(10):
        fold.receive(report(1, BEGAN + 10 + process, incarnation=f"process {process}", cycle=cycle(size=1)))
    assert fold.view().bytes_written == 80


def test_a_consumer_whose_clock_is_ahead_makes_nobody_silent() -> None:
    """Hole 22: silence was told by the newest time that anybody named."""
    fold = GroupFold(silent_after_s=40)
    for second in range(3):
        for consumer, ahead in ((1, 0), (2, -3600), (3, 60)):
            said = report(consumer, BEGAN + second + ahead, sequence=second)
            fold.receive(said, heard_at=BEGAN + second)
    assert [consumer.silent for consumer in fold.view().consumers] == [False, False, False]
    fold.pass_time(BEGAN + 43)
    assert fold.view().consumers == ()
