"""What befalls lake, brokers and JVM under a consumer: it keeps its data, says what is wrong, and goes on or ends."""

import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.jars import DELTA, KAFKA, obtain
from app.java import Java
from app.topics import Cluster
from consumer.runner import LeaseError
from consumer.settings import ConsumerSettings
from consumer.verify import PartitionAccount, verify
from domain.messages import ConsumerReport, ConsumerState
from domain.partitions import TopicPartition
from sandbox.broker import Broker
from sandbox.spark import SparkConnectServer
from tests.consumer.consumer_driver import Driver, RunningConsumer, StartConsumer, StartProcess
from tests.patience import PATIENCE_S
from tests.services import SharedSpark

FULL_FOR_S = 60.0


def ready(report: ConsumerReport) -> bool:
    return report.state is ConsumerState.READY


def degraded(report: ConsumerReport) -> bool:
    return report.state is ConsumerState.DEGRADED


def ready_as(number: int) -> Callable[[ConsumerReport], bool]:
    return lambda report: report.consumer == number and ready(report)


def whole(count: int) -> PartitionAccount:
    """All of the first so many records, each once."""
    return PartitionAccount(rows=count, distinct_offsets=count, first_offset=0, last_offset=count - 1)


@contextmanager
def no_space_for(server: SparkConnectServer) -> Iterator[None]:
    """The server's writes to files fail, as on a full disk: none of its files may have a byte."""
    root = psutil.Process(server.child.pid)
    processes = [root, *root.children(recursive=True)]
    before = {process.pid: resource.prlimit(process.pid, resource.RLIMIT_FSIZE) for process in processes}
    for pid, (_, hard) in before.items():
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        for pid, limits in before.items():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)


@pytest.fixture(scope="module")
def own_spark_server(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkConnectServer]:
    """One that these tests may harm, and the last of them may kill."""
    with SparkConnectServer(tmp_path_factory.mktemp("own-spark"), jars=obtain(DELTA), java=java) as server:
        yield server


@pytest.mark.slow(90)
def test_a_lake_that_is_full_for_a_minute_gets_every_record_once(
    driver: Driver,
    start_consumer: StartConsumer,
    own_spark_server: SparkConnectServer,
    lake_root: Path,
    data_topic: str,
) -> None:
    partition = TopicPartition(data_topic, 0)
    start_consumer(1, spark_remote=own_spark_server.remote)
    driver.produce(partition, 0, 5_000)
    driver.start([partition], driver.wait_for(ready))
    driver.wait_until_read(5_000)
    with no_space_for(own_spark_server):
        driver.produce(partition, 5_000, 10_000)
        driver.wait_for(lambda report: degraded(report) and data_topic in (report.reason or ""))
        driver.listen(FULL_FOR_S)
        assert driver.read_by() == 5_000
    driver.wait_until_read(15_000)
    driver.wait_for(ready, seen=False)
    assert verify(own_spark_server.remote, str(lake_root), [data_topic]) == {partition: whole(15_000)}


@pytest.mark.slow(80)
def test_a_spark_server_that_hangs_and_then_is_restarted_costs_no_record(
    driver: Driver,
    start_consumer: StartConsumer,
    own_spark_server: SparkConnectServer,
    data_topic: str,
    lake_root: Path,
) -> None:
    partition = TopicPartition(data_topic, 0)
    produced = 0

    def produce() -> None:
        nonlocal produced
        driver.produce(partition, produced, 5_000)
        produced += 5_000

    pid = own_spark_server.child.pid
    start_consumer(1, spark_remote=own_spark_server.remote, write_limit_s=20.0)
    driver.start([partition], driver.wait_for(ready))
    produce()
    driver.wait_for(lambda report: report.cycle is not None)

    os.killpg(pid, signal.SIGSTOP)
    produce()
    driver.wait_for(degraded)
    os.killpg(pid, signal.SIGCONT)
    driver.wait_until_read(produced)
    driver.wait_for(ready, seen=False)

    produce()
    driver.wait_for(lambda report: report.cycle is not None, seen=False)
    os.killpg(pid, signal.SIGKILL)
    produce()
    driver.wait_for(degraded, seen=False)
    own_spark_server.begin_again()
    driver.wait_until_read(produced)
    assert verify(own_spark_server.remote, str(lake_root), [data_topic]) == {partition: whole(produced)}


