"""How a command ends on Ctrl-C (SIGINT) and SIGTERM."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """What the two signals do: they interrupt, as Ctrl-C does; while `stop` is waited for, the first one sets it."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._waited_for = False

    @contextmanager
    def handled(self) -> Iterator[None]:
        """The signals are handled here within the context."""
        numbers = (signal.SIGINT, signal.SIGTERM)
        previous = {number: signal.signal(number, self._handle) for number in numbers}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    @contextmanager
    def ask_first(self) -> Iterator[threading.Event]:
        """Within the context the first signal sets the event that is returned, and a second one interrupts."""
        self._waited_for = True
        try:
            yield self.stop
        finally:
            self._waited_for = False

    def _handle(self, _signal: int, _frame: FrameType | None) -> None:
        if self._waited_for and not self.stop.is_set():
            self.stop.set()
        else:
            raise KeyboardInterrupt


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """An event that the first SIGTERM or SIGINT sets; a second one interrupts."""
    interrupts = Interrupts()
    with interrupts.handled(), interrupts.ask_first() as stop:
        yield stop
