"""Clocks that are wrong or set, a table that refuses, partitions without a leader, brokers that forget commits and
writers, records that Kafka loses, access tokens that expire: on real services.

After each of them every record is in the lake once, and no partition had two readers at one time. What Kafka itself has
lost is reported with its offsets.
"""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pyarrow.parquet as pq
import pytest
import structlog
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from app.child import Child
from app.jars import KAFKA, obtain
from app.java import Java
from app.settings import Settings
from app.topics import Cluster
from bench.pipeline import waits_of
from brokers import log_offsets
from domain.partitions import TopicPartition
from sandbox.broker import Broker
from sandbox.services import Services
from tests.broker_cluster import BrokerCluster
from tests.conftest import cannot, installed
from tests.consumer.table_files import files
from tests.fire.clock import Clock
from tests.fire.group import ANSWERS_WITHIN_S, BUSY, CALM, SHORT_LEASES, configure, speeds
from tests.fire.witnessed_group import WitnessedGroup, partitions_of
from tests.services import SharedBroker, SharedSpark
from tests.test_parked_topics import Tables, group_that_parks, session, unpark
from tests.tokened_group import hold, tokened_cluster
from tests.tools import COMPILER

__all__ = ["session"]

log = structlog.get_logger()

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.usefixtures("nothing_left_running"),
]

AN_HOUR_S = 3600
REFUSES_S = float(os.environ.get("KCGA_REFUSES_S", "60"))
"""How long a table refuses, and for how long waits are measured before and after, or in a run without."""
REFUSED_ALL_THE_TIME = range(150, 10**6, 300)
"""Offsets: at the load of these tests about one in 26 s."""
TOKENS_FOR_S = 600
WARM_UP_S = 90
"""After its beginning Spark takes several times as long for each write."""
FORGOTTEN_AFTER_S = 60
IDLE_S = 3 * FORGOTTEN_AFTER_S
FORGETFUL = {
    "transactional.id.expiration.ms": FORGOTTEN_AFTER_S * 1000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 10_000,
    "producer.id.expiration.ms": FORGOTTEN_AFTER_S * 1000,
    "producer.id.expiration.check.interval.ms": 10_000,
    "offsets.retention.minutes": FORGOTTEN_AFTER_S // 60,
    "offsets.retention.check.interval.ms": 10_000,
}
WITH_A_SPARE = SHORT_LEASES | {"max_consumers = 12\n": SHORT_LEASES["max_consumers = 12\n"] + "spare_consumers = 1\n"}
RENEWED = WITH_A_SPARE | {"wait_time_secs = 3\n": SHORT_LEASES["wait_time_secs = 3\n"] + "renew_claims_s = 20\n"}


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def compiler() -> Path:
    """What gives a component a clock of its own."""
    return installed(COMPILER)


@pytest.fixture
def small_group(
    stack: ExitStack, tmp_path: Path, broker: SharedBroker, spark_server: SharedSpark, unique_name: str
) -> WitnessedGroup:
    """One topic of six partitions; no component is begun."""
    services = Services(broker.bootstrap_servers, spark_server.remote, f"{unique_name}.")
    partitions = partitions_of(f"{unique_name}.orders", 6)
    settings = configure(tmp_path, services, partitions, SHORT_LEASES)
    Cluster(broker.bootstrap_servers).create(Counter(partition.topic for partition in partitions))
    return WitnessedGroup(stack, tmp_path, settings, speeds(partitions, CALM))


@pytest.mark.parametrize("whose", ["the monitor", "a consumer"])
def test_a_clock_that_is_an_hour_ahead_changes_nothing(
    whose: str, small_group: WitnessedGroup, spark_server: SharedSpark, compiler: Path, tmp_path: Path
) -> None:
    group, ahead = small_group, Clock(compiler, tmp_path, AN_HOUR_S).environment
    if whose == "a consumer":
        variables = [f"{name}={value}" for name, value in ahead.items()]
        program = [sys.executable, "-m", "tests.fire.other_consumer", str(group.settings_file), *variables]
        group.start("controller", program)
        group.begin("monitor")
    else:
        group.begin("controller")
        group.begin("monitor", ahead)
    group.converges("the group begins")
    wrong = group.children["monitor"].pid if whose == "the monitor" else group.consumers[1]
    assert ahead.items() <= psutil.Process(wrong).environ().items()
    group.grows()
    group.shrinks()
    group.require_all_once(spark_server)
    assert group.gave_up == []


