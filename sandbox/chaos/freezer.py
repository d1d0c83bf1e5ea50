"""Stops processes for a while (SIGSTOP), and lets them go on (SIGCONT); or does anything else that is undone later."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import psutil


class Freezer:
    """What is broken for a while, and when that is over."""

    def __init__(self) -> None:
        self._undo: list[tuple[float, Callable[[], None]]] = []

    def freeze(self, process: psutil.Process, seconds: float) -> None:
        """Stops a process and those of its group that it started; one that has ended is left alone."""
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            group = os.getpgid(process.pid)
            for each in [process, *process.children(recursive=True)]:
                with suppress(psutil.NoSuchProcess, ProcessLookupError):
                    if os.getpgid(each.pid) == group:  # consumers are not of their controller's
                        each.suspend()
                        self.later(seconds, partial(_go_on, each))

    def later(self, seconds: float, undo: Callable[[], None]) -> None:
        """Has `undo` called when it is due."""
        self._undo.append((time.monotonic() + seconds, undo))

    def look_after(self) -> None:
        """Ends what is over. Called often."""
        self._end(time.monotonic())

    def end_all(self) -> None:
        """Ends everything now."""
        self._end(float("inf"))

    def _end(self, now: float) -> None:
        due = [undo for at, undo in self._undo if at <= now]
        self._undo = [(at, undo) for at, undo in self._undo if at > now]
        for undo in due:
            undo()


def _go_on(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        process.resume()
