"""The monitor on a real broker: what it publishes, against what was produced."""

import socket
import statistics
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from kafka import KafkaAdminClient
from kafka.errors import IncompatibleBrokerVersion
from structlog.testing import capture_logs

from domain.messages import WriteSpeedReport
from domain.partitions import OffsetRange, TopicPartition
from domain.speeds import Lag, Method
from monitor.cluster_logs import BrokerAwayError, ClusterLogs, SizesDeniedError
from monitor.connection import ConnectionSettingsError
from monitor.measure.interest import Topic
from monitor.measure.samples import SAMPLE_BYTES, sample_of
from monitor.runner import Monitor
from monitor.settings import MonitorSettings
from tests.kafka_python import LEAVES_SOCKETS
from tests.monitor.running_monitor import Reports, running
from tests.patience import PATIENCE_S, wait_until
from tests.services import SharedBroker

pytestmark = LEAVES_SOCKETS

CreateTopic = Callable[..., str]
Lines = list[MutableMapping[str, Any]]


Monitoring = Callable[..., Reports]


@pytest.fixture
def monitoring(broker: SharedBroker, unique_name: str, create_topic: CreateTopic) -> Iterator[Monitoring]:
    """`monitoring("topic", window_s=4)` starts a monitor and returns its reports.

    It waits for slow brokers, and what it knows is known for as long as a test takes.
    """
    ends: list[Callable[[], object]] = []

    def start(*topics: str, **settings: float) -> Reports:
        write_speed = create_topic(f"speeds-{unique_name}")
        patient = {"hold_s": 3_600, "request_timeout_s": 60}
        values: dict[str, Any] = (
            {"topics": topics, "interval_s": 0.25, "discovery_interval_s": 0.5} | patient | settings
        )
        context = running(
            Monitor(MonitorSettings(**values), broker.bootstrap_servers, {}, write_speed, group=unique_name)
        )
        context.__enter__()
        ends.append(lambda: context.__exit__(None, None, None))
        reports = Reports(broker.bootstrap_servers, write_speed)
        ends.append(reports.close)
        return reports

    yield start
    for end in reversed(ends):
        end()


@pytest.fixture
def producer(broker: SharedBroker) -> Iterator[Producer]:
    with Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0}) as producer:
        yield producer


def write(producer: Producer, topic: str, count: int, partition: int = 0, record_bytes: int = 10_000) -> None:
    faults: list[object] = []
    for _ in range(count):
        producer.produce(
            topic,
            bytes(record_bytes),
            key=b"key",
            partition=partition,
            on_delivery=lambda error, _: faults.append(error) if error else None,
        )
    assert producer.flush(PATIENCE_S) == 0
    assert not faults


def speed(report: WriteSpeedReport, topic: str, partition: int = 0) -> float | None:
    return report.speeds.bytes_per_s.get(TopicPartition(topic, partition))


def knows(topic: str, partition: int = 0) -> Callable[[WriteSpeedReport], bool]:
    return lambda report: speed(report, topic, partition) is not None


def writes(topic: str) -> Callable[[WriteSpeedReport], bool]:
    return lambda report: (speed(report, topic) or 0.0) > 0


