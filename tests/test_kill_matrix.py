"""Kill -9 and a freeze of each part of the system, each while a plan is under way, on three brokers and a real lake."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import structlog
from confluent_kafka.admin import AdminClient

from cli.components import command, consumer_command
from cli.embedded.broker import Broker, Quorum
from cli.embedded.child import Child
from cli.embedded.jars import KAFKA, obtain
from cli.embedded.java import Java
from cli.embedded.load import LoadReport, run_load
from cli.embedded.load_profile import Course, LoadProfile
from cli.embedded.spark import SparkConnectServer
from cli.settings import load
from cli.topics import Cluster
from cli.up.services import Services
from cli.up.settings_file import CONSUMER_CAPACITY, settings_text
from cli.watch.observer import Observer
from consumer.verify import verify
from controller.local_processes import LocalProcesses
from domain.assignment import ConsumerId
from domain.partitions import TopicPartition

log = structlog.get_logger()

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.usefixtures("nothing_left_running")]

BROKERS = 3
CALM_S, BUSY_S, RISE_S = 12.0, 16.0, 0.1
CALM, BUSY = 0.4, 1.2
"""In consumers: the load steps up and down between them, so that a plan is made every now and then."""
WITHIN_S = 150.0
"""So long at most a plan is waited for, and a group that converges; it takes a fifth on a quiet machine."""


def steps(partitions: int = 6) -> LoadProfile:
    def course(number: int) -> Course:
        calm, busy = (load * CONSUMER_CAPACITY * (number + 1) / 21 for load in (CALM, BUSY))
        end = CALM_S + BUSY_S + 2 * RISE_S
        corners = ((0, calm), (CALM_S, calm), (CALM_S + RISE_S, busy), (end - RISE_S, busy), (end, calm))
        return Course(corners)

    return LoadProfile({TopicPartition("orders", number): course(number) for number in range(partitions)})


class ThreeBrokers:
    """A cluster that goes on without any one of its brokers."""

    def __init__(self, folder: Path, java: Java) -> None:
        self._quorum = Quorum.of(BROKERS)
        self._folder = folder
        self._java = java
        self._brokers = {number: self._broker(number, None) for number in range(1, BROKERS + 1)}

    def _broker(self, number: int, port: int | None) -> Broker:
        folder = self._folder / f"broker-{number}"
        jars = obtain(KAFKA)
        return Broker(folder, jars=jars, java=self._java, port=port, heap_mb=320, quorum=self._quorum, number=number)

    def start(self) -> None:
        with ThreadPoolExecutor() as pool:
            list(pool.map(Broker.start, self._brokers.values()))

    def stop(self) -> None:
        with ThreadPoolExecutor() as pool:
            list(pool.map(Broker.stop, self._brokers.values()))

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(broker.bootstrap_servers for broker in self._brokers.values())

    def leader(self, topic: str) -> Broker:
        """Who leads partition 0 of the topic."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        return self._brokers[admin.list_topics(topic, timeout=30).topics[topic].partitions[0].leader]

    def know(self, topics: Mapping[str, int]) -> bool:
        """Whether each of them has heard of the topics."""
        return all(topics.items() <= Cluster(each.bootstrap_servers).partitions().items() for each in self._all)

    @property
    def _all(self) -> Collection[Broker]:
        return self._brokers.values()

    def begin_again(self, killed: Broker) -> None:
        """Starts a broker anew that was killed, with what it had."""
        (number,) = (number for number, broker in self._brokers.items() if broker is killed)
        port = int(killed.bootstrap_servers.rpartition(":")[2])
        killed.stop()
        self._brokers[number] = self._broker(number, port)
        self._brokers[number].start()


