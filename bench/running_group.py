"""A monitor, and a whole group, that run as processes of this machine while a program measures them."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.child import Child
from app.components import command, consumer_command
from app.settings import load
from app.topics import Cluster
from bench.transcript import Transcript
from controller.local_processes import LocalProcesses
from sandbox.services import Services

MOST_CONSUMERS = 8


def asked(name: str, settings: Path) -> float:
    """How long a command about a group takes from its start to its end, in seconds.

    It has a session of its own, as what is typed at a terminal has: where the system shares its processors out by
    sessions, it has its own share beside the group.

    Raises:
        CalledProcessError: it fails.
    """
    began = time.monotonic()
    asking = command(name, "--settings", str(settings))
    subprocess.run(asking, check=True, stdout=subprocess.DEVNULL, start_new_session=True)
    return time.monotonic() - began


@dataclass(frozen=True, slots=True)
class Bench:
    """One topic that is written and read, with topics of its own for what the components say.

    Args:
        services: the brokers and Spark.
        folder: takes settings, logs and the lake.
        topic: its name, and the group's.
        partitions: of the topic.
        capacity: of a consumer, in bytes/s.
        window_s: the monitor's.
        scale_down_window_s: the controller's.
    """

    services: Services
    folder: Path
    topic: str
    partitions: int
    capacity: float
    window_s: float = 30
    scale_down_window_s: float = 3600

    @contextmanager
    def monitored(self) -> Iterator[Transcript]:
        """Makes the topics and runs a monitor; yields what is said."""
        self.settings_file.write_text(self._settings)
        settings = load(self.settings_file)
        cluster = Cluster(self.services.bootstrap_servers)
        cluster.ensure_internal_topics(settings.topics.names, settings.controller.highest_consumer)
        cluster.create({self.topic: self.partitions})
        with (
            Transcript(self.services.bootstrap_servers, settings.topics.names, MOST_CONSUMERS) as heard,
            self._component("monitor"),
        ):
            heard.wait_until(lambda: bool(heard.speeds), "the monitor's first report")
            yield heard

    @contextmanager
    def controlled(self, heard: Transcript) -> Iterator[Child]:
        """Runs a controller, beside the monitor, and yields its process when every partition has a reader."""
        try:
            with self._component("controller") as controller:
                heard.wait_until(
                    lambda: len(heard.held()) == self.partitions, "every partition has a reader", within_s=180
                )
                yield controller
        finally:
            # Another view of the same consumers, to end them.
            LocalProcesses(
                load(self.settings_file).local.folder, lambda n, _: consumer_command(n, self.settings_file)
            ).close()

    def asked(self, name: str) -> float:
        """See `asked`."""
        return asked(name, self.settings_file)

    def _component(self, name: str) -> Child:
        log = self.folder / f"{self.topic}-{name}.log"
        return Child(f"the {name}", command(name, "--settings", str(self.settings_file)), log)

    def change_consumers(self, **settings: float) -> None:
        """Writes the settings file anew, with these of consumers."""
        lines = "".join(f"{name} = {value}\n" for name, value in settings.items())
        self.settings_file.write_text(self._settings.replace("[consumer]\n", f"[consumer]\n{lines}"))

    @property
    def settings_file(self) -> Path:
        return self.folder / f"{self.topic}.toml"

    @property
    def _settings(self) -> str:
        return f"""\
[kafka]
bootstrap_servers = "{self.services.bootstrap_servers}"
group = "{self.topic}"

[topics]
write_speed = "{self.topic}.monitor.writeSpeed"
metadata = "{self.topic}.consumer.metadata"
decisions = "{self.topic}.controller.decisions"

[monitor]
topics = ["{self.topic}"]
window_s = {self.window_s}

[controller]
consumer_capacity = {self.capacity}
scale_down_window_s = {self.scale_down_window_s}
max_consumers = {MOST_CONSUMERS}

[consumer]
spark_remote = "{self.services.spark_remote}"
lake_root = "{self.folder / "lake"}"

[local]
folder = "{self.folder / self.topic}"
"""
