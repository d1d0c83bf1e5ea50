"""The sources of write speeds on a real cluster, whose rights are given and taken."""

import json
import random
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from confluent_kafka import Producer
from structlog.testing import capture_logs

from app.java import Java
from cli.rights import CLUSTER, Component, Resource, Right
from domain.messages import WriteSpeedReport
from domain.partitions import TopicPartition
from domain.speeds import Method, Source
from monitor.broker_logs import BrokerLogs
from monitor.cluster_logs import ClusterLogs
from monitor.measure.estimates import SpeedEstimates
from monitor.measure.growth import LogMeasurement
from monitor.prometheus import Prometheus
from monitor.runner import Monitor
from monitor.settings import MonitorSettings
from tests.cli.ordinary_group import producing
from tests.kafka_python import LEAVES_SOCKETS
from tests.monitor.running_monitor import Reports, running
from tests.patience import PATIENCE_S
from tests.secure_cluster import Cluster, produce, secure_cluster

pytestmark = [pytest.mark.integration, pytest.mark.slow(40), LEAVES_SOCKETS]

WINDOW = 10
"""Of the speeds that are compared: so many rounds, which are one second each by the clock of the test."""
SPEEDS = "speeds"
DESCRIBE_CLUSTER = Right(Component.MONITOR, Resource.CLUSTER, CLUSTER, ("Describe",))


def rights_on(topic: str, *operations: str) -> Right:
    return Right(Component.MONITOR, Resource.TOPIC, topic, operations)