@pytest.mark.slow(40)
def test_consumers_of_a_spark_server_that_dies_go_on_with_the_other_one(
    driver: Driver,
    start_consumer: StartConsumer,
    own_spark_server: SparkConnectServer,
    spark_server: SharedSpark,
    data_topic: str,
    lake_root: Path,
) -> None:
    partitions = [TopicPartition(data_topic, number) for number in range(2)]
    for number, partition in enumerate(partitions, start=1):
        start_consumer(number, spark_remote=[own_spark_server.remote, spark_server.remote])
        driver.start([partition], driver.wait_for(ready_as(number)))
        driver.produce(partition, 0, 5_000)
    driver.wait_until_read(10_000)
    os.killpg(own_spark_server.child.pid, signal.SIGKILL)
    for partition in partitions:
        driver.produce(partition, 5_000, 5_000)
    driver.wait_until_read(20_000)
    assert verify(spark_server.remote, str(lake_root), [data_topic]) == dict.fromkeys(partitions, whole(10_000))
    incarnations = {report.consumer: report.incarnation for report in driver.reports}
    assert {report.incarnation for report in driver.reports} == set(incarnations.values()), "nobody began anew"


@pytest.mark.slow
def test_a_jvm_of_its_own_that_is_killed_ends_the_consumer_with_its_data_unread(
    driver: Driver,
    start_process: StartProcess,
    own_spark: dict[str, Any],
    spark_server: SharedSpark,
    lake_root: Path,
    data_topic: str,
) -> None:
    partition = TopicPartition(data_topic, 0)
    driver.produce(partition, 0, 20_000)
    process = start_process(1, **own_spark, give_up_after_s=30.0)  # so long it tries to have a session again
    driver.start([partition], driver.wait_for(ready))
    driver.wait_for(lambda report: report.cycle is not None)
    for child in psutil.Process(process.pid).children(recursive=True):
        child.kill()
    driver.produce(partition, 20_000, 5_000)  # it may have read all the others
    assert (process.wait(PATIENCE_S) or 0) > 0
    start_process(1)
    successor = driver.wait_for(lambda report: ready(report) and report.incarnation != driver.reports[0].incarnation)
    driver.start([partition], successor)
    driver.wait_until_committed({partition: 25_000})
    assert verify(spark_server.remote, str(lake_root), [data_topic]) == {partition: whole(25_000)}


@pytest.fixture
def own_broker(java: Java, tmp_path: Path) -> Iterator[Broker]:
    """One that the test may stop."""
    with Broker(tmp_path / "own-broker", jars=obtain(KAFKA), java=java) as broker:
        yield broker


@pytest.mark.slow(60)
def test_brokers_that_are_away_for_a_moment_cost_no_record_and_for_longer_than_the_lease_end_the_consumer(
    own_broker: Broker,
    unique_name: str,
    consumer_settings: dict[str, Any],
    consumer_arguments: Callable[[int], dict[str, Any]],
    spark_server: SharedSpark,
    lake_root: Path,
) -> None:
    partition = TopicPartition(f"{unique_name}.data", 0)
    metadata_topic = f"{unique_name}.metadata"
    Cluster(own_broker.bootstrap_servers).create({partition.topic: 1, metadata_topic: 2})
    driver = Driver(own_broker.bootstrap_servers, metadata_topic, unique_name)
    servers = {"bootstrap_servers": own_broker.bootstrap_servers}
    settings = {"settings": ConsumerSettings(**consumer_settings | {"lease_s": 30.0})}
    consumer = RunningConsumer(consumer_arguments(1) | servers | settings)
    driver.start([partition], driver.wait_for(ready))
    for number in range(2):
        driver.produce(partition, number * 5_000, 5_000)
        os.killpg(own_broker.child.pid, signal.SIGSTOP)
        time.sleep(3.0)
        os.killpg(own_broker.child.pid, signal.SIGCONT)
        driver.wait_until_read(5_000 * (number + 1))
    assert verify(spark_server.remote, str(lake_root), [partition.topic]) == {partition: whole(10_000)}
    os.killpg(own_broker.child.pid, signal.SIGSTOP)
    try:
        error = consumer.end()
    finally:
        os.killpg(own_broker.child.pid, signal.SIGCONT)
    driver.close()
    assert isinstance(error, LeaseError)
    assert "no report has reached the brokers" in str(error)
