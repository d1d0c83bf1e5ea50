"""One run of the demonstration on services that are up: the components, the load, the picture and the proof."""

import json
import math
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import psutil
from confluent_kafka import Consumer, KafkaException
from rich.console import Console

from app.access import client_config
from app.child import Child
from app.components import command, consumer_command
from app.errors import KcgaError
from app.interrupts import Interrupts
from app.settings import KafkaSettings, Settings, load
from app.topics import REQUEST_TIMEOUT_S, Cluster
from brokers import log_offsets
from brokers.clients import QUIET
from controller.local_processes import LocalProcesses, running_consumers
from domain.assignment import ConsumerId
from domain.consumer_class import ConsumerClass
from domain.group_view.view import GroupView
from domain.partitions import TopicPartition
from sandbox.chaos.chaos import Chaos, Target
from sandbox.decide.drain import NO_PROGRESS_S, Drain
from sandbox.incident import Incident
from sandbox.load_profile import LoadProfile, demo_profile
from sandbox.observer import Observer
from sandbox.ports import listen_on
from sandbox.server import READY_WITHIN_S
from sandbox.services import Services
from sandbox.settings_file import CONSUMER_CAPACITY, settings_text
from sandbox.summary import ClassCount, Summary, summarize
from sandbox.supervisor import Supervisor

STATUS_PORT = 8470
"""Of the status page, where nothing else listens on it."""
REFRESH_S = 0.25
PHASE_S = 1.0
LOAD, CONTROLLER, MONITOR = "the load generator", "the controller", "the monitor"
STEADY = 0.02
"""A load that changes by a smaller share than this within two `PHASE_S` is called steady."""