class Load:
    """Writes steadily to one partition, and knows how much it had written when."""

    RECORDS, RECORD_BYTES = 2, 10_000  # of each write
    LONGEST_PAUSE_S = 0.5

    def __init__(self, producer: Producer, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self._began: list[float] = []
        self._ended: list[float] = []

    @contextmanager
    def going_on(self) -> Iterator[None]:
        stop = threading.Event()
        with ThreadPoolExecutor(1) as threads:
            writing = threads.submit(self._write_until, stop)
            try:
                yield
            finally:
                stop.set()
            writing.result()

    def _write_until(self, stop: threading.Event) -> None:
        while not stop.wait(0.02):
            self._began.append(time.time())
            write(self._producer, self._topic, self.RECORDS, record_bytes=self.RECORD_BYTES)
            self._ended.append(time.time())

    def was_steady(self, at: float, window_s: float) -> bool:
        """Whether it wrote throughout the window that ended at `at`: neither it nor the broker stood still."""
        wait_until(lambda: self._ended and self._ended[-1] > at)
        ended = self._ended[max(0, bisect_right(self._ended, at - window_s) - 1) : bisect_right(self._ended, at) + 1]
        return ended[0] <= at - window_s and max(b - a for a, b in pairwise(ended)) < self.LONGEST_PAUSE_S

    @property
    def records(self) -> int:
        return len(self._ended) * self.RECORDS

    def speeds(self, at: float, window_s: float) -> tuple[float, float]:
        """The lowest and the highest that can have been measured in the window that ended at `at`, in bytes/s: what was
        begun and not ended by then may be in the log or not. Of keys and values alone."""
        (least, most), (least_before, most_before) = self._by(at), self._by(at - window_s)
        return (least - most_before) / window_s, (most - least_before) / window_s

    def _by(self, at: float) -> tuple[int, int]:
        """At least and at most so many bytes were in the log."""
        of_a_write = self.RECORDS * self.RECORD_BYTES
        return bisect_right(self._ended, at) * of_a_write, bisect_right(self._began, at) * of_a_write


def relative_errors(reports: Reports, load: Load, topic: str, window_s: float) -> list[float]:
    """How far each of ten speeds is from all that may be right. They are measured from now on, while it is written, in
    windows in which nobody stood still."""
    errors: list[float] = []
    now = time.time()
    while len(errors) < 10:
        report = reports.next()
        at = report.measured_at - report.speeds.origins[TopicPartition(topic, 0)].age_s
        if at >= now and load.was_steady(at, window_s):
            measured = speed(report, topic)
            assert measured
            lowest, highest = load.speeds(at, window_s)
            errors.append(max(lowest / measured - 1, measured / highest - 1, 0.0))
    return errors


def test_the_lag_of_the_group_is_published_from_its_first_commit_on(
    monitoring: Monitoring, create_topic: CreateTopic, broker: SharedBroker, producer: Producer, unique_name: str
) -> None:
    topic = create_topic(unique_name, partitions=2)
    written, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)
    write(producer, topic, 10)
    reports = monitoring(topic)
    (*_, last) = reports.until(lambda report: empty in report.speeds.lags)
    assert last.speeds.lags == {empty: Lag(0, 0.0, 0.0)}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": unique_name})
    consumer.commit(offsets=[KafkaPartition(topic, 0, 0)], asynchronous=False)
    (*_, last) = reports.until(lambda report: written in report.speeds.lags)
    first = last.speeds.lags[written]
    assert (first.records, first.seconds) == (10, None)
    assert 100_000 < first.bytes < 102_000
    consumer.commit(offsets=[KafkaPartition(topic, 0, 4)], asynchronous=False)
    consumer.close()
    (*_, last) = reports.until(lambda report: report.speeds.lags[written].records == 6)
    assert last.speeds.lags[written].bytes == pytest.approx(0.6 * first.bytes, rel=0.01)


def test_records_behind_a_transaction_that_is_open_are_no_lag_until_it_ends(
    monitoring: Monitoring, create_topic: CreateTopic, broker: SharedBroker, producer: Producer, unique_name: str
) -> None:
    """Among the holes that were not confirmed: a transaction that hangs at the tail was lag for ever."""
    topic = create_topic(unique_name)
    partition = TopicPartition(topic, 0)
    write(producer, topic, 10)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": unique_name})
    consumer.commit(offsets=[KafkaPartition(topic, 0, 10)], asynchronous=False)
    consumer.close()
    hangs = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": unique_name})
    hangs.init_transactions(PATIENCE_S)
    hangs.begin_transaction()
    write(hangs, topic, 1)
    write(producer, topic, 5)
    reports = monitoring(topic)
    (*_, last) = reports.until(lambda report: partition in report.speeds.lags)
    assert last.speeds.lags[partition].records == 0
    hangs.commit_transaction(PATIENCE_S)
    reports.until(lambda report: report.speeds.lags[partition].records == 7)  # with the marker that ends it


