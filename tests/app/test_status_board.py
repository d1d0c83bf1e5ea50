"""What the status page and the probes are told of the group."""

import pytest

from app.status.board import FULL_DECISIONS, HUNG_S, LIVE_S, Board
from controller.decide.machine import State
from controller.runner import Audience
from controller.settings import ControllerSettings
from domain.group_view.picture import ConsumerPicture, course
from domain.group_view.view import Sample
from domain.messages import ControllerClaim, Foresight
from tests.app.status_messages import (
    SETTINGS,
    Clock,
    board_of_classes,
    claim_with_parked,
    registry_of,
    told_board,
)
from tests.app.test_status_metrics import value
from tests.sandbox.watch_messages import BEGAN, decision, report, resting, write_speeds


def consumer(board: Board, number: int) -> ConsumerPicture:
    (found,) = (each for each in board.picture().consumers if each.consumer == number)
    return found


def test_a_partition_on_the_move_is_marked_where_it_is_and_awaited_where_it_goes() -> None:
    board = told_board()
    (leaving,) = (each for each in consumer(board, 1).partitions if each.to is not None)
    assert (leaving.topic, leaving.partition, leaving.to) == ("orders", 0, 3)
    new = consumer(board, 3)
    assert (new.state, new.partitions) == ("awaited", ())
    assert [(each.topic, each.partition, each.source) for each in new.awaits] == [("orders", 0, 1)]
    assert board.picture().moving == 1


def test_what_is_oversized_or_of_unknown_speed_is_marked() -> None:
    board = told_board()
    assert [each.oversized for each in consumer(board, 2).partitions] == [True]
    assert [each.speed for each in consumer(board, 1).partitions if each.topic == "clicks"] == [20.0, None]
    shown = board.picture()
    assert (shown.oversized, shown.unknown, shown.partitions) == (1, 1, 6)