def test_a_clock_that_is_set_while_everything_runs_by_it_changes_nothing(
    small_group: WitnessedGroup, spark_server: SharedSpark, compiler: Path, tmp_path: Path
) -> None:
    """An hour ahead, then two hours back."""
    group, clock = small_group, Clock(compiler, tmp_path)
    for component in ("monitor", "controller"):
        group.begin(component, clock.environment)
    group.converges("the group begins")
    processes = group.consumers
    clock.set(AN_HOUR_S)
    group.grows()
    assert processes.items() <= group.consumers.items()
    processes = group.consumers
    clock.set(-AN_HOUR_S)
    group.converges("it goes on an hour behind")
    assert group.consumers == processes
    group.shrinks()
    group.require_all_once(spark_server)
    assert group.gave_up == []


def test_a_table_that_refuses_keeps_no_other_topic_waiting(
    stack: ExitStack, tmp_path: Path, broker: SharedBroker, spark_server: SharedSpark, unique_name: str
) -> None:
    services = Services(broker.bootstrap_servers, spark_server.remote, f"{unique_name}.")
    refused, others = (partitions_of(f"{unique_name}.{topic}", 3) for topic in ("orders", "clicks"))
    settings = configure(tmp_path, services, refused + others, SHORT_LEASES)
    Cluster(broker.bootstrap_servers).create(Counter(partition.topic for partition in refused + others))
    group = WitnessedGroup(stack, tmp_path, settings, speeds(refused + others, CALM))
    for component in ("monitor", "controller"):
        group.begin(component)
    group.converges("the group begins")
    time.sleep(WARM_UP_S)
    began = time.time()
    time.sleep(REFUSES_S)
    with read_only(Path(settings.consumer.table(refused[0].topic))):
        refused_from = time.time()
        time.sleep(settings.consumer.wait_time_secs)
        group.wait("it refuses", lambda: any(f"{refused[0].topic}: " in told for told in told_by(group)))
        before = group.commits.offsets(refused, ANSWERS_WITHIN_S)
        time.sleep(max(0.0, refused_from + REFUSES_S - time.time()))
        assert group.commits.offsets(refused, ANSWERS_WITHIN_S) == before
        ended = time.time()
    group.converges("it takes rows again")
    mended = time.time()
    time.sleep(REFUSES_S)
    table = Path(settings.consumer.table(others[0].topic))
    meanwhile_s = p99_s(table, refused_from, ended)
    before_s, after_s = p99_s(table, began, refused_from), p99_s(table, mended, time.time())
    group.require_all_once(spark_server)
    log.warning("p99 from produced to in the lake", before_s=before_s, meanwhile_s=meanwhile_s, after_s=after_s)
    assert meanwhile_s <= 2 * min(before_s, after_s)
    assert group.gave_up == []


@pytest.mark.timeout(1200 + 2 * REFUSES_S)
def test_a_topic_that_is_parked_and_dead_letters_keep_no_other_topic_waiting(
    session: SparkSession, tmp_path: Path, broker: SharedBroker, spark_server: SharedSpark, unique_name: str
) -> None:
    """Beside them, and then in a run without: the same load through a group whose tables take all."""
    services = Services(broker.bootstrap_servers, spark_server.remote, f"{unique_name}.")
    beside = Tables(f"{unique_name}.beside", session, REFUSED_ALL_THE_TIME)
    with group_that_parks(tmp_path / "beside", services, beside) as group:
        beside.create(group)
        begin(group)
        group.wait("it is parked", lambda: [each.topic for each in group.parked] == [beside.topic])
        beside_s = p99_over_time_s(group, beside)
        assert [each.topic for each in group.parked] == [beside.topic]
        beside.mend(group)
        unpark(group, beside.topic)
        group.wait("it is written", lambda: group.parked == ())
        group.require_all_once(spark_server)
        beside.require_dead_letters(group, spark_server)
        assert group.gave_up == []
    services = replace(services, prefix=f"{unique_name}.without.")
    without = Tables(f"{unique_name}.without", session)
    with group_that_parks(tmp_path / "without", services, without) as group:
        begin(group)
        group.converges("the group begins")
        without_s = p99_over_time_s(group, without)
    log.warning("p99 from produced to in the lake", beside_s=beside_s, without_s=without_s)
    assert beside_s <= 2 * without_s