@dataclass
class Group:
    """The whole of kcga, under a load."""

    folder: Path
    brokers: ThreeBrokers
    observer: Observer
    load: "Future[LoadReport] | None" = None
    children: dict[str, Child] = field(default_factory=dict)
    began: dict[str, int] = field(default_factory=dict)

    @property
    def settings_file(self) -> Path:
        return self.folder / "settings.toml"

    def begin(self, component: str) -> None:
        self.began[component] = self.began.get(component, 0) + 1
        log = self.folder / f"{component}-{self.began[component]}.log"
        child = Child(f"the {component}", command(component, "--settings", str(self.settings_file)), log)
        child.start()
        self.children[component] = child

    def end(self) -> None:
        """First those who would begin others anew."""
        for child in self.children.values():
            child.stop()
        local = load(self.settings_file).local
        fleet = LocalProcesses(local.folder, lambda number: consumer_command(number, self.settings_file), local.grace_s)
        fleet.close()

    def signal(self, component: str, number: signal.Signals) -> None:
        os.kill(self.children[component].pid, number)

    def consumers(self) -> dict[ConsumerId, int]:
        """The processes of the consumers."""
        found = {}
        for file in (self.folder / "consumers").glob("consumer-*.json"):
            with_pid = json.loads(file.read_text())
            found[int(file.stem.removeprefix("consumer-"))] = int(with_pid["pid"])
        return found

    def wait(self, what: str, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not condition():
            if self.load is not None and self.load.done():
                self.load.result()
            assert time.monotonic() < deadline, f"not so within {WITHIN_S:g} s: {what}\n{self.observer.snapshot()}"
            time.sleep(0.1)

    @property
    def plan_is_under_way(self) -> bool:
        return any(transit.is_migration for transit in self.observer.snapshot().transits)

    @property
    def converged(self) -> bool:
        """Each partition is read by whom the plan names, and who is heard of."""
        view = self.observer.snapshot()
        readers = [held.partition for consumer in view.consumers for held in consumer.partitions if not consumer.silent]
        return not view.transits and sorted(readers) == sorted(view.speeds) and len(readers) > 0


def kill_consumer(group: Group) -> None:
    _, pid = min(group.consumers().items())
    os.kill(pid, signal.SIGKILL)
    group.wait("it is noticed", lambda: pid not in group.consumers().values())


def freeze_consumer(group: Group) -> None:
    """For longer than its lease: others take over, and it wakes up then."""
    consumer, pid = min(group.consumers().items())
    os.kill(pid, signal.SIGSTOP)

    def reads_nothing() -> bool:
        views = group.observer.snapshot().consumers
        return not any(view.partitions and not view.silent for view in views if view.consumer == consumer)

    group.wait(f"others read what consumer {consumer} had", lambda: reads_nothing() and group.converged)
    if pid in group.consumers().values():
        os.kill(pid, signal.SIGCONT)


def kill_and_begin(component: str) -> Callable[[Group], None]:
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


def kill_broker(group: Group) -> None:
    broker = group.brokers.leader("consumer.metadata")
    os.kill(broker.child.pid, signal.SIGKILL)
    group.wait("the group converges on two brokers", lambda: group.converged)
    group.brokers.begin_again(broker)


def freeze_broker(group: Group) -> None:
    broker = group.brokers.leader("consumer.metadata")
    os.kill(broker.child.pid, signal.SIGSTOP)
    time.sleep(20)
    os.kill(broker.child.pid, signal.SIGCONT)


FAULTS: dict[str, Callable[[Group], None]] = {
    "the controller is killed": kill_and_begin("controller"),
    "a consumer is killed": kill_consumer,
    "the monitor is killed": kill_and_begin("monitor"),
    "the controller freezes": freeze("controller", 10.0),
    "a consumer freezes": freeze_consumer,
    "the monitor freezes": freeze("monitor", 10.0),
    "a broker is killed": kill_broker,
    "a broker freezes": freeze_broker,
}


@contextmanager
def the_load(brokers: ThreeBrokers, profile: LoadProfile) -> Iterator[tuple[threading.Event, "Future[LoadReport]"]]:
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        try:
            yield stop, pool.submit(run_load, brokers.bootstrap_servers, profile, stop=stop)
        finally:
            stop.set()


@pytest.mark.timeout(1500)
def test_whatever_is_killed_or_frozen_during_a_plan_every_record_is_read_once_and_the_group_converges(
    tmp_path: Path, java: Java, spark_server: SparkConnectServer
) -> None:
    profile = steps()
    with ExitStack() as stack:
        brokers = ThreeBrokers(tmp_path, java)
        stack.callback(brokers.stop)
        brokers.start()
        services = Services(brokers.bootstrap_servers, spark_server.remote, "")
        text = settings_text(services, profile, tmp_path).replace("window_s = 15", "window_s = 5")
        (tmp_path / "settings.toml").write_text(text)
        settings = load(tmp_path / "settings.toml")
        cluster = Cluster(settings.kafka.bootstrap_servers)
        cluster.ensure_internal_topics(settings.topics.names, settings.controller.highest_consumer)
        cluster.create(profile.topics)
        observer = stack.enter_context(
            Observer(
                brokers.bootstrap_servers,
                settings.kafka.group,
                names=settings.topics.names,
                silent_after_s=settings.controller.heartbeat_timeout_s,
            )
        )
        group = Group(tmp_path, brokers, observer)
        stack.callback(group.end)
        group.wait("all brokers know the topics", lambda: brokers.know(profile.topics))
        stop, produced = stack.enter_context(the_load(brokers, profile))
        group.load = produced
        for component in ("monitor", "controller"):
            group.begin(component)
        group.wait("the group begins", lambda: group.converged)
        for what, fault in FAULTS.items():
            group.wait("a plan is under way", lambda: group.plan_is_under_way)
            began = time.monotonic()
            fault(group)
            group.wait(f"it converges, though {what}", lambda: group.converged)
            log.info(what, converged_after_s=round(time.monotonic() - began, 1))
        group.load = None
        stop.set()
        report = produced.result()
        group.wait("everything is read", lambda: observer.snapshot().lag == 0)
        time.sleep(3)
        group.wait("everything is read", lambda: observer.snapshot().lag == 0)
        observer.catch_up(60)
        readers = observer.most_readers()
        accounts = verify(spark_server.remote, settings.consumer.lake_root, profile.topics).values()
    assert report.undelivered == 0, report.problem
    assert sum(account.distinct_offsets for account in accounts) == sum(report.delivered.values()) > 0
    assert sum(account.doubled for account in accounts) == 0
    assert readers.count == 1, readers
