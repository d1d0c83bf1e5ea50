"""The monitor on a cluster of three brokers, of which one fails."""

import gc
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, NewTopic

from domain.messages import WriteSpeedReport
from domain.partitions import TopicPartition
from domain.speeds import Method
from monitor.runner import Monitor
from monitor.settings import MonitorSettings
from tests.broker_cluster import BrokerCluster
from tests.kafka_python import LEAVES_SOCKETS
from tests.monitor.running_monitor import Reports, running
from tests.patience import PATIENCE_S

TOPIC, SPEEDS = "orders", "speeds"
PARTITIONS = [TopicPartition(TOPIC, number) for number in range(3)]
"""Partition n is on broker n + 1 alone."""
THIRD = frozenset(PARTITIONS[2:])
LOADING = {KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR}


@contextmanager
def steady_load(bootstrap_servers: str) -> Iterator[None]:
    """Writes to all partitions, without end and without care for what becomes of it."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "acks": 1, "message.timeout.ms": 2000, "log_level": 0})
    stop = threading.Event()

    def write() -> None:
        while not stop.wait(0.05):
            for partition in PARTITIONS:
                producer.produce(TOPIC, bytes(1000), partition=partition.partition)
            producer.poll(0)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        producer.purge()
        producer.flush(5)


def commit_the_beginnings(group: Consumer) -> None:
    """The coordinator of a group that was never heard of may still be loading what it knows."""
    beginnings = [KafkaPartition(TOPIC, partition.partition, 0) for partition in PARTITIONS]
    deadline = time.monotonic() + 120
    while True:
        try:
            group.commit(offsets=beginnings, asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() not in LOADING or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def all_known(report: WriteSpeedReport) -> bool:
    """Each speed is positive, each lag known, and all of it is fresh."""
    speeds = report.speeds
    fresh = all(origin.age_s < 2 for origin in speeds.origins.values())
    written = all(speeds.bytes_per_s.get(partition, 0.0) > 0 for partition in PARTITIONS)
    return written and fresh and speeds.lags.keys() == set(PARTITIONS)


def third_unknown(report: WriteSpeedReport) -> bool:
    return report.speeds.unknown >= THIRD


@LEAVES_SOCKETS
@pytest.mark.slow(100)
def test_a_broker_that_hangs_or_dies_costs_its_own_partitions_freshness_and_no_others(
    broker_cluster: BrokerCluster, unique_name: str
) -> None:
    bootstrap_servers = broker_cluster.bootstrap_servers
    topics = [NewTopic(TOPIC, 3, replica_assignment=[[1], [2], [3]]), NewTopic(SPEEDS, 1, replica_assignment=[[1, 2]])]
    with AdminClient({"bootstrap.servers": bootstrap_servers}) as admin:
        for created in admin.create_topics(topics).values():
            created.result(timeout=PATIENCE_S)
    group = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": unique_name})
    commit_the_beginnings(group)
    group.close()
    settings = MonitorSettings(topics=(TOPIC,), interval_s=0.5, window_s=5, hold_s=15, request_timeout_s=2)
    reports = Reports(bootstrap_servers, SPEEDS)
    with steady_load(bootstrap_servers), running(Monitor(settings, bootstrap_servers, {}, SPEEDS, group=unique_name)):
        reports.until(all_known)
        third = broker_cluster.pids[3]
        for fault, mended in ((signal.SIGSTOP, signal.SIGCONT), (signal.SIGKILL, None)):
            os.kill(third, fault)
            while_away = reports.until(third_unknown)
            end_at = time.monotonic() + settings.hold_s
            while time.monotonic() < end_at:
                while_away.append(reports.next())
            ages = [[round(origin.age_s, 1) for origin in each.speeds.origins.values()] for each in while_away]
            for report in while_away:
                assert report.speeds.unknown <= THIRD, f"after {fault.name}; so old was what was known [s]: {ages}"
                assert {report.speeds.origins[partition].method for partition in PARTITIONS[:2]} == {
                    Method.STORED_BYTES
                }
            if mended is not None:
                os.kill(third, mended)
                reports.until(all_known)
    reports.close()
    gc.collect()
