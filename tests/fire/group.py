"""A whole group under a load, on brokers and a Spark that others have begun: processes that a test breaks."""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import structlog
from confluent_kafka import Consumer, KafkaException

from app.child import Child
from app.components import command, consumer_command
from app.errors import KcgaError
from app.settings import Settings, load
from app.topics import Cluster
from bench.stepped_load import SteppedLoad, nothing
from brokers import log_offsets
from controller.local_processes import LocalProcesses
from domain.assignment import ConsumerId
from domain.partitions import TopicPartition
from monitor.group_commits import GroupCommits
from sandbox.load_profile import Course, LoadProfile
from sandbox.services import Services
from sandbox.settings_file import CONSUMER_CAPACITY, settings_text
from tests.patience import wait_until

log = structlog.get_logger()

CAPACITY = CONSUMER_CAPACITY // 4
"""Of a consumer in bytes/s. So little that the busiest machine reads as fast: what is behind has to be caught up with,
and keeps consumers."""
CALM, BUSY = 0.4, 1.3
"""In consumers: one reads it all, then there must be two."""
WAIT = "wait_time_secs = 8\n"
"""An append costs Spark the better part of a second, and the tests beside have to have some, too."""
FASTER = {
    f"consumer_capacity = {CONSUMER_CAPACITY}\n": f"consumer_capacity = {CAPACITY}\n",
    "window_s = 15\n": "window_s = 4\n",
    "max_consumers = 12\n": "max_consumers = 12\nheartbeat_timeout_s = 600\nsynchronize_timeout_s = 600\n",
    "ready_timeout_s = 60\n": "ready_timeout_s = 600\n",
    "wait_time_secs = 3\n": f"{WAIT}lease_s = 500\nwrite_limit_s = 240\ngive_up_after_s = 600\n",
    "[local]\n": "[local]\ngrace_s = 300\n",
}
"""What is not set as in the demonstration: plans come sooner, appends are few, nobody is given up for being slow."""
SHORT_LEASES = FASTER | {
    "max_consumers = 12\n": "max_consumers = 12\nheartbeat_timeout_s = 25\n",
    "ready_timeout_s = 60\n": "ready_timeout_s = 60\n",
    "wait_time_secs = 3\n": "wait_time_secs = 2\nlease_s = 20\n",
    "[local]\n": "[local]\ngrace_s = 60\n",
}
"""For a group whose members are struck: others take over soon, and who was frozen is not killed before it wakes up."""
ANSWERS_WITHIN_S = 10.0
_BURST_S = 0.1
"""So often the load is written: each time costs the broker the same, however little it is."""
_LOOK_EVERY_S = 0.5
"""At a group, which costs the broker as much."""


def speeds(partitions: Sequence[TopicPartition], consumers: float) -> dict[TopicPartition, float]:
    """Uneven, and so much in all, in consumers."""
    unit = consumers * CAPACITY / sum(range(1, len(partitions) + 1))
    return {partition: unit * weight for weight, partition in enumerate(partitions, start=1)}