def test_each_speed_tells_how_and_when_it_was_measured(
    monitoring: Monitoring, create_topic: CreateTopic, admin: AdminClient, producer: Producer, unique_name: str
) -> None:
    topic = create_topic(unique_name, partitions=2)
    reports = monitoring(topic, window_s=300, interval_s=2)  # what is written and deleted stays in it, on slow machines
    (*_, last) = reports.until(knows(topic))
    origin = last.speeds.origins[TopicPartition(topic, 0)]
    assert origin.method is Method.STORED_BYTES
    assert 0 <= origin.age_s < PATIENCE_S
    write(producer, topic, 10)
    reports.until(writes(topic))
    for offset in range(1, 10):  # where brokers are too slow to tell offsets in a round, what went is not seen
        partition = KafkaPartition(topic, 0, offset)
        admin.delete_records([partition])[partition].result(timeout=PATIENCE_S)
        (*_, last) = [reports.next() for _ in range(3)]
        if last.speeds.origins[TopicPartition(topic, 0)].method is Method.END_OFFSETS:
            break
    assert last.speeds.origins[TopicPartition(topic, 0)].method is Method.END_OFFSETS
    assert last.speeds.origins[TopicPartition(topic, 1)].method is Method.STORED_BYTES


@pytest.mark.slow
def test_the_published_speed_is_what_was_produced(
    monitoring: Monitoring, create_topic: CreateTopic, producer: Producer, unique_name: str
) -> None:
    topic = create_topic(unique_name, partitions=2)
    reports = monitoring(topic, window_s=4, follow_changes=False)
    reports.until(knows(topic))
    load = Load(producer, topic)
    with load.going_on():
        assert statistics.median(relative_errors(reports, load, topic, window_s=4)) < 0.05
        assert speed(reports.next(), topic, 1) == 0


def test_new_partitions_and_topics_are_picked_up_without_a_restart(
    monitoring: Monitoring, create_topic: CreateTopic, admin: AdminClient, unique_name: str
) -> None:
    first = create_topic(f"{unique_name}-a")
    reports = monitoring(f"^{unique_name}-")
    reports.until(knows(first))
    admin.create_partitions([NewPartitions(first, 2)])[first].result(timeout=PATIENCE_S)
    reports.until(knows(first, 1))
    second = create_topic(f"{unique_name}-b")
    (*_, last) = reports.until(knows(second))
    assert last.speeds.bytes_per_s.keys() == {
        TopicPartition(first, 0),
        TopicPartition(first, 1),
        TopicPartition(second, 0),
    }


def test_a_new_topic_is_unknown_first_and_a_deleted_one_is_named_no_more(
    monitoring: Monitoring, create_topic: CreateTopic, admin: AdminClient, unique_name: str
) -> None:
    kept, deleted = create_topic(f"{unique_name}-a"), create_topic(f"{unique_name}-b")
    reports = monitoring(f"^{unique_name}-")
    first = reports.next().speeds
    assert not first.bytes_per_s
    assert first.unknown == {TopicPartition(kept, 0), TopicPartition(deleted, 0)}
    reports.until(knows(deleted))
    admin.delete_topics([deleted])[deleted].result(timeout=PATIENCE_S)
    reports.until(lambda report: {entry.topic for entry in report.partitions} == {kept})


def test_a_topic_that_does_not_exist_is_reported_once_and_the_others_are_measured(
    monitoring: Monitoring, create_topic: CreateTopic, unique_name: str
) -> None:
    with capture_logs() as lines:
        topic = create_topic(unique_name)
        reports = monitoring(topic, f"{unique_name}-missing")
        (*_, last) = reports.until(knows(topic))
        assert {entry.topic for entry in last.partitions} == {topic}
        reports.next()
    told = [line for line in lines if line["event"].startswith("no such topic")]
    assert [(line["log_level"], line["topic"]) for line in told] == [("warning", f"{unique_name}-missing")]


