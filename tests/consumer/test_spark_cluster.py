"""Consumers whose Spark Connect server has a standalone cluster do its work: what of that dies costs no record."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from app.errors import KcgaError, UsageError
from app.jars import DELTA, obtain
from app.java import Java
from consumer.verify import PartitionAccount, verify
from domain.messages import ConsumerReport, ConsumerState
from domain.partitions import TopicPartition
from sandbox.ports import LOOPBACK, free_port
from sandbox.server import Server
from sandbox.spark import SparkConnectServer
from tests.consumer.consumer_driver import Driver, StartConsumer
from tests.patience import wait_until
from tests.spark_cluster import SparkCluster

RECORDS = 2_000
"""Of a partition, at a time."""


@pytest.fixture
def cluster(java: Java, tmp_path: Path) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path / "cluster", java, workers=2) as cluster:
        yield cluster


def serves(server: Server) -> None:
    """Waits until it does."""
    wait_until(lambda: server.serves, lambda: server.child.tail(20))


@pytest.mark.slow(90)
@pytest.mark.integration
def test_a_worker_and_then_the_master_may_die_and_every_record_is_in_the_lake_once(
    driver: Driver,
    start_consumer: StartConsumer,
    cluster: SparkCluster,
    java: Java,
    lake_root: Path,
    data_topic: str,
    tmp_path: Path,
) -> None:
    partitions = {number: TopicPartition(data_topic, number) for number in (1, 2)}
    produced = 0

    def produce() -> None:
        nonlocal produced
        for partition in partitions.values():
            driver.produce(partition, produced, RECORDS)
        produced += RECORDS

    def all_read() -> None:
        driver.wait_until_read(len(partitions) * produced)

    def is_ready(number: int, report: ConsumerReport) -> bool:
        return report.consumer == number and report.state is ConsumerState.READY

    jars = obtain(DELTA)
    with SparkConnectServer(tmp_path / "connect", jars=jars, java=java, cluster=cluster.url) as spark:
        for number, partition in partitions.items():
            start_consumer(number, spark_remote=spark.remote)
            driver.start([partition], driver.wait_for(partial(is_ready, number)))
        produce()
        all_read()

        first, second = cluster.workers
        produce()
        first.kill()
        produce()
        all_read()
        first.begin_again()
        serves(first)

        produce()
        cluster.master.kill()
        produce()
        all_read()
        cluster.master.begin_again()
        serves(cluster.master)
        second.kill()  # what is left was begun before, and is known to the master that began anew
        produce()
        all_read()
        whole = PartitionAccount(rows=produced, distinct_offsets=produced, first_offset=0, last_offset=produced - 1)
        assert verify(spark.remote, str(lake_root), [data_topic]) == dict.fromkeys(partitions.values(), whole)


def test_what_names_no_cluster_and_one_that_is_not_there_are_one_clear_line(java: Java, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'local' names no Spark cluster: it must look like spark://host:7077"):
        SparkConnectServer(tmp_path, jars=[], java=java, cluster="local")
    absent = f"spark://{LOOPBACK}:{free_port()}"
    with pytest.raises(KcgaError, match=f"no Spark master answers at {absent}: .*; does it run?") as raised:
        SparkConnectServer(tmp_path, jars=[], java=java, cluster=absent).start()
    assert "\n" not in str(raised.value)
