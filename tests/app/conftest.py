"""What tests of the application share."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app import groups
from app.settings import Settings
from controller.decide import backoff
from controller.runner import Audience
from tests.app.receiver import Receive, Receiver


class Controllers:
    """Stand for those of all groups; some of them cannot begin."""

    def __init__(self) -> None:
        self.failing: dict[str, Exception] = {}
        self.begun: list[str] = []

    def __call__(
        self, settings: Settings, _file: Path, stop: threading.Event, audience: Audience, _limited: Any
    ) -> None:
        fails = self.failing.get(settings.kafka.group)
        if fails is None:
            audience.leads(1)
        self.begun.append(settings.kafka.group)
        if fails is not None:
            raise fails
        stop.wait()


@pytest.fixture
def controllers(monkeypatch: pytest.MonkeyPatch) -> Controllers:
    stand_in = Controllers()
    monkeypatch.setattr(groups, "control", stand_in)
    monkeypatch.setattr(groups, "FIRST_PAUSE_S", 0.1)
    monkeypatch.setattr(backoff, "LONGEST_BACKOFF_S", 0.1)
    monkeypatch.setattr("app.telemetry.controller._recall", lambda *_: None)
    return stand_in


@pytest.fixture
def receive() -> Iterator[Receive]:
    made: list[tuple[Receiver, threading.Thread]] = []

    def begin(*answers: int) -> Receiver:
        receiver = Receiver(*answers)
        thread = threading.Thread(target=receiver.server.serve_forever)
        thread.start()
        made.append((receiver, thread))
        return receiver

    yield begin
    for receiver, thread in made:
        receiver.answers.set()
        receiver.server.shutdown()
        thread.join()
        receiver.server.server_close()
