"""How far others' clocks are from one's own, by what arrives; and that it decides nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.group_view.clocks import TOLERATED_S, WINDOW_S, Clocks, Sender, apart
from domain.messages import ControlAction, ControllerClaim, ControlRequest
from tests.app.status_messages import SETTINGS, Clock, registry_of, told_board
from tests.sandbox.watch_messages import BEGAN, decision, report, write_speeds

MONITOR, CONSUMER = Sender("monitor"), Sender("consumer", 3)


@pytest.mark.parametrize("skew_s", [-3600.0, -6.0, 0.0, 6.0, 3600.0])
def test_time_on_the_way_is_no_difference_of_clocks(skew_s: float) -> None:
    """Issue 18: messages that were held up for half a minute say nothing of the monitor's clock."""
    clocks = Clocks()
    for second, on_its_way_s in enumerate((0.2, 30.0, 12.0, 0.1, 4.0, 25.0)):
        clocks.heard(write_speeds(BEGAN + second + skew_s - on_its_way_s, {}), BEGAN + second)
    assert clocks.ahead_s(BEGAN + 6) == {MONITOR: pytest.approx(skew_s - 0.1)}
    assert set(apart(clocks.ahead_s(BEGAN + 6))) == ({MONITOR} if abs(skew_s) > TOLERATED_S else set())


def test_a_clock_that_is_set_right_and_a_sender_that_is_gone_are_forgotten() -> None:
    clocks = Clocks()
    clocks.heard(report(3, BEGAN + 60), BEGAN)
    clocks.heard(write_speeds(BEGAN, {}), BEGAN)
    clocks.heard(report(3, BEGAN + WINDOW_S / 2, sequence=2), BEGAN + WINDOW_S / 2)
    assert clocks.ahead_s(BEGAN + WINDOW_S / 2) == {CONSUMER: 60, MONITOR: 0}
    assert clocks.ahead_s(BEGAN + WINDOW_S) == {CONSUMER: 0}
    assert clocks.ahead_s(BEGAN + 2 * WINDOW_S) == {}


def test_only_components_have_clocks_here() -> None:
    clocks = Clocks()
    clocks.heard(ControlRequest(action=ControlAction.PAUSE, sent_at=BEGAN), BEGAN)
    clocks.heard(decision(1, BEGAN, {}), BEGAN)
    assert clocks.ahead_s(BEGAN) == {}
    clocks.heard(ControllerClaim(epoch=1, incarnation="a", sent_at=BEGAN), BEGAN)
    assert [str(sender) for sender in clocks.ahead_s(BEGAN)] == ["the controller"]


@given(st.lists(st.tuples(st.floats(0, 30), st.floats(-100, 100)), max_size=30))
def test_it_is_the_most_of_the_window(steps: list[tuple[float, float]]) -> None:
    clocks, now, seen = Clocks(), BEGAN, list[tuple[float, float]]()
    for passed_s, ahead_s in steps:
        now += passed_s
        said = write_speeds(now + ahead_s, {})
        clocks.heard(said, now)
        seen.append((now, said.measured_at - now))
        assert clocks.ahead_s(now) == {MONITOR: max(ahead for at, ahead in seen if at > now - WINDOW_S)}


def test_the_page_names_the_worst_first_and_the_figures_name_all() -> None:
    """Issue 18: a difference above a few seconds is a warning on the page and in metrics."""
    clock = Clock()
    board = told_board(clock)
    clock.now += WINDOW_S
    board.heard(write_speeds(clock.now - 3600, {"orders-0": 1.0}))
    board.heard(report(1, clock.now + 6, sequence=2))
    board.heard(report(2, clock.now + 2, sequence=2))
    shown = board.picture()
    assert [(each.sender, each.ahead_s) for each in shown.clocks] == [("the monitor", -3600), ("consumer 1", 6)]
    registry = registry_of(board)
    labels = {"group": "billing", "sender": "monitor", "consumer": ""}
    assert registry.get_sample_value("kcga_clock_ahead_seconds", labels) == -3600
    labels = {"group": "billing", "sender": "consumer", "consumer": "2"}
    assert registry.get_sample_value("kcga_clock_ahead_seconds", labels) == 2


@pytest.mark.parametrize("skew_s", [-3600.0, 3600.0])
def test_the_page_shows_the_newest_speeds_whatever_the_clock_of_the_monitor_says(skew_s: float) -> None:
    """Issue 18: the page took what a monitor told whose clock was set back for old, and showed other speeds."""
    clock = Clock()
    board = told_board(clock)
    clock.now += 1
    board.heard(write_speeds(clock.now + skew_s, {"orders-0": 77.0}))
    clock.now += 1
    shown = board.picture()
    assert (shown.total_speed, shown.speeds_at, shown.measured_at) == (77, BEGAN + 1, BEGAN + 1 + skew_s)
    assert registry_of(board).get_sample_value("kcga_speeds_age_seconds", {"group": "billing"}) == 1
    assert board.history().speed[-1] == (BEGAN + 1, 77)
    assert board.ready().ok


def test_a_process_that_comes_later_is_the_newer_one_whatever_its_clock_says() -> None:
    """Issue 18: of a consumer that went on where the clock is behind, the page showed the old process."""
    clock = Clock()
    board = told_board(clock)
    clock.now += SETTINGS.heartbeat_timeout_s + 1
    board.heard(report(1, clock.now - 3600, "orders-1", incarnation="b"))
    (one,) = (each for each in board.picture().consumers if each.consumer == 1)
    assert (one.state, len(one.partitions)) == ("ready", 1)


def test_what_was_said_before_says_nothing_of_clocks() -> None:
    clock = Clock()
    board = told_board(clock)
    board.heard_before(BEGAN - 1, report(1, BEGAN - 40, sequence=2))
    board.heard_before(BEGAN - 1, write_speeds(BEGAN + 40, {"orders-0": 1.0}))
    assert board.picture().clocks == ()
    assert set(board.reading().ahead_s.values()) == {0.0}
