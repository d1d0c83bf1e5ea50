"""Kill -9 and a freeze of each part of the system, each while a plan is under way, on three brokers and a real lake."""

import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import structlog
from confluent_kafka import Consumer, KafkaException

from bench.stepped_load import SteppedLoad
from brokers import log_offsets
from cli.components import command, consumer_command
from cli.embedded.child import Child
from cli.embedded.load_profile import Course, LoadProfile
from cli.settings import Settings, load
from cli.topics import Cluster
from cli.up.services import Services
from cli.up.settings_file import CONSUMER_CAPACITY, settings_text
from cli.watch.observer import Observer
from consumer.verify import verify
from controller.local_processes import LocalProcesses
from domain.assignment import ConsumerId
from domain.partitions import TopicPartition
from monitor.group_commits import GroupCommits
from tests.broker_cluster import BrokerCluster
from tests.services import SharedSpark

log = structlog.get_logger()

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.usefixtures("nothing_left_running")]

PARTITIONS = [TopicPartition("orders", number) for number in range(6)]
CALM, BUSY = 0.4, 1.3
"""In consumers: one reads it all, then there must be two."""
FASTER = {
    "window_s = 15\n": "window_s = 4\n",
    "max_consumers = 12\n": "max_consumers = 12\nheartbeat_timeout_s = 25\n",
    "wait_time_secs = 3\n": "wait_time_secs = 2\nlease_s = 20\n",
    "[local]\n": "[local]\ngrace_s = 60\n",
}
"""What is not set as in the demonstration: plans and handovers come sooner, and who was frozen is not killed before it
wakes up."""
ANSWERS_WITHIN_S = 10.0
WITHIN_S = 180.0
"""So long at most a plan is waited for, and a group that converges; it takes a fifth on a quiet machine."""


def speeds(consumers: float) -> dict[TopicPartition, float]:
    """Uneven, and so much in all."""
    weights = {partition: partition.partition + 1 for partition in PARTITIONS}
    unit = consumers * CONSUMER_CAPACITY / sum(weights.values())
    return {partition: unit * weight for partition, weight in weights.items()}


