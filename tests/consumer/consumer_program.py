"""A consumer as a process of its own, which a fault may befall at a step of its choice.

All that it imports is imported once, in the process that consumers are forked from: a real process all the same, which
can be killed and frozen, without the seconds that imports take.
"""

import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import psutil

from consumer import runner
from consumer.command_sink import CommandSink
from consumer.lake import Lake
from consumer.offsets import GroupOffsets
from consumer.runner import run
from consumer.settings import ConsumerSettings
from tests.consumer.clock import Clock
from tests.patience import PATIENCE_S

STEPS: dict[str, tuple[type, str]] = {
    "look": (GroupOffsets, "committed"),
    "fence": (GroupOffsets, "fence"),
    "seal": (Lake, "seal"),
    "find": (Lake, "last_offsets"),
    "ask": (Lake, "last_appended"),
    "write": (Lake, "append"),
    "set aside": (Lake, "set_aside"),
    "commit": (GroupOffsets, "commit"),
    "obey": (GroupOffsets, "commit"),
}


def counts(step: str, arguments: tuple[Any, ...]) -> bool:
    """Whether a call is one of the step: a commit of the place among the commands is one by which it obeys."""
    if STEPS[step] != (GroupOffsets, "commit"):
        return True
    return (step == "obey") == any(not position.own for position in arguments[1].values())


def bring_about(fault: dict[str, Any], sink: type = Lake) -> None:
    """Before, during or after a call of a step, the process gets a signal; before and during it, so many seconds after
    the call was due."""
    owner, name = STEPS[fault["step"]]
    owner = sink if owner is Lake else owner
    original = getattr(owner, name)
    calls = 0

    def befall() -> None:
        os.kill(os.getpid(), getattr(signal, fault["signal"]))

    def wrapper(*arguments: Any) -> Any:
        nonlocal calls
        calls += counts(fault["step"], arguments)
        if calls != fault["call"] or not counts(fault["step"], arguments):
            return original(*arguments)
        if fault["when"] == "before":
            time.sleep(fault["seconds"])
            befall()
        if fault["when"] == "during":
            threading.Timer(fault["seconds"], befall).start()
        result = original(*arguments)
        if fault["when"] == "after":
            befall()
        return result

    setattr(owner, name, wrapper)


def play(
    arguments: dict[str, Any], settings: dict[str, Any], fault: dict[str, Any] | None, log: Path, clock: Clock
) -> None:
    """The whole life of the process."""
    with log.open("ab") as output:
        for standard in (1, 2):
            os.dup2(output.fileno(), standard)
    if fault is not None:
        bring_about(fault, CommandSink if settings.get("sink") == "command" else Lake)
    clock.serve()
    runner.LAST_REPORT_LIMIT_S = PATIENCE_S
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    run(**arguments, settings=ConsumerSettings(**settings), stop=stop)


_FORKED = multiprocessing.get_context("forkserver")
_FORKED.set_forkserver_preload([__name__, "pyspark.sql.connect.session"])


class ConsumerProgram:
    """A consumer that runs from now on, by a clock of its own; the arguments are those of `play`."""

    def __init__(
        self, arguments: dict[str, Any], settings: dict[str, Any], fault: dict[str, Any] | None, log: Path
    ) -> None:
        self.clock = Clock()
        self._process = _FORKED.Process(target=play, args=(arguments, settings, fault, log, self.clock))
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def frozen(self) -> bool:
        return psutil.Process(self.pid).status() == psutil.STATUS_STOPPED

    def wait(self, timeout_s: float) -> int | None:
        """The exit code, negative where a signal ended it; none if it still runs after so long."""
        self._process.join(timeout_s)
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
