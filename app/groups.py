"""Several groups controlled by one process, each in a thread of its own, as if it were alone.

What ends the controller of one group, a setting that is wrong or a topic that is gone, ends no other: it is begun anew,
after a pause that grows, with its settings read again.
"""

import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import structlog

from app import observe
from app.components import control
from app.errors import KcgaError, UsageError
from app.interrupts import stop_on_signals
from app.settings import Settings, load
from app.status.groups import ShownGroup, make_groups_app
from app.telemetry.controller import shown_with_others
from app.telemetry.exporter import listening
from app.telemetry.process import process_registry
from app.watch.decide.watcher import Moment
from controller.decide.backoff import Backoff
from controller.fleet import ConsumerFleet, FleetError, Revisions
from controller.runner import Audience, Audiences
from domain.assignment import ConsumerId
from domain.consumer_class import ORDINARY

log = structlog.get_logger(__name__)

NAME = re.compile(r"[A-Za-z0-9._-]+")
FIRST_PAUSE_S = 1.0
LOOK_EVERY_S = 2.0
"""So often settings files are looked at. A change is taken up once it was the same twice: it is written by then."""
STEADY_S = 60.0
"""A controller that was at work for so long ended for another reason than the one before it."""
END_WITHIN_S = 20.0


def run_controllers(paths: Sequence[Path], most_consumers: int | None = None) -> None:
    """Controls the groups of these settings files until the process is asked to end. Files of a folder may come, change
    and go meanwhile.

    What `[http]` of the first file says holds for the page of all; of the others only who may operate the own group.

    Args:
        paths: files, one for each group, and folders of them.
        most_consumers: of all groups together; no limit where there is none.

    Raises:
        UsageError: a file has a name that is none for a group, or none of the files is right.
        KcgaError: the port cannot be had.
    """
    groups = Groups(paths, Together(most_consumers))
    http = _first_right(settings_files(paths)).http
    with ExitStack() as stack:
        if http.controller_port is not None:
            server = listening(http, http.controller_port, "the page of all groups")
            stack.enter_context(server.serve(make_groups_app(groups, process_registry())))
        with stop_on_signals() as stop:
            groups.look()
            while not stop.wait(LOOK_EVERY_S):
                groups.look_again()
            end(list(groups), END_WITHIN_S)


def settings_files(paths: Sequence[Path]) -> list[Path]:
    """The files, and those in folders.

    Raises:
        UsageError: a folder has none.
    """
    found = list[Path]()
    for path in paths:
        files = sorted(path.glob("*.toml")) if path.is_dir() else [path]
        if not files:
            raise UsageError(f"there is no settings file in {path}: it must have a file NAME.toml for each group")
        found += files
    return found


def end(keepers: Sequence["GroupKeeper"], within_s: float) -> None:
    """Has all controllers end, and waits for that; one that waits for brokers still ends with the process."""
    for keeper in keepers:
        keeper.stop()
    deadline = time.monotonic() + within_s
    for keeper in keepers:
        keeper.join(max(0.0, deadline - time.monotonic()))


def named(files: Sequence[Path]) -> dict[str, Path]:
    """The files by the names of their groups, which are those of the files.

    Raises:
        UsageError: one is none for a group, or two are the same.
    """
    found: dict[str, Path] = {}
    for file in files:
        name = file.stem
        if not NAME.fullmatch(name):
            raise UsageError(
                f"{file}: the name of a settings file must be of letters, digits, ., _ and - for its group"
            )
        if name in found:
            raise UsageError(f"{found[name]} and {file} have the same name: each group must have one of its own")
        found[name] = file
    return found


def _first_right(files: Sequence[Path]) -> Settings:
    """The settings of the first file that can be read. A wrong one harms its own group alone, but all must not be.

    Raises:
        UsageError: none can be.
    """
    errors = list[UsageError]()
    for file in files:
        try:
            return load(file)
        except UsageError as error:
            errors.append(error)
    raise errors[0]


