"""Kill -9 and a freeze of each part of the system, each while a plan is under way, on three brokers and a real lake."""

import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
import structlog

from app.topics import Cluster
from consumer.verify import verify
from domain.assignment import ConsumerId
from domain.partitions import TopicPartition
from sandbox.observer import Observer
from sandbox.services import Services
from sandbox.settings_file import CONSUMER_CAPACITY
from tests.broker_cluster import BrokerCluster
from tests.fire.group import WITHIN_S, Group, configure
from tests.services import SharedSpark

log = structlog.get_logger()

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.usefixtures("nothing_left_running")]

PARTITIONS = [TopicPartition("orders", number) for number in range(6)]
CALM, BUSY = 0.4, 1.3
"""In consumers: one reads it all, then there must be two."""


def speeds(consumers: float) -> dict[TopicPartition, float]:
    """Uneven, and so much in all."""
    weights = {partition: partition.partition + 1 for partition in PARTITIONS}
    unit = consumers * CONSUMER_CAPACITY / sum(weights.values())
    return {partition: unit * weight for partition, weight in weights.items()}


class PlannedGroup(Group):
    """A group whose plans are watched.

    Args:
        stack: ends everything when it is closed.
        folder: has the settings, and takes the logs.
        brokers: that it runs on.
        spark: whose lake it writes to.
    """

    def __init__(self, stack: ExitStack, folder: Path, brokers: BrokerCluster, spark: SharedSpark) -> None:
        settings = configure(folder, Services(brokers.bootstrap_servers, spark.remote, ""), PARTITIONS)
        topics = {"orders": len(PARTITIONS)}
        Cluster(brokers.bootstrap_servers).create(topics)
        while not brokers.know(topics):
            time.sleep(0.1)
        self.brokers = brokers
        self.observer = stack.enter_context(
            Observer(
                brokers.bootstrap_servers,
                names=settings.topics.names,
                silent_after_s=settings.controller.heartbeat_timeout_s,
            )
        )
        super().__init__(stack, folder, settings, speeds(CALM))
        self._busy = False

    def signal(self, component: str, number: signal.Signals) -> None:
        os.kill(self.children[component].pid, number)

    def begin_a_plan(self) -> None:
        """Changes the load, and returns when partitions are on their way from one consumer to another."""
        self._busy = not self._busy
        self.load.step(speeds(BUSY if self._busy else CALM))
        self.wait("a plan is under way", lambda: bool(self.sources))

    @property
    def sources(self) -> set[ConsumerId]:
        """The consumers that partitions are to be taken from."""
        transits = self.observer.snapshot().transits
        return {transit.source for transit in transits if transit.is_migration and transit.source is not None}

    @property
    def is_placed(self) -> bool:
        view = self.observer.snapshot()
        held = [held.partition for consumer in view.consumers for held in consumer.partitions if not consumer.silent]
        return not view.transits and sorted(held) == PARTITIONS

    def picture(self) -> object:
        return self.observer.snapshot()


def kill(component: str) -> Callable[[PlannedGroup], None]:
    def fault(group: PlannedGroup) -> None:
        group.signal(component, signal.SIGKILL)
        group.children[component].stop()
        group.begin(component)

    return fault


def freeze(component: str, seconds: float) -> Callable[[PlannedGroup], None]:
    def fault(group: PlannedGroup) -> None:
        group.signal(component, signal.SIGSTOP)
        time.sleep(seconds)
        group.signal(component, signal.SIGCONT)

    return fault


def kill_consumer(group: PlannedGroup) -> None:
    pid = group.consumers[min(group.sources)]
    os.kill(pid, signal.SIGKILL)
    group.wait("it is noticed", lambda: pid not in group.consumers.values())


def freeze_consumer(group: PlannedGroup) -> None:
    """For longer than its lease: others take over, and it wakes up then."""
    consumer = min(group.sources)
    pid = group.consumers[consumer]
    os.kill(pid, signal.SIGSTOP)
    group.converges(f"others read what consumer {consumer} had")
    assert group.consumers.get(consumer) == pid, "it was killed before it could wake up"
    os.kill(pid, signal.SIGCONT)


def kill_broker(group: PlannedGroup) -> None:
    """The one that all reports and claims go through."""
    broker = group.brokers.leader(group.settings.topics.metadata)
    group.brokers.kill(broker)
    group.converges("it goes on with two brokers")
    group.brokers.begin_again(broker)


def freeze_broker(group: PlannedGroup) -> None:
    """The same one, until the other two have done without it."""
    pid = group.brokers.pids[group.brokers.leader(group.settings.topics.metadata)]
    os.kill(pid, signal.SIGSTOP)
    group.converges("it goes on without the broker that hangs")
    os.kill(pid, signal.SIGCONT)


FAULTS: Mapping[str, Callable[[PlannedGroup], None]] = {
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
        group = PlannedGroup(stack, tmp_path, broker_cluster, spark_server)
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
        group.observer.catch_up(WITHIN_S)
        readers, in_kafka = group.observer.most_readers(), group.in_kafka
        accounts = verify(spark_server.remote, group.settings.consumer.lake_root, ["orders"]).values()
    assert group.load.unacknowledged == 0
    assert sum(account.distinct_offsets for account in accounts) == in_kafka == group.load.acknowledged > 0
    assert sum(account.doubled for account in accounts) == 0
    assert readers.count == 1, readers
