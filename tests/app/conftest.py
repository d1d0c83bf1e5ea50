"""What tests of the application share."""

import threading
from collections.abc import Iterator

import pytest

from tests.app.receiver import Receive, Receiver


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