@pytest.fixture(scope="module")
def cluster(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with secure_cluster(tmp_path_factory.mktemp("secure"), java) as cluster:
        yield cluster


LogsOf = Callable[[str], ClusterLogs]


@pytest.fixture
def logs_of(cluster: Cluster) -> Iterator[LogsOf]:
    """The logs as a user sees them."""
    made: list[ClusterLogs] = []

    def make(user: str) -> ClusterLogs:
        made.append(ClusterLogs(cluster.broker.bootstrap_servers, cluster.client(user), 60))
        return made[-1]

    yield make
    for each in made:
        each.close()


class Compared:
    """The speeds by both sources, of the same logs at the same moments: nothing is written while they are asked."""

    def __init__(self, logs_of: LogsOf, topic: str, partitions: int) -> None:
        self._topic = topic
        self._partitions = frozenset(TopicPartition(topic, number) for number in range(partitions))
        users = {Source.LOG_DIRS: "admin", Source.OFFSETS: "kcga-monitor"}
        settings = MonitorSettings(topics=(topic,))
        self._logs = {
            source: BrokerLogs(logs_of(user), 1, settings, Prometheus(settings), lambda: 0.0)
            for source, user in users.items()
        }
        self._estimates = {source: SpeedEstimates(WINDOW, WINDOW) for source in users}
        self._at = 0.0

    def measure(self) -> None:
        self._at += 1
        for source, logs in self._logs.items():
            told = logs.ask(self._partitions)
            assert told.source is source
            self._estimates[source].follow(self._partitions)
            self._estimates[source].add(
                (partition, LogMeasurement(self._at, "", 1, log.stored_bytes, log.offsets, sample=log.sample))
                for partition, log in told.logs.items()
            )

    def ratios(self) -> dict[int, float]:
        """The speed by offsets over that by log directories."""
        exact, sampled = (self._estimates[source].speeds(self._at) for source in (Source.LOG_DIRS, Source.OFFSETS))
        ratios = {}
        for partition, speed in exact.items():
            by_offsets = sampled[partition]
            assert speed is not None
            assert by_offsets is not None
            ratios[partition.partition] = by_offsets.bytes_per_s / speed.bytes_per_s
        return ratios


def value(chance: random.Random, size: int) -> bytes:
    """Text that compresses about as much as people's records do."""
    words = ("order", "click", "amount", "customer", "2026-11-24", "EUR")
    value = json.dumps({"id": chance.getrandbits(64), "of": [chance.choice(words) for _ in range(size // 10)]})
    return value.encode()


def round_of(chance: random.Random, partition: int, scale: int) -> list[bytes]:
    """Of each partition other sizes and another number: few and large, many and small, and anything in between."""
    match partition:
        case 0:
            return [value(chance, 20 * scale) for _ in range(chance.randint(500, 2_000))]
        case 1:
            return [value(chance, 8_000 * scale) for _ in range(chance.randint(5, 20))]
        case _:
            sizes = (round(20 * scale * chance.paretovariate(1.5)) for _ in range(chance.randint(200, 800)))
            return [value(chance, min(size, 20_000 * scale)) for size in sizes]


def batches_of(records: list[bytes], chance: random.Random, *, alike: bool) -> Iterator[list[bytes]]:
    """The records as producers send them: as many at once as they wait for, or whatever there is just then."""
    while records:
        most = 300 if alike else chance.choice((1, 1, 1, 2, 5, 20, 100, 300))
        yield records[:most]
        records = records[most:]


@pytest.mark.parametrize("compression", ["none", "gzip", "lz4", "zstd"])
@pytest.mark.parametrize("alike", [True, False], ids=["alike", "as it comes"])
def test_speeds_by_offsets_are_those_by_log_directories_also_when_records_are_suddenly_four_times_as_large(
    cluster: Cluster, logs_of: LogsOf, compression: str, alike: bool
) -> None:
    topic, chance = f"sizes-{compression}-{'alike' if alike else 'any'}", random.Random(1)
    cluster.make(3, topic)
    cluster.grant([rights_on(topic, "Read")])
    # A batch ends where the test says: what a producer finds in its queue, and so its batches, is another each time.
    settings = {"compression.type": compression, "linger.ms": 60_000, "batch.num.messages": 300}
    producer = Producer({**cluster.client("admin"), **settings})
    compared = Compared(logs_of, topic, 3)
    compared.measure()
    for scale in (1, 4):
        for _ in range(WINDOW):
            for partition in range(3):
                for batch in batches_of(round_of(chance, partition, scale), chance, alike=alike):
                    for record in batch:
                        producer.produce(topic, record, partition=partition)
                    assert producer.flush(300) == 0
            compared.measure()
        ratios = compared.ratios()
        assert all(abs(ratio - 1) < 0.1 for ratio in ratios.values()), ratios


def source_of(report: WriteSpeedReport) -> str | None:
    return report.sources[0].source if report.sources else None


def test_auto_changes_over_without_a_jump_when_a_right_comes_or_goes_and_commits_nothing(cluster: Cluster) -> None:
    topic, client = "changes", cluster.client("kcga-monitor")
    partition = TopicPartition(topic, 0)
    cluster.make(1, topic, SPEEDS)
    cluster.grant([rights_on(topic, "Describe"), rights_on(SPEEDS, "Read", "Write")])
    produce(cluster.client("admin"), topic, [b"x" * 10_000] * 1_000, 1)
    settings = MonitorSettings(
        topics=(topic,), interval_s=0.25, window_s=4, hold_s=3_600, discovery_interval_s=0.5, request_timeout_s=60
    )
    reports = Reports(cluster.broker.bootstrap_servers, SPEEDS, cluster.client("admin"))
    monitor = Monitor(settings, cluster.broker.bootstrap_servers, client, SPEEDS)
    with capture_logs() as lines, producing(cluster.client("admin"), topic, {0: 10_000}), running(monitor):
        reports.until(lambda _: any(line["event"].startswith("no right to read a topic") for line in lines))
        (*others, _) = reports.until(lambda report: partition not in report.speeds.bytes_per_s)
        assert not any(report.speeds.bytes_per_s[partition] for report in others), "no record came for a moment"
        cluster.grant([rights_on(topic, "Read")])
        (*_, report) = reports.until(lambda report: report.speeds.bytes_per_s.get(partition, 0) > 0)
        assert report.sources[0].source == "offsets"
        assert "the operation Describe on the resource Cluster" in report.sources[0].because
        for change, source, method in (
            (cluster.grant, "log_dirs", Method.STORED_BYTES),
            (lambda rights: cluster.revoke(*rights), "offsets", Method.END_OFFSETS),
        ):
            change([DESCRIBE_CLUSTER])
            for report in reports.until(partial(changed_over, partition, source, method)):
                # The log held a thousand times as much as is written each second: of two sources mixed, that comes out.
                assert report.speeds.bytes_per_s[partition] < 200_000
    reports.close()
    groups = {group.group_id for group in cluster.admin.list_consumer_groups().result(PATIENCE_S).valid}
    assert groups <= {SPEEDS}, "but for the group of whoever reads the reports"


def changed_over(partition: TopicPartition, source: str, method: Method, report: WriteSpeedReport) -> bool:
    return source_of(report) == source and report.speeds.origins[partition].method is method