class Together:
    """What groups of one process share: no two are the same, and all together have so many consumers at most."""

    def __init__(self, most_consumers: int | None = None) -> None:
        self._most_consumers = most_consumers
        self._changing = threading.Lock()
        self._owners: dict[str, Path] = {}
        self._fleets: dict[Path, LimitedFleet] = {}

    def enter(self, file: Path, settings: Settings) -> None:
        """The group is controlled from now on, by what this file says.

        Raises:
            UsageError: another file is of the same group, or has its processes in the same folder.
        """
        kafka = settings.kafka
        owns = [f"of the group {kafka.group!r} of {kafka.bootstrap_servers}: each group must have one file"]
        if settings.fleet == "local" and not settings.controller.observes:
            folder = settings.local.folder
            owns.append(f"those of local.folder {folder.resolve()}: each group must have a folder of its own")
        with self._changing:
            for what in owns:
                if (other := self._owners.get(what, file)) != file:
                    raise UsageError(f"{other} and {file} are both {what}")
            self._owners.update(dict.fromkeys(owns, file))

    def leave(self, file: Path) -> None:
        with self._changing:
            self._owners = {what: owner for what, owner in self._owners.items() if owner != file}
            self._fleets.pop(file, None)

    def limited(self, file: Path, fleet: ConsumerFleet) -> ConsumerFleet:
        """The group's fleet, which creates a consumer only where all together may have one more."""
        with self._changing:
            self._fleets[file] = LimitedFleet(fleet, self)
            return self._fleets[file]

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """A consumer is created within the context, and no other one is.

        Raises:
            FleetError: there are as many as may be.
        """
        with self._changing:
            there_are = sum(len(fleet.there_are) for fleet in self._fleets.values())
            if self._most_consumers is not None and there_are >= self._most_consumers:
                raise FleetError(f"all groups of this process together have {there_are} consumers, as many as they may")
            yield


class LimitedFleet:
    """A fleet that shares a limit with others."""

    def __init__(self, fleet: ConsumerFleet, together: Together) -> None:
        self.there_are: frozenset[ConsumerId] = frozenset()
        """As its controller's thread has seen them last: others read this one."""
        self._fleet = fleet
        self._together = together

    def consumers(self) -> frozenset[ConsumerId]:
        self.there_are = self._fleet.consumers()
        return self.there_are

    def revisions(self) -> Revisions:
        return self._fleet.revisions()

    def create(self, consumer: ConsumerId, class_name: str = ORDINARY) -> None:
        with self._together.one_more():
            self._fleet.create(consumer, class_name)
            self.there_are |= {consumer}

    def delete(self, consumer: ConsumerId) -> None:
        self._fleet.delete(consumer)


class Groups:
    """The groups of settings files that come, change and go: each is as if it were alone.

    It is looked at from one thread, and iterated over in any.

    Args:
        paths: files, and folders of them.
        together: what the groups share.
    """

    def __init__(self, paths: Sequence[Path], together: Together) -> None:
        self._paths = paths
        self._together = together
        self._kept: dict[str, GroupKeeper] = {}
        self._ending: dict[str, GroupKeeper] = {}
        self._taken: dict[str, bytes | None] = {}
        """What was read of each file and acted upon."""
        self._seen: dict[str, bytes | None] = {}
        """What was read of each file when it was looked at last."""
        self._fault: str | None = None

    def __iter__(self) -> Iterator["GroupKeeper"]:
        return iter(list(self._kept.values()))

    def look_again(self) -> None:
        """Takes up what has changed. Where files cannot be told apart, or there is none any more, all stays."""
        try:
            self.look()
        except UsageError as error:
            if str(error) != self._fault:
                log.error("settings files are not taken up", reason=str(error))
            self._fault = str(error)
        else:
            self._fault = None

    def look(self) -> None:
        """Takes up what has changed.

        Raises:
            UsageError: a file has a name that is none for a group, two have the same, or a folder has no file.
        """
        files = named(settings_files(self._paths))
        seen, self._seen = self._seen, {name: _content(file) for name, file in files.items()}
        self._ending = {name: keeper for name, keeper in self._ending.items() if keeper.at_work}
        for name in self._kept.keys() - files.keys():
            log.info("a settings file is gone: its group is not controlled any more", group=name)
            self._ending[name] = self._kept.pop(name)
            self._ending[name].stop()
        for name in files.keys() - self._kept.keys() - self._ending.keys():
            self._taken[name] = self._seen[name]
            self._kept[name] = GroupKeeper(name, files[name], self._together)
            self._kept[name].begin()
        for name, keeper in self._kept.items():
            if self._taken[name] != self._seen[name] == seen.get(name):
                self._taken[name] = self._seen[name]
                keeper.take_up()


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None


