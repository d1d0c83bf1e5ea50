"""`kcga up`: the whole system on this machine, under a load that rises and falls, with proof at the end.

Starts a Kafka broker and Spark, the monitor, the controller (which starts the consumers) and producers; shows the
group; then stops all of it and compares what was produced with what the lake holds.
"""

import json
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from cli import logs
from cli.components import command, consumer_command
from cli.embedded.broker import Broker
from cli.embedded.child import Child
from cli.embedded.jars import DELTA, KAFKA, obtain
from cli.embedded.java import find_java
from cli.embedded.load_profile import DEMO_PERIOD_S, LoadProfile, demo_profile
from cli.embedded.spark import SparkConnectServer
from cli.errors import KcgaError
from cli.interrupts import Interrupts
from cli.settings import Settings, load
from cli.topics import Cluster
from cli.watch.observer import Observer
from cli.watch.summary import Summary, summarize
from cli.watch.terminal import LiveView
from controller.local_processes import LocalProcesses

CONSUMER_CAPACITY = 400_000
"""Bytes/s of a consumer in the demonstration: so small that one machine shows several."""
DRAIN_WITHIN_S = 90.0
LAG_SETTLES_S = 2.5
"""After the last record it takes the observer at most so long to know of it."""
REFRESH_S = 0.25
PHASE_S = 1.0
STEADY = 0.02
"""A load that changes by a smaller share than this within two `PHASE_S` is called steady."""


@dataclass(frozen=True, slots=True)
class UpOptions:
    seconds: float | None = None
    """How long the load lasts; until it is interrupted where there is none."""
    bootstrap_servers: str | None = None
    """Brokers of one's own, in place of the one that comes with kcga."""
    kafka_port: int | None = None
    """Of the broker that comes with kcga; a free one where there is none."""
    keep: Path | None = None
    """A folder for logs, lake and settings that is left in place; otherwise a temporary one is removed at the end."""
    seed: int = 0
    """Of the records that are produced."""


def up(options: UpOptions, console: Console, interrupts: Interrupts) -> Summary:
    """Runs the demonstration and returns what it proved. Whatever ends it, nothing that it started is left.

    Raises:
        KcgaError: something could not be started, or ended by itself.
        KeyboardInterrupt: it was interrupted while it started, or for the second time.
    """
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(_run_folder(options.keep))
            # Standard error is the picture's.
            logs.configure("up", stack.enter_context((folder / "up.log").open("a", encoding="utf-8")))
            services = _start_services(stack, folder, options, console)
            return _Run(folder, services, options, console, interrupts).run()
        except OSError as error:
            raise KcgaError(f"kcga up cannot go on: {error}") from error