class View(Protocol):
    """Shows the group while the context is entered."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    def update(self, view: GroupView, phase: str | None, incidents: Sequence[Incident]) -> None: ...


@dataclass(frozen=True, slots=True)
class Story:
    """What happens in a run."""

    seconds: float | None = None
    """How long the load lasts; until it is interrupted where there is none."""
    seed: int = 0
    """Of the records that are produced, and of the faults."""
    chaos_every_s: float | None = None
    """From one fault to the next; nothing is broken on purpose where there is none."""
    oversized: bool = False
    """One partition is too fast for an ordinary consumer for a while, and there may be larger ones."""


class Demonstration:
    """One run on services that are up.

    Args:
        folder: takes settings, logs and the lake.
        services: what it runs on.
        console: where the status page's address is shown, and what takes long.
        interrupts: the first of them ends the load, and with it the run.
        view: makes what shows the group, of a consumer's capacity and of what a plan gives it at most, in bytes/s, and
            of the classes that consumers may be of beside ordinary ones.
        story: what happens.
    """

    def __init__(
        self,
        folder: Path,
        services: Services,
        console: Console,
        interrupts: Interrupts,
        view: Callable[[float, float, Sequence[ConsumerClass]], View],
        story: Story,
    ) -> None:
        self._folder = folder
        self._services = services
        self._console = console
        self._interrupts = interrupts
        self._view_of = view
        self._story = story
        self._incidents: list[Incident] = []
        self._profile = demo_profile(CONSUMER_CAPACITY, prefix=services.prefix, oversized=story.oversized)
        self._settings_file = folder / "settings.toml"
        page = listen_on(STATUS_PORT)
        host, port = page.getsockname()
        text = settings_text(services, self._profile, folder, status_port=port, oversized=story.oversized)
        self._settings_file.write_text(text)
        self._settings = load(self._settings_file)
        self._page: socket.socket | None = page
        """The controller serves it, whichever process that is: the port is this run's before its address is told."""
        if (host, port) != (self._settings.http.host, self._settings.http.controller_port):
            page.close()  # the environment says where else the page is
            self._page = None
        self._came: dict[str, set[ConsumerId]] = {each.name: set() for each in self._settings.of_controller.classes}
        """Consumers of each class that have read something."""
        self._went: dict[str, set[ConsumerId]] = {name: set() for name in self._came}
        self._fleet_folder = self._settings.local.folder
        self._load_began = folder / "load.began"
        """A file that is there from the first record on: so long the run lasts."""

    def run(self) -> Summary:
        """From the first record to the proof.

        Raises:
            KcgaError: a component keeps ending by itself, or what is needed for the proof cannot be had.
        """
        with self._page or nullcontext(), ExitStack() as stack:
            _create_topics(self._settings, self._profile)
            observer = stack.enter_context(
                Observer(
                    self._services.bootstrap_servers,
                    client_config(self._settings.kafka),
                    names=self._settings.topics.names,
                    group=self._settings.kafka.group,
                    since=time.time(),
                    silent_after_s=self._settings.controller.heartbeat_timeout_s,
                )
            )
            with ExitStack() as group:
                group.callback(self._end_consumers)
                supervisor = group.enter_context(Supervisor(self._tell))
                for server in self._services.servers:
                    supervisor.watch(server.child, server.begin_again)
                for child in (self._component(MONITOR), self._component(CONTROLLER), self._load_generator()):
                    supervisor.begin(child)
                chaos = self._chaos(supervisor)
                group.callback(chaos.end)
                self._say_where()
                with self._view() as view, self._interrupts.ask_first() as stop:

                    def show(phase: str) -> None:
                        now = observer.snapshot()
                        self._count_classes(now)
                        view.update(now, phase, self._incidents)

                    elapsed, began, seconds = 0.0, math.inf, self._story.seconds
                    while not stop.wait(REFRESH_S) and (seconds is None or elapsed < seconds):
                        supervisor.look_after()
                        chaos.look_after(elapsed)
                        show(self._phase(supervisor.runs_s(LOAD)))
                        began = min(began, time.monotonic()) if self._load_began.exists() else math.inf
                        elapsed = max(0.0, time.monotonic() - began)
                    self._mend(supervisor, chaos, show)
                    produced = self._end_load(supervisor)
                    self._drain(observer, view, supervisor)
                    self._mend(supervisor, chaos, show)
            observer.catch_up(NO_PROGRESS_S)
            return self._summary(
                observer,
                produced,
                whole_story=elapsed >= self._profile.period_s and not self._incidents,
                faults=chaos.done,
                restarts=supervisor.restarts,
            )

    def _tell(self, what: str) -> None:
        self._incidents.append(Incident(time.time(), what))

    def _count_classes(self, view: GroupView) -> None:
        there = {consumer.consumer for consumer in view.consumers}
        for consumer in view.consumers:
            if consumer.partitions and consumer.class_name in self._came:
                self._came[consumer.class_name].add(consumer.consumer)
        for name, came in self._came.items():
            self._went[name] |= came - there

    def _component(self, name: str) -> Child:
        component = name.removeprefix("the ")
        arguments = command(component, "--settings", str(self._settings_file))
        listener = self._page if name == CONTROLLER else None
        return Child(name, arguments, self._folder / f"{component}.log", listener=listener)

    def _chaos(self, supervisor: Supervisor) -> Chaos:
        names = [MONITOR, CONTROLLER, *(server.title for server in self._services.servers)]
        targets: dict[str, Target] = {name: partial(supervisor.processes, name) for name in names}
        targets["a consumer"] = self._consumers
        return Chaos(targets, self._story.seed, self._story.chaos_every_s, self._tell)

    def _consumers(self) -> dict[str, psutil.Process]:
        running = running_consumers(self._fleet_folder)
        return {f"consumer {number}": process for number, process in running.items()}

    def _mend(self, supervisor: Supervisor, chaos: Chaos, show: Callable[[str], None]) -> None:
        """Ends what is broken; returns when the servers serve."""
        chaos.end()
        deadline = time.monotonic() + READY_WITHIN_S
        for server in self._services.servers if self._incidents else ():
            while not server.serves:
                if time.monotonic() > deadline:
                    raise server.child.error(f"{server.title} does not serve again after {READY_WITHIN_S:g} s")
                supervisor.look_after()
                show("begun anew, not ready yet: " + server.title)
                time.sleep(REFRESH_S)

    def _say_where(self) -> None:
        """The status page's address, above the picture."""
        http = self._settings.http
        if http.token is not None:
            token = http.token.get_secret_value()
            self._console.print(
                f"Status page: http://{http.host}:{http.controller_port} (token to operate there: {token})",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )

    def _load_generator(self) -> Child:
        arguments = [
            "--settings",
            str(self._settings_file),
            f"--seed={self._story.seed}",
            f"--began={self._load_began}",
        ]
        arguments += ["--oversized"] if self._story.oversized else []
        return Child(
            LOAD,
            [sys.executable, "-m", "sandbox.load", *arguments, "--prefix", self._services.prefix],
            self._folder / "load.log",
            output=self._folder / "load.json",
        )

    def _view(self) -> View:
        controller = self._settings.controller
        return self._view_of(controller.consumer_capacity, controller.packing, self._settings.of_controller.classes)

    def _phase(self, elapsed_s: float) -> str:
        """The load's course in a word."""
        before, after = (self._profile.total_speed(max(0.0, elapsed_s + around)) for around in (-PHASE_S, PHASE_S))
        if abs(after - before) > STEADY * max(before, after):
            return "the load rises" if after > before else "the load falls"
        return "steady load"

    def _drain(self, observer: Observer, view: View, supervisor: Supervisor) -> None:
        """Waits until the group has read everything, or reads no more; what is left shows in the summary."""
        drain = Drain(time.time())
        while True:
            supervisor.look_after()
            now = observer.snapshot()
            self._count_classes(now)
            view.update(now, "load over, reading the rest", self._incidents)
            told_at = now.lag_over_time[-1].at if now.lag_over_time else None
            came = [
                (consumer.consumer, partition)
                for consumer in now.consumers
                for partition in (None, *consumer.partitions)
            ]
            if drain.is_over(time.time(), now.lag, told_at, came):
                return
            time.sleep(REFRESH_S)

    def _end_load(self, supervisor: Supervisor) -> int:
        """Ends the producers and returns how many records the brokers acknowledged.

        A load generator that was killed, or had not begun, cannot say: then as many as there are in Kafka.
        """
        supervisor.look_after()  # it may have ended just now
        generator = supervisor.end(LOAD)
        generator.wait()
        if LOAD in supervisor.restarts or not self._load_began.exists():
            return _in_kafka(self._settings.kafka, self._profile.partitions)
        return _delivered(generator)

    def _end_consumers(self) -> None:
        fleet = LocalProcesses(
            self._fleet_folder, lambda n, _: consumer_command(n, self._settings_file), self._settings.local.grace_s
        )
        fleet.close()

    def _summary(
        self, observer: Observer, produced: int, *, whole_story: bool, faults: int, restarts: Mapping[str, int]
    ) -> Summary:
        from consumer.session import LakeError
        from consumer.verify import verify

        with self._console.status("Comparing what was produced with what the lake holds ..."):
            try:
                accounts = verify(
                    self._services.spark_remote, self._settings.consumer.lake_root, self._profile.topics
                ).values()
            except LakeError as error:
                raise KcgaError(f"the lake cannot be counted: {error}") from error
        return summarize(
            observer.snapshot(),
            observer.most_readers(),
            produced=produced,
            distinct=sum(account.distinct_offsets for account in accounts),
            duplicates=sum(account.doubled for account in accounts),
            whole_story=whole_story,
            faults=faults,
            restarts=restarts,
            classes={name: ClassCount(came=len(came), went=len(self._went[name])) for name, came in self._came.items()},
        )