class GroupKeeper(Audience):
    """Has one group controlled for as long as the process runs; see `app.status.groups.Kept`."""

    def __init__(self, name: str, file: Path, together: Together) -> None:
        self.name = name
        self.file = file
        self.shown: ShownGroup | None = None
        self._fault: str | None = None
        """Of its controller."""
        self._file_fault: str | None = None
        """Of the newest settings, while its controller goes on with those before."""
        self._together = together
        self._stopping = threading.Event()
        self._woken = threading.Event()
        """It is to stop, or its settings have changed."""
        self._ends = threading.Event()
        """Has the controller that is at work end; another one sets it, too, that takes the group's Lease."""
        self._thread = threading.Thread(target=self._keep, name=name, daemon=True)

    @property
    def fault(self) -> str | None:
        return self._file_fault or self._fault

    def begin(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._wake()

    def take_up(self) -> None:
        """Its settings have changed: its controller is begun anew, unless they are wrong and it is at work."""
        try:
            load(self.file)
        except UsageError as error:
            log.error(
                "settings have changed and are wrong: the group is controlled by those before",
                group=self.name,
                reason=str(error),
            )
            self._file_fault = str(error)
        else:
            self._file_fault = None
            log.info("settings have changed: the controller of their group begins anew", group=self.name)
            self._wake()

    def _wake(self) -> None:
        self._woken.set()
        self._ends.set()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    @property
    def at_work(self) -> bool:
        """Its thread has not ended."""
        return self._thread.is_alive()

    def stands_by(self) -> None:
        self._fault = None

    def leads(self, _epoch: int) -> None:
        self._fault = None

    def has_looked(self, _moment: Moment) -> None:
        """It observes, and has seen how the group stands."""
        self._fault = None

    def _keep(self) -> None:
        backoff = Backoff()
        with structlog.contextvars.bound_contextvars(group=self.name):
            while True:
                self._woken.clear()
                if self._stopping.is_set():
                    return
                began_at = time.monotonic()
                self._fault = self._control() or self._fault
                now = time.monotonic()
                if now - began_at > STEADY_S or self._woken.is_set():
                    backoff.succeeded()
                if self._woken.is_set():
                    continue
                backoff.failed(now)
                log.error("the controller of a group ended", reason=self._fault)
                self._woken.wait(max(FIRST_PAUSE_S, backoff.until - now))

    def _control(self) -> str | None:
        """Controls the group until it is asked to stop, or cannot any more: why."""
        try:
            settings = load(self.file)
            self._together.enter(self.file, settings)
            self._ends = ends = threading.Event()
            if self._woken.is_set():
                return None
            if settings.controller.observes:
                advice, self.shown = observe.shown_with_others(settings, ends.is_set)
                observe.look(settings, ends, advice.tell, self.has_looked)
                return None
            with shown_with_others(settings, ends.is_set) as (audience, self.shown):
                limited = partial(self._together.limited, self.file)
                control(settings, self.file, ends, Audiences(audience, self), limited)
        except KcgaError as error:
            return str(error)
        except Exception as error:
            log.exception("the controller of a group failed")
            return f"{type(error).__name__}: {error}"
        finally:
            self.shown = None
            self._together.leave(self.file)
        return None
