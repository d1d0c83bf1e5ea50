"""A controller that gets a signal when it sends a certain command for the first time, before or after that:
`python -m tests.fire.struck_controller SIGKILL before start FILE`, with the settings in FILE.
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from app import logs
from app.components import run_controller
from controller.kafka import KafkaLink, Sent
from domain.messages import Action, ConsumerCommand


def strike(number: signal.Signals, when: str, action: Action) -> None:
    """Brings it about."""
    original = KafkaLink.send
    struck = False

    def send(self: KafkaLink, messages: Sequence[Sent]) -> None:
        nonlocal struck
        due = not struck and any(isinstance(each, ConsumerCommand) and each.action is action for each in messages)
        struck |= due
        if due and when == "before":
            os.kill(os.getpid(), number)
        original(self, messages)
        if due and when == "after":
            os.kill(os.getpid(), number)

    KafkaLink.send = send  # type: ignore[method-assign]


if __name__ == "__main__":
    logs.configure("controller")
    strike(signal.Signals[sys.argv[1]], sys.argv[2], Action(sys.argv[3]))
    run_controller(Path(sys.argv[4]))
