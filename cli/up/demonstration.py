"""One run of the demonstration on services that are up: the components, the load, the picture and the proof."""

import json
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from cli.components import command, consumer_command
from cli.embedded.child import Child
from cli.embedded.load_profile import DEMO_PERIOD_S, LoadProfile, demo_profile
from cli.errors import KcgaError
from cli.interrupts import Interrupts
from cli.settings import Settings, load
from cli.topics import Cluster
from cli.up.services import Services
from cli.up.settings_file import CONSUMER_CAPACITY, settings_text
from cli.watch.observer import Observer
from cli.watch.summary import Summary, summarize
from cli.watch.terminal import LiveView
from controller.local_processes import LocalProcesses

DRAIN_WITHIN_S = 90.0
LAG_SETTLES_S = 2.5
"""What the monitor tells so long after the last record counts that record in."""
REFRESH_S = 0.25
PHASE_S = 1.0
STEADY = 0.02
"""A load that changes by a smaller share than this within two `PHASE_S` is called steady."""


class Demonstration:
    """One run on services that are up.

    Args:
        folder: takes settings, logs and the lake.
        services: what it runs on.
        console: shows the group.
        interrupts: the first of them ends the load, and with it the run.
        seconds: how long the load lasts; until it is interrupted where there is none.
        seed: of the records that are produced.
    """

    def __init__(
        self,
        folder: Path,
        services: Services,
        console: Console,
        interrupts: Interrupts,
        *,
        seconds: float | None,
        seed: int,
    ) -> None:
        self._folder = folder
        self._services = services
        self._console = console
        self._interrupts = interrupts
        self._seconds = seconds
        self._seed = seed
        self._profile = demo_profile(CONSUMER_CAPACITY, prefix=services.prefix)
        self._settings_file = folder / "settings.toml"
        self._settings_file.write_text(settings_text(services, self._profile, folder))
        self._settings = load(self._settings_file)
        self._fleet_folder = self._settings.local.folder

    def run(self) -> Summary:
        """From the first record to the proof.

        Raises:
            KcgaError: a component ended by itself, or what is needed for the proof cannot be had.
        """
        _create_topics(self._settings, self._profile)
        with ExitStack() as stack:
            observer = stack.enter_context(
                Observer(
                    self._services.bootstrap_servers,
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
                self._say_where()
                began = time.monotonic()
                with self._view() as view, self._interrupts.ask_first() as stop:
                    elapsed = 0.0
                    while not stop.wait(REFRESH_S) and (self._seconds is None or elapsed < self._seconds):
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
        arguments = ["--settings", str(self._settings_file), "--seed", str(self._seed)]
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
        ended_at = time.time()
        while time.time() < ended_at + DRAIN_WITHIN_S:
            _require_running(children)
            now = observer.snapshot()
            view.update(now, "load over, reading the rest")
            if now.lag == 0 and now.lag_over_time[-1].at > ended_at + LAG_SETTLES_S:
                return
            time.sleep(REFRESH_S)

    def _end_consumers(self) -> None:
        fleet = LocalProcesses(
            self._fleet_folder, lambda n: consumer_command(n, self._settings_file), self._settings.local.grace_s
        )
        fleet.close()

    def _summary(self, observer: Observer, produced: int, *, whole_story: bool) -> Summary:
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
        )


def _create_topics(settings: Settings, profile: LoadProfile) -> None:
    cluster = Cluster(settings.kafka.bootstrap_servers)
    cluster.ensure_internal_topics(settings.topics.names, settings.controller.highest_consumer)
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