def begin(group: WitnessedGroup) -> None:
    for component in ("monitor", "controller"):
        group.begin(component)


def p99_over_time_s(group: WitnessedGroup, tables: Tables) -> float:
    """Of the topic whose table takes all, for a while after Spark has warmed up."""
    time.sleep(WARM_UP_S)
    began = time.time()
    time.sleep(REFUSES_S)
    return p99_s(Path(group.settings.consumer.table(tables.fine[0].topic)), began, time.time())


def told_by(group: WitnessedGroup) -> set[str]:
    """What is told by now."""
    group.witness.listen()
    return group.witness.reasons


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nobody writes anything in the folder, root neither."""

    def mount(*arguments: str | Path) -> bool:
        return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0  # noqa: S607

    if not mount("--bind", folder, folder):
        cannot("a folder cannot be mounted read-only")
    try:
        assert mount("-o", "remount,bind,ro", folder)
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # noqa: S607


def p99_s(table: Path, begin: float, end: float) -> float:
    """From produced to in the lake, of the rows that came to the table between these two moments."""
    waits = [waits for at, waits in waits_of(table / "_delta_log") if begin <= at < end]
    return float(np.quantile(np.concatenate(waits), 0.99))


def test_partitions_without_a_leader_keep_no_other_waiting_and_are_read_on(
    stack: ExitStack, tmp_path: Path, broker_cluster: BrokerCluster, spark_server: SharedSpark
) -> None:
    partitions = partitions_of("orders", 6)
    settings = configure(
        tmp_path, Services(broker_cluster.bootstrap_servers, spark_server.remote, ""), partitions, SHORT_LEASES
    )
    create(broker_cluster, "orders", [[number % 3 + 1] for number in range(6)], {"min.insync.replicas": "1"})
    group = WitnessedGroup(stack, tmp_path, settings, speeds(partitions, CALM))
    for component in ("monitor", "controller"):
        group.begin(component)
    group.converges("the group begins")
    broker_cluster.kill(1)
    led = [partition for partition in partitions if partition.partition % 3]
    group.reads(led, "the others are read")
    monitor_log = group.children["monitor"].log
    group.wait("it is told", lambda: "partitions have no leader" in monitor_log.read_text())
    group.wait("its reader tells it", lambda: any("has no leader" in told for told in told_by(group)))
    group.load.step(speeds(partitions, BUSY))
    group.wait("two read", lambda: len(group.readers) == 2)
    group.reads(led, "the others are read by two")
    broker_cluster.begin_again(1)
    group.converges("everything is led again")
    group.require_all_once(spark_server)


def create(brokers: BrokerCluster, topic: str, replicas: Sequence[Sequence[int]], settings: Mapping[str, str]) -> None:
    """A topic whose partitions are on these brokers."""
    admin = AdminClient({"bootstrap.servers": brokers.bootstrap_servers})
    new = NewTopic(topic, len(replicas), replica_assignment=[list(each) for each in replicas], config=dict(settings))
    admin.create_topics([new])[topic].result(ANSWERS_WITHIN_S)
    while not brokers.know({topic: len(replicas)}):
        time.sleep(0.1)


class ForgetfulBroker(Broker):
    """A broker that forgets after a minute what others forget after a week."""

    def _prepare(self, port: int) -> Child:
        child = super()._prepare(port)
        with (self._folder / "server.properties").open("a") as file:
            file.writelines(f"{name}={value}\n" for name, value in FORGETFUL.items())
        return child


@pytest.mark.parametrize("other", [RENEWED, WITH_A_SPARE], ids=["claims are renewed", "claims are not renewed"])
def test_brokers_that_forget_commits_and_writers_lose_and_double_nothing(
    other: Mapping[str, str], stack: ExitStack, tmp_path: Path, java: Java, spark_server: SharedSpark
) -> None:
    broker = stack.enter_context(ForgetfulBroker(tmp_path / "kafka", jars=obtain(KAFKA), java=java))
    busy, idle = partitions_of("orders", 2), partitions_of("clicks", 2)
    services = Services(broker.bootstrap_servers, spark_server.remote, "")
    settings = configure(tmp_path, services, busy + idle, other)
    Cluster(broker.bootstrap_servers).create({"orders": 2, "clicks": 2})
    group = WitnessedGroup(stack, tmp_path, settings, speeds(busy + idle, CALM))
    for component in ("monitor", "controller"):
        group.begin(component)
    group.converges("the group begins")
    group.load.step(dict.fromkeys(idle, 0.0))
    group.converges("some are idle")
    time.sleep(IDLE_S)
    committed = group.commits.offsets(idle, ANSWERS_WITHIN_S).values()
    if other is RENEWED:
        assert None not in committed
        assert group.gave_up == []
    else:
        assert set(committed) == {None}
    (reader,) = group.readers
    killed = group.consumers[reader]
    os.kill(killed, signal.SIGKILL)
    group.wait("it is noticed", lambda: killed not in group.consumers.values())
    group.load.step(speeds(busy + idle, CALM))
    group.require_all_once(spark_server)


BEFORE, ONLY_BY_ONE, AFTER = 1000, 500, 300
"""Records: those that both replicas have, those that are lost, and those that come in their place."""


def test_records_that_kafka_lost_after_they_were_read_are_told_with_their_offsets(
    stack: ExitStack, tmp_path: Path, broker_cluster: BrokerCluster, spark_server: SharedSpark
) -> None:
    """Every value is in the lake once, also of those that got the offsets of lost ones. Producers wait meanwhile."""
    others = partitions_of("clicks", 2)
    create(broker_cluster, "clicks", [[3, 1, 2], [2, 3, 1]], {})
    group, settings, producer = reads_ahead(stack, tmp_path, broker_cluster, spark_server, others)
    second_leads(group, broker_cluster)
    group.wait("it has less", lambda: end(group.reader, CARELESS) == BEFORE)
    wait_until_the_loss_is_told(group)
    values = range(BEFORE + ONLY_BY_ONE, BEFORE + ONLY_BY_ONE + AFTER)
    produce(producer, values)
    broker_cluster.begin_again(1)
    group.load.step(speeds(others, CALM))
    require_each_value_once(group, settings, values)


CARELESS = TopicPartition("orders", 0)
"""It may be led by a replica that lacks some of its records."""


def reads_ahead(
    stack: ExitStack,
    folder: Path,
    cluster: BrokerCluster,
    spark_server: SharedSpark,
    others: Sequence[TopicPartition] = (),
) -> tuple[WitnessedGroup, Settings, Producer]:
    """A group that has read all of the partition, also what only the first broker has: the second is frozen."""
    partitions = [CARELESS, *others]
    settings = configure(folder, Services(cluster.bootstrap_servers, spark_server.remote, ""), partitions, SHORT_LEASES)
    careless = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
    create(cluster, CARELESS.topic, [[1, 2]], careless)
    group = WitnessedGroup(stack, folder, settings, dict.fromkeys(partitions, 0.0))
    for component in ("monitor", "controller"):
        group.begin(component)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "log_level": 3})
    produce(producer, range(BEFORE))
    group.converges("the group begins")
    os.kill(cluster.pids[2], signal.SIGSTOP)
    group.wait("one replica is in sync", lambda: in_sync(group.reader, CARELESS) == [1])
    produce(producer, range(BEFORE, BEFORE + ONLY_BY_ONE))
    group.converges("all of the first log is read")
    return group, settings, producer


def second_leads(group: WitnessedGroup, cluster: BrokerCluster) -> None:
    """The first broker dies, and the second one goes on without what it lacks."""
    second = cluster.pids[2]
    cluster.kill(1)
    os.kill(second, signal.SIGCONT)
    group.wait("the second leads", lambda: leads(group.reader, CARELESS) == 2)


def wait_until_the_loss_is_told(group: WitnessedGroup) -> None:
    lost = f"{CARELESS}: offsets {BEFORE} to {BEFORE + ONLY_BY_ONE - 1} were read and are no more in the log"
    group.wait("the loss is told", lambda: any(lost in told for told in told_by(group)))


def require_each_value_once(group: WitnessedGroup, settings: Settings, newest: range) -> None:
    """All up to the newest are in the lake once, and nothing ever had two readers."""
    topic = CARELESS.topic
    group.wait("the new ones are in the lake", lambda: set(newest) <= lake_values(settings, topic).keys())
    group.load.stop()
    assert lake_values(settings, topic) == Counter(range(newest.stop))
    assert group.witness.most_readers.count == 1, group.witness.most_readers


def produce(producer: Producer, values: range) -> None:
    """Returns when all of them are acknowledged."""
    refused: list[object] = []
    for value in values:
        producer.produce(
            CARELESS.topic,
            str(value).encode(),
            partition=CARELESS.partition,
            on_delivery=lambda error, _: refused.append(error) if error else None,
        )
    assert producer.flush(120) == 0
    assert refused == []


def in_sync(reader: Consumer, partition: TopicPartition) -> list[int]:
    known = reader.list_topics(partition.topic, timeout=ANSWERS_WITHIN_S).topics[partition.topic]
    return list(known.partitions[partition.partition].isrs)


def leads(reader: Consumer, partition: TopicPartition) -> int:
    known = reader.list_topics(partition.topic, timeout=ANSWERS_WITHIN_S).topics[partition.topic]
    leader: int = known.partitions[partition.partition].leader
    return leader


def end(reader: Consumer, partition: TopicPartition) -> int | None:
    return log_offsets.ends(reader, [partition], ANSWERS_WITHIN_S).get(partition)


def lake_values(settings: Settings, topic: str) -> Counter[int]:
    """How many rows have each value."""
    rows = (pq.ParquetFile(file).read(["value"]) for file in files(Path(settings.consumer.table(topic))))
    return Counter(int(value) for table in rows for value in table["value"].to_pylist())


@pytest.mark.parametrize("after", [300, 800], ids=["still shorter", "grown beyond what was read"])
def test_what_is_written_in_place_of_lost_records_before_they_are_missed_is_read(
    after: int, stack: ExitStack, tmp_path: Path, broker_cluster: BrokerCluster, spark_server: SharedSpark
) -> None:
    """Nobody reads while the second leader is elected and producers go on."""
    group, settings, producer = reads_ahead(stack, tmp_path, broker_cluster, spark_server)
    frozen = tuple(group.consumers.values())
    for process in frozen:
        os.kill(process, signal.SIGSTOP)
    second_leads(group, broker_cluster)
    values = range(BEFORE + ONLY_BY_ONE, BEFORE + ONLY_BY_ONE + after)
    produce(producer, values)
    for process in frozen:
        os.kill(process, signal.SIGCONT)
    wait_until_the_loss_is_told(group)
    broker_cluster.begin_again(1)
    require_each_value_once(group, settings, values)


def test_a_group_by_access_tokens_of_a_minute_goes_on_for_ten_minutes_without_a_gap(
    java: Java, spark_server: SharedSpark, tmp_path: Path
) -> None:
    with tokened_cluster(tmp_path, java, lifetime_s=60) as cluster:
        held = hold(cluster, spark_server.remote, tmp_path, for_s=TOKENS_FOR_S)
    log.info("tokens were given", **held.tokens)
    assert held.unknown == 0
    assert (held.in_the_lake, held.doubled) == (held.produced, 0)
    assert held.warnings == []
