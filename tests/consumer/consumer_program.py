"""A consumer as a process of its own, which a fault may befall at a step of its choice.

Its arguments are one JSON object: those of `run`, and `fault`, which may be null.
"""

import json
import os
import signal
import sys
import threading
from typing import Any

from consumer.channel import CommandReader
from consumer.lake import Lake
from consumer.offsets import GroupOffsets
from consumer.runner import run
from consumer.settings import ConsumerSettings

STEPS: dict[str, tuple[type, str]] = {
    "look": (GroupOffsets, "committed"),
    "fence": (GroupOffsets, "fence"),
    "seal": (Lake, "seal"),
    "find": (Lake, "last_offsets"),
    "ask": (Lake, "last_appended"),
    "write": (Lake, "append"),
    "commit": (GroupOffsets, "commit"),
    "persist": (CommandReader, "persist"),
}


def bring_about(fault: dict[str, Any]) -> None:
    """Before, during (so many seconds after the beginning of) or after a call of a step, the process gets a signal."""
    owner, name = STEPS[fault["step"]]
    original = getattr(owner, name)
    calls = 0

    def befall() -> None:
        os.kill(os.getpid(), getattr(signal, fault["signal"]))

    def wrapper(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls != fault["call"]:
            return original(*arguments)
        if fault["when"] == "before":
            befall()
        if fault["when"] == "during":
            threading.Timer(fault["seconds"], befall).start()
        result = original(*arguments)
        if fault["when"] == "after":
            befall()
        return result

    setattr(owner, name, wrapper)


if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    fault = arguments.pop("fault")
    if fault is not None:
        bring_about(fault)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    run(**arguments | {"settings": ConsumerSettings(**arguments["settings"]), "stop": stop})