@dataclass
class Group:
    """The whole of kcga, under a load."""

    folder: Path
    settings: Settings
    brokers: BrokerCluster
    observer: Observer
    reader: Consumer
    commits: GroupCommits
    load: SteppedLoad
    busy: bool = False
    children: dict[str, Child] = field(default_factory=dict)
    begun: int = 0

    def begin(self, component: str) -> None:
        self.begun += 1
        arguments = command(component, "--settings", str(self.folder / "settings.toml"))
        self.children[component] = Child(f"the {component}", arguments, self.folder / f"{component}-{self.begun}.log")
        self.children[component].start()

    def end(self) -> None:
        """First those who would begin others anew."""
        for child in self.children.values():
            child.stop()
        local = self.settings.local
        LocalProcesses(
            local.folder, lambda n: consumer_command(n, self.folder / "settings.toml"), local.grace_s
        ).close()

    def signal(self, component: str, number: signal.Signals) -> None:
        os.kill(self.children[component].pid, number)

    @property
    def consumers(self) -> dict[ConsumerId, int]:
        """The processes of the consumers."""
        found = {}
        for file in self.settings.local.folder.glob("consumer-*.json"):
            with suppress(FileNotFoundError):
                found[int(file.stem.removeprefix("consumer-"))] = int(json.loads(file.read_text())["pid"])
        return found

    def begin_a_plan(self) -> None:
        """Changes the load, and returns when partitions are on their way from one consumer to another."""
        self.busy = not self.busy
        self.load.step(speeds(BUSY if self.busy else CALM))
        self.wait("a plan is under way", lambda: bool(self.sources))

    @property
    def sources(self) -> set[ConsumerId]:
        """The consumers that partitions are to be taken from."""
        transits = self.observer.snapshot().transits
        return {transit.source for transit in transits if transit.is_migration and transit.source is not None}

    def converges(self, what: str) -> None:
        """Waits until each partition is read by the one who shall, and what was written so far is in the lake."""
        written: dict[TopicPartition, int] = {}

        def read_on() -> bool:
            if not written:
                written.update(log_offsets.ends(self.reader, PARTITIONS, ANSWERS_WITHIN_S))
            committed = self.commits.offsets(PARTITIONS, ANSWERS_WITHIN_S)
            return all((committed.get(partition) or 0) >= end for partition, end in written.items())

        self.wait(what, lambda: self.is_placed and read_on())

    @property
    def is_placed(self) -> bool:
        view = self.observer.snapshot()
        held = [held.partition for consumer in view.consumers for held in consumer.partitions if not consumer.silent]
        return not view.transits and sorted(held) == PARTITIONS

    def wait(self, what: str, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not self._is_so(condition):
            assert time.monotonic() < deadline, f"not so within {WITHIN_S:g} s: {what}\n{self.observer.snapshot()}"
            time.sleep(0.1)

    def _is_so(self, condition: Callable[[], bool]) -> bool:
        """Brokers that do not answer for a moment belong to the faults."""
        try:
            return condition()
        except KafkaException as error:
            log.info("brokers do not answer", reason=str(error))
            return False


def kill(component: str) -> Callable[[Group], None]:
    def fault(group: Group) -> None:
        group.signal(component, signal.SIGKILL)
        group.children[component].stop()
        group.begin(component)

    return fault


def freeze(component: str, seconds: float) -> Callable[[Group], None]:
    def fault(group: Group) -> None:
        group.signal(component, signal.SIGSTOP)
        time.sleep(seconds)
        group.signal(component, signal.SIGCONT)

    return fault


def kill_consumer(group: Group) -> None:
    pid = group.consumers[min(group.sources)]
    os.kill(pid, signal.SIGKILL)
    group.wait("it is noticed", lambda: pid not in group.consumers.values())


def freeze_consumer(group: Group) -> None:
    """For longer than its lease: others take over, and it wakes up then."""
    consumer = min(group.sources)
    pid = group.consumers[consumer]
    os.kill(pid, signal.SIGSTOP)
    group.converges(f"others read what consumer {consumer} had")
    assert group.consumers.get(consumer) == pid, "it was killed before it could wake up"
    os.kill(pid, signal.SIGCONT)


def kill_broker(group: Group) -> None:
    """The one that all reports and claims go through."""
    broker = group.brokers.leader(group.settings.topics.metadata)
    group.brokers.kill(broker)
    group.converges("it goes on with two brokers")
    group.brokers.begin_again(broker)


def freeze_broker(group: Group) -> None:
    """The same one, until the other two have done without it."""
    pid = group.brokers.pids[group.brokers.leader(group.settings.topics.metadata)]
    os.kill(pid, signal.SIGSTOP)
    group.converges("it goes on without the broker that hangs")
    os.kill(pid, signal.SIGCONT)


FAULTS: Mapping[str, Callable[[Group], None]] = {
    "the controller is killed": kill("controller"),
    "a consumer is killed": kill_consumer,
    "the monitor is killed": kill("monitor"),
    "the controller freezes": freeze("controller", 10.0),
    "a consumer freezes": freeze_consumer,
    "the monitor freezes": freeze("monitor", 5.0),
    "a broker is killed": kill_broker,
    "a broker freezes": freeze_broker,
}


@pytest.mark.timeout(1200)
def test_whatever_is_killed_or_frozen_during_a_plan_every_record_is_read_once_and_the_group_converges(
    tmp_path: Path, broker_cluster: BrokerCluster, spark_server: SharedSpark
) -> None:
    with ExitStack() as stack:
        settings = configure(tmp_path, broker_cluster, spark_server)
        kafka = settings.kafka
        client = {"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0}
        reader = Consumer({**client, "group.id": "ends"})
        stack.callback(reader.close)
        commits = GroupCommits(client, kafka.group)
        stack.callback(commits.close)
        observer = stack.enter_context(
            Observer(
                kafka.bootstrap_servers,
                names=settings.topics.names,
                silent_after_s=settings.controller.heartbeat_timeout_s,
            )
        )
        written = stack.enter_context(SteppedLoad(kafka.bootstrap_servers, speeds(CALM)))
        group = Group(tmp_path, settings, broker_cluster, observer, reader, commits, written)
        stack.callback(group.end)
        for component in ("monitor", "controller"):
            group.begin(component)
        group.converges("the group begins")
        for what, fault in FAULTS.items():
            began = time.monotonic()
            group.begin_a_plan()
            planned, before = time.monotonic(), group.consumers
            fault(group)
            group.converges(f"it converges, though {what}")
            ended = time.monotonic()
            log.info(
                what,
                planned_after_s=round(planned - began, 1),
                converged_after_s=round(ended - planned, 1),
                consumers=(before, group.consumers),
            )
        group.load.stop()
        group.converges("everything is read")
        observer.catch_up(WITHIN_S)
        readers = observer.most_readers()
        in_kafka = sum(log_offsets.ends(reader, PARTITIONS, ANSWERS_WITHIN_S).values())
        accounts = verify(spark_server.remote, settings.consumer.lake_root, {"orders": len(PARTITIONS)}).values()
    assert written.unacknowledged == 0
    assert sum(account.distinct_offsets for account in accounts) == in_kafka == written.acknowledged > 0
    assert sum(account.doubled for account in accounts) == 0
    assert readers.count == 1, readers


def configure(folder: Path, brokers: BrokerCluster, spark: SharedSpark) -> Settings:
    """Writes the settings, and makes the topics that they name."""
    profile = LoadProfile({partition: Course(((0, 1), (1, 1))) for partition in PARTITIONS})
    text = settings_text(Services(brokers.bootstrap_servers, spark.remote, ""), profile, folder)
    for usual, faster in FASTER.items():
        assert usual in text
        text = text.replace(usual, faster)
    (folder / "settings.toml").write_text(text)
    settings = load(folder / "settings.toml")
    cluster = Cluster(settings.kafka.bootstrap_servers)
    cluster.ensure_internal_topics(settings.topics.names, settings.controller.highest_consumer)
    cluster.create(profile.topics)
    while not brokers.know(profile.topics):
        time.sleep(0.1)
    return settings
