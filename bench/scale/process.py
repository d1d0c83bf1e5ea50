"""The controller in a process of its own, and what that process takes."""

import multiprocessing
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import psutil

from app import logs
from app.status.board import Board
from controller.fleet import Revisions
from controller.kafka import KafkaLink
from controller.runner import run
from controller.settings import ControllerSettings
from domain.assignment import ConsumerId
from domain.consumer_class import ORDINARY
from domain.topics import TopicNames
from solver import solve

GROUP = "scale"
NAMES = TopicNames()


class PipeFleet:
    """The controller's end of a pipe to whoever simulates its consumers."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._exist: frozenset[ConsumerId] = frozenset()

    def consumers(self) -> frozenset[ConsumerId]:
        while self._pipe.poll():
            self._exist -= self._pipe.recv()
        return self._exist

    def revisions(self) -> Revisions:
        return Revisions(None, frozenset())

    def create(self, consumer: ConsumerId, class_name: str = ORDINARY) -> None:  # noqa: ARG002
        self._exist |= {consumer}
        self._pipe.send(("create", consumer))

    def delete(self, consumer: ConsumerId) -> None:
        self._pipe.send(("delete", consumer))


def run_controller(servers: str, settings: ControllerSettings, pipe: Connection, log: str) -> None:
    """What the controller's process does until it is ended."""
    with Path(log).open("w", encoding="utf-8") as stream:
        logs.configure("controller", stream)
        link = KafkaLink(servers, GROUP, names=NAMES)
        run(settings, link, PipeFleet(pipe), solve, threading.Event(), audience=Board(GROUP, settings))


@contextmanager
def controller(servers: str, settings: ControllerSettings, folder: Path) -> Iterator[tuple[int, Connection]]:
    """The controller in a process of its own, once it has begun; its id, and the pipe to its fleet."""
    spawning = multiprocessing.get_context("spawn")
    ours, theirs = spawning.Pipe()
    log = folder / "controller.log"
    process = spawning.Process(target=run_controller, args=(servers, settings, theirs, str(log)), daemon=True)
    process.start()
    try:
        while not (log.exists() and "the controller begins" in log.read_text(encoding="utf-8")):
            if not process.is_alive():
                raise SystemExit("the controller ended before it began")
            time.sleep(0.1)
        yield process.pid or 0, ours
    finally:
        process.terminate()
        process.join()


class Watch:
    """A process: its CPU time, and the most memory that it was seen to take."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self.peak_bytes = 0

    @property
    def cpu_s(self) -> float:
        self.peak_bytes = max(self.peak_bytes, self._process.memory_info().rss)
        times = self._process.cpu_times()
        return times.user + times.system