def _create_topics(settings: Settings, profile: LoadProfile) -> None:
    cluster = Cluster(settings.kafka.bootstrap_servers, client_config(settings.kafka))
    cluster.ensure_internal_topics(settings.topics.names, settings.controller.highest_consumer)
    cluster.create(profile.topics)


def _delivered(generator: Child) -> int:
    """What the load generator, which has ended, says that it produced."""
    try:
        report = json.loads((generator.log.parent / "load.json").read_text())
    except (OSError, ValueError) as error:
        raise generator.error("the load generator did not say what it produced") from error
    if report["undelivered"]:
        raise KcgaError(f"{report['undelivered']} records could not be delivered to Kafka: {report['problem']}")
    return int(report["produced"])


def _in_kafka(kafka: KafkaSettings, partitions: Sequence[TopicPartition]) -> int:
    """How many records the partitions hold: they are written without transactions, so every offset is one."""
    own = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "kcga-up", **QUIET}
    reader = Consumer({**client_config(kafka), **own})
    try:
        held = log_offsets.ranges(reader, partitions, REQUEST_TIMEOUT_S)
        return sum(held[partition].end - held[partition].start for partition in partitions)
    except (KafkaException, KeyError) as error:
        raise KcgaError("Kafka does not tell how many records it holds") from error
    finally:
        reader.close()