def test_the_capacity_that_is_shown_is_the_one_that_was_decided_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under `auto` the page showed the floor, and called partitions oversized that the controller did not."""
    monkeypatch.setattr("app.status.board.PICTURE_S", 0.0)
    settings = ControllerSettings.model_validate({"consumer_capacity": "auto", "capacity_floor": 100.0})
    board = Board("billing", settings, Clock())
    board.heard(write_speeds(BEGAN, {"orders-0": 150.0}))
    assert (board.picture().capacity, board.picture().oversized) == (100.0, 1)
    board.decided(decision(1, BEGAN, {"orders-0": (None, 1)}).model_copy(update={"capacity": 200.0}))
    board.heard(write_speeds(BEGAN + 1, {"orders-0": 150.0}))
    shown = board.picture()
    assert (shown.capacity, shown.packing_capacity, shown.oversized, shown.fewest_consumers) == (200.0, 150.0, 0, 1)


def test_each_consumer_is_shown_against_the_capacity_of_its_class() -> None:
    board = board_of_classes(large=130.0, ordinary=30.0)
    shown = board.picture()
    assert [(each.class_name, each.capacity) for each in shown.consumers] == [("large", 400.0), ("ordinary", 100.0)]
    assert (shown.capacity, shown.oversized, shown.fewest_consumers) == (100.0, 0, 1)
    registry = registry_of(board)
    assert registry.get_sample_value("kcga_consumers_of_class", {"group": "billing", "class": "large"}) == 1


def test_no_assignment_has_fewer_consumers_than_the_lower_bound() -> None:
    assert told_board().picture().fewest_consumers == 2


def test_a_partition_that_nobody_reads_is_named() -> None:
    board = Board("billing", SETTINGS, Clock())
    board.heard(write_speeds(BEGAN, {"orders-0": 1.0}))
    (unread,) = board.picture().unread
    assert (unread.topic, unread.partition, unread.to) == ("orders", 0, None)


def test_where_nobody_has_to_read_no_partition_counts_as_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.status.board.PICTURE_S", 0.0)
    board = Board("billing", SETTINGS, Clock())
    board.heard(write_speeds(BEGAN, {"orders-0": 0.0}))
    board.heard(resting(1, rests=True))
    shown = board.picture()
    assert (shown.rests, shown.unread) == (True, ())
    assert registry_of(board).get_sample_value("kcga_partitions_unread", {"group": "billing"}) == 0
    board.heard(resting(2, rests=False))
    assert len(board.picture().unread) == 1


def test_a_picture_is_made_anew_only_after_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.status.board.PICTURE_S", 0.0)
    board = told_board()
    first = board.picture()
    assert board.picture() is first
    board.heard(report(2, BEGAN + 2, sequence=2))
    assert board.picture().version > first.version
    assert consumer(board, 2).partitions == ()


def test_what_is_parked_is_told_and_is_neither_unread_nor_load() -> None:
    board = told_board()
    board.heard(report(1, BEGAN, sequence=2).model_copy(update={"dead_letters": 3}))
    board.heard(report(2, BEGAN, "orders-9", sequence=2).model_copy(update={"dead_letters": 2}))
    board.heard(claim_with_parked("clicks", "orders"))
    board.heard(write_speeds(BEGAN, {"orders-9": 130.0, "orders-1": 90.0, "other-0": 1.0}))
    shown = board.picture()
    assert [(each.topic, each.reason) for each in shown.parked] == [
        ("clicks", "clicks: another type"),
        ("orders", "orders: another type"),
    ]
    assert (shown.dead_letters, [each.topic for each in shown.unread], shown.fewest_consumers) == (5, ["other"], 1)
    assert value(registry_of(board), "kcga_topic_parked", topic="orders") == 1
    assert value(registry_of(board), "kcga_topic_parked", topic="other") is None


def test_what_is_on_trial_is_not_parked() -> None:
    board = told_board()
    board.heard(claim_with_parked("orders", at=BEGAN + 61))
    assert board.picture().parked == ()


def test_how_what_was_foreseen_came_out_is_kept_with_the_decision() -> None:
    board, made = told_board(), decision(3, BEGAN + 2, {"orders-0": (1, 1), "orders-1": (1, 2)}, epoch=7)
    first, second = made.assignment
    growing = second.model_copy(update={"speed": 60.0, "foreseen": 20.0})
    foresight = Foresight(horizon_s=25.0, quantile=0.9, partitions=1, due=0, held=0)
    changes = {"assignment": (first, growing), "foresight": foresight, "measured_at": BEGAN}
    board.decided(made.model_copy(update=changes))
    board.heard(write_speeds(BEGAN + 24, {"orders-1": 50.0}))
    assert board.came(7, 3) is None
    for at, speed in ((BEGAN + 25, 58.0), (BEGAN + 26, 70.0)):
        board.heard(write_speeds(at, {"orders-1": speed}))
        assert board.came(7, 3) == 58.0
    assert board.came(7, 2) is None


def test_a_leader_is_ready_as_long_as_speeds_are_fresh() -> None:
    clock = Clock()
    board = Board("billing", SETTINGS, clock)
    assert "not known yet" in board.ready().reason
    board.leads(1)
    assert "no write speeds yet" in board.ready().reason
    board.heard(write_speeds(BEGAN, {"orders-0": 1.0}))
    assert board.ready().ok
    clock.now += SETTINGS.speeds_timeout_s + 1
    board.heard(ControllerClaim(epoch=1, incarnation="this one", sent_at=clock.now))
    assert not board.ready().ok
    assert "31 s old" in board.ready().reason


def test_a_leader_is_ready_as_long_as_it_hears_its_own_claims() -> None:
    clock = Clock()
    board = told_board(clock)
    clock.now += LIVE_S + 1
    assert "no claim of this controller" in board.ready().reason
    board.heard(ControllerClaim(epoch=6, incarnation="the one before", sent_at=clock.now))
    assert not board.ready().ok
    board.heard(ControllerClaim(epoch=7, incarnation="this one", sent_at=clock.now))
    assert board.ready().ok


def test_a_controller_that_does_nothing_is_not_alive() -> None:
    clock = Clock()
    board = told_board(clock)
    clock.now += HUNG_S + 1
    assert not board.alive().ok
    board.turned(clock.now, State.SENTINEL, paused=False)
    assert board.alive().ok


def test_a_controller_that_stands_by_is_ready_without_speeds() -> None:
    board = Board("billing", SETTINGS, Clock())
    board.stands_by()
    assert board.ready().ok
    assert board.picture().controller.role == "standby"


def test_decisions_from_before_are_shown_and_not_counted() -> None:
    board = told_board()
    board.recall([decision(1, BEGAN - 60, {"orders-0": (None, 1)}, epoch=6)])
    assert [(each.epoch, each.number) for each in board.decisions(None, 10)] == [(7, 2), (7, 1), (6, 1)]
    assert [(each.epoch, each.number) for each in board.decisions((7, 1), 10)] == [(6, 1)]
    counts = board.reading().counts
    assert (counts.carried_out, counts.migrations, counts.scale_ups) == (2, 1, 1)


def test_old_decisions_stay_in_the_list_when_they_can_no_longer_be_opened() -> None:
    board = Board("billing", SETTINGS, Clock())
    for number in range(1, FULL_DECISIONS + 3):
        board.decided(decision(number, BEGAN + number, {"orders-0": (1, 1)}, carried_out=False))
    assert board.decision(1, 2) is None
    assert board.decision(1, 3) is not None
    assert len(board.decisions(None, 1_000)) == FULL_DECISIONS + 2


def test_a_course_keeps_its_peaks_and_where_it_came_from() -> None:
    samples = [Sample(at, 100.0 if at == 137 else 1.0) for at in range(1_000)]
    thinned = course(samples, since=100, most=50)
    assert len(thinned) <= 52
    assert (137, 100.0) in thinned
    assert thinned[0] == (99, 1.0)
    assert list(thinned) == sorted(thinned)


def test_an_audience_that_does_nothing_is_enough() -> None:
    audience = Audience()
    audience.leads(1)
    audience.heard(report(1, BEGAN))
    audience.decided(decision(1, BEGAN, {}))
    audience.turned(BEGAN, State.SENTINEL, paused=False)


def test_the_board_takes_nobody_for_silent_because_another_clock_is_ahead() -> None:
    """Hole 22: the page called all others silent."""
    clock = Clock()
    board = Board("billing", SETTINGS, clock)
    for consumer, ahead in ((1, 0), (2, 60)):
        board.heard(report(consumer, BEGAN + ahead))
    assert [consumer.state for consumer in board.picture().consumers] == ["ready", "ready"]
