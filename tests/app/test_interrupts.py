"""What the two signals do to a command, and work that a thread does while a context lasts."""

import signal
import threading

import pytest

from app.interrupts import Interrupts, stop_on_signals
from sandbox.background import Background
from tests.patience import PATIENCE_S

both = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


@both
def test_the_first_signal_asks_for_an_end_and_the_second_one_interrupts(number: signal.Signals) -> None:
    with stop_on_signals() as stop:
        assert not stop.is_set()
        signal.raise_signal(number)
        assert stop.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)


@both
def test_a_signal_interrupts_where_nobody_waits_for_the_event(number: signal.Signals) -> None:
    interrupts = Interrupts()
    with interrupts.handled():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        with interrupts.ask_first() as stop:
            signal.raise_signal(number)
            assert stop.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert interrupts.stop.is_set()


def test_whoever_handled_the_signals_before_handles_them_again() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(ZeroDivisionError), Interrupts().handled():
        raise ZeroDivisionError
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


class Counting(Background):
    def __init__(self) -> None:
        super().__init__("counting")
        self.began = threading.Event()
        self.ended = False

    def _work(self) -> None:
        self.began.set()
        assert self._stop.wait(PATIENCE_S)
        self.ended = True


def test_work_lasts_as_long_as_its_context_which_waits_for_its_end() -> None:
    with Counting() as work:
        assert work.began.wait(PATIENCE_S)
        assert not work.ended
    assert work.ended
    work.stop()


def test_work_ends_with_its_context_when_that_fails() -> None:
    work = Counting()
    with pytest.raises(ZeroDivisionError), work:
        raise ZeroDivisionError
    assert work.ended