@contextmanager
def _run_folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        if any(keep.iterdir()):
            raise KcgaError(f"the folder {keep} is not empty: name one that is, or does not exist")
        yield keep.resolve()
        return
    folder = Path(tempfile.mkdtemp(prefix="kcga-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _Services:
    bootstrap_servers: str
    spark_remote: str
    prefix: str
    """Of the names of all topics and of the group: none where the brokers are kcga's own."""


def _start_services(stack: ExitStack, folder: Path, options: UpOptions, console: Console) -> _Services:
    """Starts what is not there yet, at the same time; it ends with the stack."""
    prefix = ""
    if options.bootstrap_servers is not None:
        prefix = f"kcga-up-{uuid.uuid4().hex[:8]}."
        stack.callback(Cluster(options.bootstrap_servers).delete, prefix)
    java = find_java()
    delta = obtain(DELTA)
    spark = SparkConnectServer(folder / "spark", jars=delta, java=java)
    starts: list[Callable[[], None]] = [spark.start]
    stack.callback(spark.stop)
    broker = None
    if options.bootstrap_servers is None:
        broker = Broker(folder / "kafka", jars=obtain(KAFKA), java=java, port=options.kafka_port)
        starts.append(broker.start)
        stack.callback(broker.stop)
    with console.status("Starting Kafka and Spark ..."), ThreadPoolExecutor() as pool:
        started = [pool.submit(start) for start in starts]
        try:
            for future in as_completed(started):
                future.result()
        except BaseException:
            stack.close()  # so that what is still starting ends at once
            raise
    bootstrap_servers = options.bootstrap_servers or (broker.bootstrap_servers if broker else "")
    return _Services(bootstrap_servers, spark.remote, prefix)


class _Run:
    """One run on services that are up."""

    def __init__(
        self, folder: Path, services: _Services, options: UpOptions, console: Console, interrupts: Interrupts
    ) -> None:
        self._folder = folder
        self._services = services
        self._options = options
        self._console = console
        self._interrupts = interrupts
        self._profile = demo_profile(CONSUMER_CAPACITY, prefix=services.prefix)
        self._settings_file = folder / "settings.toml"
        self._settings_file.write_text(_settings_text(services, self._profile, folder))
        self._settings = load(self._settings_file)
        self._fleet_folder = self._settings.local.folder

    def run(self) -> Summary:
        _create_topics(self._settings, self._profile)
        with ExitStack() as stack:
            observer = stack.enter_context(
                Observer(
                    self._services.bootstrap_servers,
                    self._settings.kafka.group,
                    names=self._settings.topics.names,
                    since=time.time(),
                    silent_after_s=self._settings.controller.heartbeat_timeout_s,
                )
            )
            with ExitStack() as group:
                group.callback(self._end_consumers)
                children = [
                    group.enter_context(self._component("monitor")),
                    group.enter_context(self._component("controller")),
                ]
                generator = group.enter_context(self._load_generator())
                began = time.monotonic()
                with self._view() as view, self._interrupts.ask_first() as stop:
                    while not stop.wait(REFRESH_S):
                        elapsed = time.monotonic() - began
                        if self._options.seconds is not None and elapsed >= self._options.seconds:
                            break
                        _require_running([*children, generator])
                        view.update(observer.snapshot(), self._phase(elapsed))
                    elapsed = time.monotonic() - began
                    produced = _end_load(generator)
                    self._drain(observer, view, children)
            observer.catch_up(DRAIN_WITHIN_S)
            return self._summary(observer, produced, whole_story=elapsed >= DEMO_PERIOD_S)

    def _component(self, name: str) -> Child:
        arguments = command(name, "--settings", str(self._settings_file))
        return Child(f"the {name}", arguments, self._folder / f"{name}.log")

    def _load_generator(self) -> Child:
        arguments = ["--settings", str(self._settings_file), "--seed", str(self._options.seed)]
        return Child(
            "the load generator",
            [sys.executable, "-m", "cli.embedded.load", *arguments, "--prefix", self._services.prefix],
            self._folder / "load.log",
            output=self._folder / "load.json",
        )

    def _view(self) -> LiveView:
        controller = self._settings.controller
        return LiveView(self._console, controller.consumer_capacity, controller.packing)

    def _phase(self, elapsed_s: float) -> str:
        """The load's course in a word."""
        before, after = (self._profile.total_speed(max(0.0, elapsed_s + around)) for around in (-PHASE_S, PHASE_S))
        if abs(after - before) > STEADY * max(before, after):
            return "the load rises" if after > before else "the load falls"
        return "steady load"

    def _drain(self, observer: Observer, view: LiveView, children: list[Child]) -> None:
        """Waits until the group has read everything; what it cannot read in time shows in the summary."""
        began = time.monotonic()
        while (waited := time.monotonic() - began) < DRAIN_WITHIN_S:
            _require_running(children)
            now = observer.snapshot()
            view.update(now, "load over, reading the rest")
            if waited > LAG_SETTLES_S and now.lag == 0:
                return
            time.sleep(REFRESH_S)

    def _end_consumers(self) -> None:
        fleet = LocalProcesses(
            self._fleet_folder, lambda n: consumer_command(n, self._settings_file), self._settings.local.grace_s
        )
        fleet.close()

    def _summary(self, observer: Observer, produced: int, *, whole_story: bool) -> Summary:
        from consumer.lake import LakeError
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
        )


def _settings_text(services: _Services, profile: LoadProfile, folder: Path) -> str:
    """The settings of the demonstration, as a file that can be read and used again."""
    topics = ", ".join(json.dumps(topic) for topic in profile.topics)
    text = json.dumps  # of a plain string it is one of TOML's
    return f"""\
[kafka]
bootstrap_servers = {text(services.bootstrap_servers)}
group = {text(services.prefix + "kcga")}

[topics]
write_speed = {text(services.prefix + "monitor.writeSpeed")}
metadata = {text(services.prefix + "consumer.metadata")}
decisions = {text(services.prefix + "controller.decisions")}

[monitor]
topics = [{topics}]
# A shorter window than the paper's 30 s: the story is over within two minutes.
window_s = 15

[controller]
consumer_capacity = {CONSUMER_CAPACITY}
interval_s = 10
scale_down_window_s = 15
max_consumers = 12
ready_timeout_s = 60

[consumer]
spark_remote = {text(services.spark_remote)}
lake_root = {text(str(folder / "lake"))}
wait_time_secs = 3

[local]
folder = {text(str(folder / "consumers"))}
"""


def _create_topics(settings: Settings, profile: LoadProfile) -> None:
    cluster = Cluster(settings.kafka.bootstrap_servers)
    cluster.ensure_internal_topics(settings.topics.names, settings.controller.max_consumers)
    cluster.create(profile.topics)


def _require_running(children: list[Child]) -> None:
    for child in children:
        if not child.running:
            raise child.error(f"{child.name} ended by itself, with exit code {child.exit_code}")


def _end_load(generator: Child) -> int:
    """Ends the producers and returns how many records the brokers acknowledged."""
    generator.terminate()
    generator.wait()
    try:
        report = json.loads((generator.log.parent / "load.json").read_text())
    except (OSError, ValueError) as error:
        raise generator.error("the load generator did not say what it produced") from error
    if report["undelivered"]:
        raise KcgaError(f"{report['undelivered']} records could not be delivered to Kafka: {report['problem']}")
    return int(report["produced"])