class Group(ABC):
    """Monitor, controller and consumers, each of which is begun and ended by itself, and a load.

    Args:
        stack: ends everything when it is closed.
        folder: has the settings, and takes the logs.
        settings: those in the folder.
        speeds: of the load at first.
        value: of its next record in a partition.
    """

    def __init__(
        self,
        stack: ExitStack,
        folder: Path,
        settings: Settings,
        speeds: Mapping[TopicPartition, float],
        value: Callable[[TopicPartition], bytes] = nothing,
    ) -> None:
        kafka = settings.kafka
        client = {"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0}
        self.folder = folder
        self.settings = settings
        self.partitions = sorted(speeds)
        self.reader = Consumer({**client, "group.id": "ends"})
        stack.callback(self.reader.close)
        self.commits = GroupCommits(client, kafka.group)
        stack.callback(self.commits.close)
        self.load = stack.enter_context(SteppedLoad(kafka.bootstrap_servers, speeds, _BURST_S, value))
        self.children: dict[str, Child] = {}
        self._begun = 0
        stack.callback(self.end)

    @property
    @abstractmethod
    def is_placed(self) -> bool:
        """Whether each partition is read by the one who shall."""

    def begin(self, component: str, environment: Mapping[str, str] | None = None) -> None:
        """Starts the monitor or the controller, with these variables besides its own."""
        self.start(component, command(component, "--settings", str(self.settings_file)), environment)

    def start(self, component: str, program: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """Starts what is a component by this program."""
        self._begun += 1
        log_file = self.folder / f"{component}-{self._begun}.log"
        variables = {**os.environ, **(environment or {})}
        self.children[component] = Child(f"the {component}", program, log_file, environment=variables)
        self.children[component].start()

    def end(self) -> None:
        """First those who would begin others anew."""
        for child in self.children.values():
            child.stop()
        local = self.settings.local
        LocalProcesses(
            local.folder, lambda number, _: consumer_command(number, self.settings_file), local.grace_s
        ).close()

    @property
    def settings_file(self) -> Path:
        return self.folder / "settings.toml"

    @property
    def consumers(self) -> dict[ConsumerId, int]:
        """The processes of the consumers."""
        found = {}
        for file in self.settings.local.folder.glob("consumer-*.json"):
            with suppress(FileNotFoundError):
                found[int(file.stem.removeprefix("consumer-"))] = int(json.loads(file.read_text())["pid"])
        return found

    @property
    def in_kafka(self) -> int:
        """How many records there are: all were written without transactions, and none was deleted."""
        return sum(self.ends(self.partitions).values())

    def ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Where each of them ends; those whose broker does not tell for a moment are waited for."""
        ends: dict[TopicPartition, int] = {}

        def are_known() -> bool:
            ends.update(log_offsets.ends(self.reader, partitions, ANSWERS_WITHIN_S))
            return len(ends) == len(partitions)

        self.wait("the brokers tell where each partition ends", are_known)
        return ends

    def converges(self, what: str) -> None:
        """Waits until each partition is read by the one who shall, and what was written so far is in the lake."""
        self.reads(self.partitions, what, lambda: self.is_placed)

    def reads(
        self, partitions: Sequence[TopicPartition], what: str, condition: Callable[[], bool] = lambda: True
    ) -> None:
        """Waits until it is so, and what these partitions had when this began is in the lake."""
        written = self.ends(partitions)

        def has_read() -> bool:
            committed = self.commits.offsets(partitions, ANSWERS_WITHIN_S)
            return all((committed.get(partition) or 0) >= end for partition, end in written.items())

        self.wait(what, lambda: condition() and has_read())

    def wait(self, what: str, condition: Callable[[], bool], every_s: float = _LOOK_EVERY_S) -> None:
        wait_until(lambda: self._is_so(condition), lambda: f"it is not so that {what}\n{self.picture()}", every_s)

    def picture(self) -> object:
        """What is known of the group, for whoever has to find out why it is not so."""
        return self.consumers

    def _is_so(self, condition: Callable[[], bool]) -> bool:
        """Brokers that do not answer for a moment belong to the faults."""
        try:
            return condition()
        except (KafkaException, KcgaError) as error:
            log.info("brokers do not answer", reason=str(error))
            return False


def configure(
    folder: Path, services: Services, partitions: Iterable[TopicPartition], other: Mapping[str, str] = FASTER
) -> Settings:
    """Writes the settings of a group that reads the partitions, and makes the topics that it talks through.

    Args:
        folder: takes them, and the lake.
        services: the brokers and Spark.
        partitions: of topics that may be made later.
        other: what the demonstration's settings have, and what is there in its place.
    """
    profile = LoadProfile({partition: Course(((0, 1), (1, 1))) for partition in partitions})
    text = settings_text(services, profile, folder)
    for usual, changed in other.items():
        assert usual in text
        text = text.replace(usual, changed)
    (folder / "settings.toml").write_text(text)
    settings = load(folder / "settings.toml")
    Cluster(settings.kafka.bootstrap_servers).ensure_internal_topics(
        settings.topics.names, settings.controller.highest_consumer
    )
    return settings
