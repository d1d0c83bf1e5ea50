"""Consumers as processes of this machine.

Each has a file in a folder of the group's that names its process, so that a controller that begins finds the consumers
of the one before. A process is known by its number and the time it began: numbers are used again.
"""

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from controller.fleet import FleetError
from domain.assignment import ConsumerId


@dataclass(slots=True)
class _Consumer:
    process: psutil.Process
    kill_at: float | None = None
    """On the monotonic clock; set once it was asked to leave."""


class LocalProcesses:
    """A fleet of local processes.

    Args:
        folder: where the files of the consumers and their logs are; made where it does not exist.
        command: the program and arguments that run consumer N.
        grace_s: how long a consumer that was asked to leave may take before it is killed.
    """

    def __init__(self, folder: Path, command: Callable[[ConsumerId], Sequence[str]], grace_s: float = 20.0) -> None:
        self._folder = folder
        self._command = command
        self._grace_s = grace_s
        self._consumers: dict[ConsumerId, _Consumer] = {}
        folder.mkdir(parents=True, exist_ok=True)
        for file in sorted(folder.glob("*.json")):
            self._adopt(file)

    def consumers(self) -> frozenset[ConsumerId]:
        for consumer in list(self._consumers):
            self._look_after(consumer)
        return frozenset(self._consumers)

    def create(self, consumer: ConsumerId) -> None:
        if consumer in self._consumers:
            raise FleetError(f"consumer {consumer} exists already")
        try:
            with self._log_file(consumer).open("ab") as log:
                started = subprocess.Popen(
                    self._command(consumer), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
            process = psutil.Process(started.pid)
            identity = {"pid": process.pid, "create_time": process.create_time()}
            file = self._file(consumer)
            file.with_suffix(".new").write_text(json.dumps(identity))
            file.with_suffix(".new").replace(file)
        except (OSError, psutil.Error) as error:
            raise FleetError(f"consumer {consumer} could not be started: {error}") from error
        started.returncode = 0  # from here on psutil waits for it; Popen would warn that it still runs
        self._consumers[consumer] = _Consumer(process)

    def delete(self, consumer: ConsumerId) -> None:
        entry = self._consumers.get(consumer)
        if entry is not None and entry.kill_at is None:
            entry.kill_at = time.monotonic() + self._grace_s
            try:
                entry.process.terminate()
            except psutil.NoSuchProcess:
                self._forget(consumer)

    def close(self) -> None:
        """Ends all consumers and waits until they have ended."""
        for consumer in self.consumers():
            self.delete(consumer)
        while self.consumers():
            time.sleep(0.05)

    def _file(self, consumer: ConsumerId) -> Path:
        return self._folder / f"consumer-{consumer}.json"

    def _log_file(self, consumer: ConsumerId) -> Path:
        return self._folder / f"consumer-{consumer}.log"

    def _adopt(self, file: Path) -> None:
        """Takes over the consumer that the file names, where it still runs."""
        try:
            consumer = int(file.stem.removeprefix("consumer-"))
            identity = json.loads(file.read_text())
            process = psutil.Process(identity["pid"])
            same = process.create_time() == identity["create_time"] and process.status() != psutil.STATUS_ZOMBIE
        except (OSError, ValueError, KeyError, TypeError, psutil.NoSuchProcess):
            same = False
        if same:
            self._consumers[consumer] = _Consumer(process)
        else:
            file.unlink(missing_ok=True)

    def _look_after(self, consumer: ConsumerId) -> None:
        """Notices that a consumer has ended, and kills one that was asked to leave and did not."""
        entry = self._consumers[consumer]
        try:
            entry.process.wait(timeout=0)
        except psutil.TimeoutExpired:
            if entry.kill_at is not None and time.monotonic() > entry.kill_at:
                entry.process.kill()
            return
        except psutil.NoSuchProcess:
            pass
        self._forget(consumer)

    def _forget(self, consumer: ConsumerId) -> None:
        del self._consumers[consumer]
        self._file(consumer).unlink(missing_ok=True)
