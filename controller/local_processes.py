"""Consumers as processes of this machine.

Each has a file in a folder of the group's that names its process and its class, so that a controller that begins finds
the consumers of the one before. A process is known by its number and the time it began: numbers are used again.

Two controllers may be at work, one of which does not know yet that it has been replaced; and one may be killed between
the start of a process and its file. So a file is only made where there is none, and only removed by who knows that its
process has ended; and a process that no file names is killed by the next controller that begins.
"""

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from controller.fleet import Began, FleetError, Revisions
from domain.assignment import ConsumerId
from domain.consumer_class import ORDINARY

MARK = "KCGA_CONSUMER_OF"
"""The environment variable that tells of a consumer's process, and of those that it starts, whose folder is theirs."""


@dataclass(slots=True)
class _Consumer:
    process: psutil.Process
    began: Began
    kill_at: float | None = None
    """On the monotonic clock; set once it was asked to leave."""


def running_consumers(folder: Path) -> dict[ConsumerId, psutil.Process]:
    """The consumers of a folder that run, by whichever controller, in ascending order."""
    numbers = sorted(int(number) for file in folder.glob("consumer-*.json") if (number := _number(file)).isdecimal())
    named = {number: _named(_file(folder, number)) for number in numbers}
    return {number: consumer.process for number, consumer in named.items() if consumer is not None}


def _file(folder: Path, consumer: ConsumerId) -> Path:
    return folder / f"consumer-{consumer}.json"


def _number(file: Path) -> str:
    return file.stem.removeprefix("consumer-")


def _named(file: Path) -> _Consumer | None:
    """The consumer that its file names, where its process still runs."""
    try:
        identity = json.loads(file.read_text())
        process = psutil.Process(identity["pid"])
        # Version 0.1 named no more than what is another once the clock is set.
        at = _moment(process) if "moment" in identity else process.create_time()
        same = at == identity.get("moment", identity["create_time"]) and process.status() != psutil.STATUS_ZOMBIE
        # Version 0.1 named neither.
        began = Began(str(identity.get("class", ORDINARY)), str(identity.get("revision", "")))
        consumer = _Consumer(process, began)
    except (OSError, ValueError, KeyError, TypeError, psutil.NoSuchProcess):
        return None
    return consumer if same else None


def _moment(process: psutil.Process) -> str:
    """When it began, counted from the start of the system, if that can be told: to set the clock changes nothing."""
    try:
        start = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        # Of what follows the program's name, which may have any character.
        ticks = Path(f"/proc/{process.pid}/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
    except FileNotFoundError:  # as on macOS, where the kernel keeps the time as it was
        return str(process.create_time())
    return f"{start}+{ticks}"


class LocalProcesses:
    """A fleet of local processes.

    Args:
        folder: where the files of the consumers and their logs are; made where it does not exist.
        command: the program and arguments that run consumer N of a class.
        grace_s: how long a consumer that was asked to leave may take before it is killed.
        revisions: a digest of what consumers of each class begin with now; None where that cannot be said just now.
    """

    def __init__(
        self,
        folder: Path,
        command: Callable[[ConsumerId, str], Sequence[str]],
        grace_s: float = 20.0,
        revisions: Callable[[], Mapping[str, str] | None] = lambda: None,
    ) -> None:
        self._folder = folder.resolve()
        self._command = command
        self._grace_s = grace_s
        self._revisions = revisions
        self._consumers: dict[ConsumerId, _Consumer] = {}
        self._folder.mkdir(parents=True, exist_ok=True)
        self._adopt_all()
        self._kill_strays()

    def consumers(self) -> frozenset[ConsumerId]:
        for consumer in list(self._consumers):
            self._look_after(consumer)
        return frozenset(self._consumers)

    def revisions(self) -> Revisions:
        return Revisions.of(self._revisions(), {consumer: entry.began for consumer, entry in self._consumers.items()})

    def create(self, consumer: ConsumerId, class_name: str = ORDINARY) -> None:
        if consumer in self._consumers:
            raise FleetError(f"consumer {consumer} exists already")
        self._adopt(consumer)
        if consumer in self._consumers:
            return  # another controller has begun it
        began = Began(class_name, (self._revisions() or {}).get(class_name, ""))
        try:
            process = self._begin(consumer, began)
        except (OSError, psutil.Error) as error:
            raise FleetError(f"consumer {consumer} could not be started: {error}") from error
        if process is not None:
            self._consumers[consumer] = _Consumer(process, began)
        else:
            self._adopt(consumer)

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
        while consumers := self.consumers():
            for consumer in consumers:
                self.delete(consumer)
            time.sleep(0.05)

    def _file(self, consumer: ConsumerId) -> Path:
        return _file(self._folder, consumer)

    def _begin(self, consumer: ConsumerId, began: Began) -> psutil.Process | None:
        """The consumer's process; none where another controller has begun it meanwhile."""
        process = self._start(consumer, began.class_name)
        placed = False
        try:
            placed = self._place(consumer, process, began)
        finally:
            if not placed:
                process.kill()
                process.wait()
        return process if placed else None

    def _start(self, consumer: ConsumerId, class_name: str) -> psutil.Process:
        with self._file(consumer).with_suffix(".log").open("ab") as log:
            started = subprocess.Popen(
                self._command(consumer, class_name),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | {MARK: str(self._folder)},
                start_new_session=True,
            )
        process = psutil.Process(started.pid)
        started.returncode = 0  # from here on psutil waits for it; Popen would warn that it still runs
        return process

    def _place(self, consumer: ConsumerId, process: psutil.Process, began: Began) -> bool:
        """Makes the consumer's file, at once and whole, unless there is one."""
        new = self._folder / f"{process.pid}.new"
        identity = {
            "pid": process.pid,
            "create_time": process.create_time(),
            "moment": _moment(process),
            "class": began.class_name,
            "revision": began.revision,
        }
        new.write_text(json.dumps(identity))
        try:
            os.link(new, self._file(consumer))
        except FileExistsError:
            return False
        finally:
            new.unlink()
        return True

    def _adopt(self, consumer: ConsumerId) -> None:
        """Takes over the consumer that its file names; a file that names no process is removed."""
        if not self._file(consumer).exists():
            return
        named = _named(self._file(consumer))
        if named is None:
            self._file(consumer).unlink(missing_ok=True)
        else:
            self._consumers[consumer] = named

    def _adopt_all(self) -> None:
        for file in sorted(self._folder.glob("consumer-*.json")):
            number = _number(file)
            if not number.isdecimal():
                file.unlink(missing_ok=True)
            elif int(number) not in self._consumers:
                self._adopt(int(number))

    def _kill_strays(self) -> None:
        known = {each.process.pid for each in self._consumers.values()}
        for consumer in list(self._consumers.values()):
            with suppress(psutil.Error):
                known.update(child.pid for child in consumer.process.children(recursive=True))
        for process in psutil.process_iter():
            # Whose environment cannot be read is no process of ours.
            with suppress(psutil.Error, OSError):
                if process.pid not in known and process.environ().get(MARK) == str(self._folder):
                    process.kill()

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
        if _named(self._file(consumer)) is None:  # or another controller has begun it again
            self._file(consumer).unlink(missing_ok=True)
