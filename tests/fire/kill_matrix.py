"""Kill -9 and a freeze of each part of the system, each while a plan is under way, on three brokers, and into a real
lake or a program.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
import structlog

from app.topics import Cluster
from consumer.verify import verify
from domain.assignment import ConsumerId
from domain.messages import Action
from domain.partitions import TopicPartition
from sandbox.observer import Observer
from sandbox.services import Services
from tests.broker_cluster import BrokerCluster
from tests.fire.group import BUSY, CALM, SHORT_LEASES, Group, configure, speeds
from tests.patience import PATIENCE_S
from tests.services import SharedSpark
from tests.sink_examples import Example

log = structlog.get_logger()

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.usefixtures("nothing_left_running")]

PARTITIONS = [TopicPartition("orders", number) for number in range(6)]
COUNT = """SELECT count(*), count(DISTINCT partition || '/' || "offset") FROM records"""


class PlannedGroup(Group):
    """A group whose plans are watched.

    Args:
        stack: ends everything when it is closed.
        folder: has the settings, and takes the logs.
        brokers: that it runs on.
        spark: whose lake it writes to.
        sink: the program and its arguments that it writes to instead, if any.
    """

    def __init__(
        self, stack: ExitStack, folder: Path, brokers: BrokerCluster, spark: str, sink: Sequence[str] | None
    ) -> None:
        services = Services(brokers.bootstrap_servers, spark, "")
        other = (
            SHORT_LEASES
            if sink is None
            else SHORT_LEASES
            | {
                f"spark_remote = {json.dumps(spark)}\n": 'sink = "command"\n',
                f"lake_root = {json.dumps(str(folder / 'lake'))}\n": f"command = {json.dumps(sink)}\n",
            }
        )
        settings = configure(folder, services, PARTITIONS, other)
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
        super().__init__(stack, folder, settings, speeds(PARTITIONS, CALM))
        self._busy = False

    def signal(self, component: str, number: signal.Signals) -> None:
        os.kill(self.children[component].pid, number)

    def begin_a_plan(self) -> None:
        """Changes the load, and returns when partitions are on their way from one consumer to another."""
        self.change_load()
        self.wait("a plan is under way", lambda: bool(self.sources), every_s=0.1)

    def change_load(self) -> None:
        """To what takes another number of consumers."""
        self._busy = not self._busy
        self.load.step(speeds(PARTITIONS, BUSY if self._busy else CALM))

    def settles(self, what: str) -> None:
        """Waits until as many consumers read as the load takes, and have read what there was."""
        self.wait(what, lambda: self._readers > 1 if self._busy else self._readers == 1)
        self.converges(what)

    @property
    def _readers(self) -> int:
        return sum(1 for consumer in self.observer.snapshot().consumers if consumer.partitions and not consumer.silent)

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


def strike(number: signal.Signals, when: str, action: Action) -> Callable[[PlannedGroup], None]:
    """The controller is killed or frozen at a step of a hand-over, and another takes its place."""

    def fault(group: PlannedGroup) -> None:
        group.settles("the plan is carried out")
        group.children["controller"].stop()
        program = (sys.executable, "-m", "tests.fire.struck_controller", number.name, when, action)
        group.start("controller", (*program, str(group.settings_file)))
        struck = group.children.pop("controller")
        group.children["struck"] = struck
        group.change_load()
        group.wait("it is struck", lambda: not struck.running or _is_frozen(struck.pid))
        group.begin("controller")
        group.settles("another controller goes on")
        if number is signal.SIGSTOP:
            os.kill(struck.pid, signal.SIGCONT)
            group.wait("it sees that it is deposed", lambda: not struck.running)
        group.children.pop("struck").stop()
        assert struck.exit_code != 0

    return fault


def _is_frozen(pid: int) -> bool:
    return psutil.Process(pid).status() == psutil.STATUS_STOPPED


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
    **{
        f"the controller gets {number.name} {when} it commands a {action}": strike(number, when, action)
        for action in (Action.STOP, Action.START)
        for when in ("before", "after")
        for number in (signal.SIGKILL, signal.SIGSTOP)
    },
    "a consumer freezes": freeze_consumer,
    "the monitor freezes": freeze("monitor", 5.0),
    "a broker is killed": kill_broker,
    "a broker freezes": freeze_broker,
}


def in_the_lake(group: PlannedGroup, spark: str) -> tuple[int, int]:
    accounts = verify(spark, group.settings.consumer.lake_root, ["orders"]).values()
    return sum(account.rows for account in accounts), sum(account.distinct_offsets for account in accounts)


@pytest.fixture(scope="module", params=["the lake", "a program"])
def spark(request: pytest.FixtureRequest) -> str | None:
    """Where the lake is written to; None where records go to a program. The server is there before a test begins, and
    after it: it is none of what that may not leave running."""
    if request.param == "a program":
        return None
    server: SharedSpark = request.getfixturevalue("spark_server")
    return server.remote


@pytest.mark.timeout(2400)
def test_whatever_is_killed_or_frozen_during_a_plan_every_record_is_read_once_and_the_group_converges(
    spark: str | None, tmp_path: Path, broker_cluster: BrokerCluster, example: Example
) -> None:
    with ExitStack() as stack:
        sink = None if spark else example.command
        group = PlannedGroup(stack, tmp_path, broker_cluster, spark or "sc://nowhere", sink)
        for component in ("monitor", "controller"):
            group.begin(component)
        group.converges("the group begins")
        for what, fault in FAULTS.items():
            began = time.monotonic()
            group.begin_a_plan()
            planned, before = time.monotonic(), group.consumers
            fault(group)
            group.settles(f"the plan is carried out, though {what}")
            ended = time.monotonic()
            log.info(
                what,
                planned_after_s=round(planned - began, 1),
                converged_after_s=round(ended - planned, 1),
                consumers=(before, group.consumers),
            )
        group.load.stop()
        group.converges("everything is read")
        group.observer.catch_up(PATIENCE_S)
        readers, in_kafka = group.observer.most_readers(), group.in_kafka
        ((rows, distinct),) = [in_the_lake(group, spark)] if spark else example.held(COUNT)
    assert group.load.unacknowledged == 0
    assert rows == distinct == in_kafka == group.load.acknowledged > 0
    assert readers.count == 1, readers