def test_a_recreated_topic_is_never_given_the_difference_of_two_logs(
    monitoring: Monitoring, create_topic: CreateTopic, admin: AdminClient, producer: Producer, unique_name: str
) -> None:
    topic = create_topic(unique_name)
    reports = monitoring(topic)
    reports.until(knows(topic))
    write(producer, topic, 200)
    reports.until(writes(topic))
    admin.delete_topics([topic])[topic].result(timeout=PATIENCE_S)
    recreated_after = time.time()
    create_topic(topic)
    for report in reports.until(lambda report: report.measured_at > recreated_after and speed(report, topic) == 0):
        known = speed(report, topic)
        assert known is None or known >= 0
    # Nothing was written to the new log: no speed of the old one may come back.
    for _ in range(5):
        assert speed(reports.next(), topic) in (0, None)


@pytest.mark.slow
def test_a_log_whose_start_moves_as_under_retention_keeps_its_speed(
    monitoring: Monitoring, create_topic: CreateTopic, admin: AdminClient, producer: Producer, unique_name: str
) -> None:
    topic = create_topic(unique_name)
    reports = monitoring(topic, window_s=4, follow_changes=False)
    reports.until(knows(topic))
    load = Load(producer, topic)
    with load.going_on():
        assert statistics.median(relative_errors(reports, load, topic, window_s=4)) < 0.05
        partition = KafkaPartition(topic, 0, load.records // 2)
        admin.delete_records([partition])[partition].result(timeout=PATIENCE_S)
        assert statistics.median(relative_errors(reports, load, topic, window_s=4)) < 0.05


@pytest.mark.slow(15)
def test_the_monitor_waits_for_a_cluster_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    existing = ClusterLogs.existing

    def counted(logs: ClusterLogs, names: Collection[str] | None) -> dict[str, Topic | None]:
        asked.append(names)
        return existing(logs, names)

    monkeypatch.setattr(ClusterLogs, "existing", counted)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{closed.getsockname()[1]}"
        settings = MonitorSettings(topics=("orders",), interval_s=0.1, request_timeout_s=5)
        with capture_logs() as lines, running(Monitor(settings, nobody, {})):
            told = wait_until(lambda: unreachable(lines))
            wait_until(lambda: len(asked) >= 3)
        assert len(told) == len(unreachable(lines)) == 1
        assert "Connection refused" in told[0]["reason"]


def unreachable(lines: Lines) -> Lines:
    return [line for line in lines if line["event"] == "the cluster cannot be reached, retrying"]


def test_a_property_that_the_kafka_client_does_not_know_is_one_clear_error() -> None:
    monitor = Monitor(MonitorSettings(topics=("orders",)), "127.0.0.1:1", {"no.such.property": "1"})
    with pytest.raises(ConnectionSettingsError, match=r"no\.such\.property"):
        monitor.run(threading.Event())


@pytest.mark.slow
def test_a_write_speed_topic_that_does_not_exist_is_told_and_the_monitor_goes_on(
    broker: SharedBroker, create_topic: CreateTopic, unique_name: str
) -> None:
    topic = create_topic(unique_name)
    settings = MonitorSettings(topics=(topic,), interval_s=0.1)
    with (
        capture_logs() as lines,
        running(Monitor(settings, broker.bootstrap_servers, {}, write_speed_topic=f"{unique_name}-missing")),
    ):
        told = wait_until(
            lambda: [line for line in lines if line["event"].startswith("write speeds cannot be published")]
        )
    assert f"{unique_name}-missing" in told[0]["reason"]


@pytest.fixture
def cluster(broker: SharedBroker) -> Iterator[ClusterLogs]:
    cluster = ClusterLogs(broker.bootstrap_servers, {}, request_timeout_s=PATIENCE_S)
    yield cluster
    cluster.close()


def test_the_logs_of_a_cluster_are_described_as_they_are(
    cluster: ClusterLogs, create_topic: CreateTopic, producer: Producer, unique_name: str
) -> None:
    topic = create_topic(unique_name, partitions=2, cleanup_policy="compact,delete")
    plain = create_topic(f"{unique_name}-plain")
    write(producer, topic, 3)
    (described,) = cluster.topics({topic, f"{topic}-missing"}).values()
    assert (described.name, described.leaders) == (topic, {0: 1, 1: 1})
    asked = {TopicPartition(topic, 0), TopicPartition(topic, 1), TopicPartition(topic, 2)}
    sizes = cluster.sizes(1, asked)
    assert sizes.keys() == {TopicPartition(topic, 0), TopicPartition(topic, 1)}
    assert 30_000 < sizes[TopicPartition(topic, 0)] < 32_000
    assert cluster.offsets(sizes.keys()) == {
        TopicPartition(topic, 0): OffsetRange(0, 3),
        TopicPartition(topic, 1): OffsetRange(0, 0),
    }
    assert cluster.compacted({topic, plain, f"{topic}-missing"}) == {topic: True, plain: False}


def test_a_fetch_brings_a_sample_of_each_partition_or_a_whole_batch_where_that_is_larger(
    cluster: ClusterLogs, create_topic: CreateTopic, producer: Producer, unique_name: str
) -> None:
    topic = create_topic(unique_name, partitions=4)
    empty, *others = (TopicPartition(topic, number) for number in range(4))
    for partition in others:
        write(producer, topic, 1, partition.partition, record_bytes=20 * SAMPLE_BYTES)
        write(producer, topic, 10, partition.partition, record_bytes=SAMPLE_BYTES)
    fetched = cluster.fetch(1, dict.fromkeys([empty, *others, TopicPartition(topic, 4)], 0))
    assert fetched.records.keys() == set(others)
    assert not fetched.refused
    for partition in others:
        first = sample_of(fetched.records[partition], end=1)
        assert first is not None
        assert first.records == 1
        assert 20 * SAMPLE_BYTES < first.bytes < 21 * SAMPLE_BYTES


def test_a_broker_that_knows_no_question_for_sizes_is_one_that_tells_none(
    cluster: ClusterLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def describe_log_dirs(*_: object, **__: object) -> None:
        raise IncompatibleBrokerVersion("Broker does not support DescribeLogDirsRequest")

    monkeypatch.setattr(KafkaAdminClient, "describe_log_dirs", describe_log_dirs)
    with pytest.raises(SizesDeniedError, match="does not know the request"):
        cluster.sizes(1, {TopicPartition("orders", 0)})


def test_a_topic_that_is_created_again_has_another_id(
    cluster: ClusterLogs, create_topic: CreateTopic, admin: AdminClient, unique_name: str
) -> None:
    create_topic(unique_name)
    before = cluster.topics({unique_name})[unique_name].topic_id
    admin.delete_topics([unique_name])[unique_name].result(timeout=PATIENCE_S)
    create_topic(unique_name)

    def is_another() -> bool:
        """The broker answers from what it has been told so far: of the first topic, of none, of the second."""
        found = cluster.topics({unique_name})
        return unique_name in found and found[unique_name].topic_id != before

    wait_until(is_another)


def test_a_broker_that_does_not_exist_is_away(cluster: ClusterLogs) -> None:
    with pytest.raises(BrokerAwayError, match="7"):
        cluster.sizes(7, {TopicPartition("orders", 0)})


def test_whoever_asks_after_the_end_is_told_so(cluster: ClusterLogs) -> None:
    cluster.close()
    with pytest.raises(BrokerAwayError, match="the connection was closed"):
        cluster.topics()
