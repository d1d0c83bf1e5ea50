"""Asks one broker how the logs grow that it leads, by the best source that it allows."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from domain.partitions import OffsetRange, TopicPartition
from domain.speeds import MeasuredBy, Source
from monitor.cluster_logs import BrokerAwayError, Fetched, SizesDeniedError
from monitor.measure.samples import Sample, Sampling
from monitor.prometheus import Prometheus, PrometheusAwayError
from monitor.settings import MonitorSettings

ASKED_FOR = "monitor.source says so"
"""Why a source is used that nobody had to be asked about."""


class AskedLogs(Protocol):
    """Whom to ask; see `monitor.cluster_logs.ClusterLogs`."""

    def sizes(self, broker: int, partitions: frozenset[TopicPartition]) -> Mapping[TopicPartition, int]: ...

    def offsets(self, partitions: frozenset[TopicPartition]) -> Mapping[TopicPartition, OffsetRange]: ...

    def fetch(self, broker: int, starts: Mapping[TopicPartition, int]) -> Fetched: ...


@dataclass(frozen=True, slots=True)
class Log:
    """What was told of one log."""

    stored_bytes: int | None
    """None where the source is offsets."""
    offsets: OffsetRange | None = None
    """None where the source is the log directories: they have none."""
    sample: Sample | None = None
    at: float | None = None
    """When, where that is another moment than of what was told besides."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the broker told at one moment."""

    at: float
    """Seconds on a clock that never goes back."""
    logs: Mapping[TopicPartition, Log]
    source: Source
    because: str = ""
    """Why it is this source; empty where it is the best."""
    unreadable: frozenset[str] = frozenset()
    """Topics whose records' size cannot be learned, since they may not be read."""
    untold: frozenset[TopicPartition] = field(default=frozenset())
    """Partitions that Prometheus knows nothing of."""


class BrokerLogs:
    """The logs that one broker leads. One question at a time."""

    def __init__(
        self,
        cluster: AskedLogs,
        broker: int,
        settings: MonitorSettings,
        prometheus: Prometheus,
        clock: Callable[[], float],
    ) -> None:
        """
        Args:
            cluster: whom to ask.
            broker: whose logs.
            settings: which source to use, and how soon sizes that were refused are asked for again.
            prometheus: who is asked where it is the source.
            clock: seconds; never goes back.
        """
        self._cluster = cluster
        self._broker = broker
        self._source = settings.source
        self._ask_again_s = settings.discovery_interval_s
        self._prometheus = prometheus
        self._clock = clock
        self._sampling = Sampling()
        self._refused: frozenset[TopicPartition] = frozenset()
        self._ask_sizes_at = clock()
        self.refusal = ASKED_FOR if self._source is Source.OFFSETS else ""
        """Why it is not asked for sizes each time; empty where it is."""

    def ask(self, partitions: frozenset[TopicPartition]) -> Told:
        """What it tells of these, which it leads.

        Raises:
            SizesDeniedError: it tells no sizes, and no other source may be used.
            BrokerAwayError: it did not answer, or Prometheus where that is the source.
        """
        if self._source is Source.PROMETHEUS:
            return self._by_prometheus(partitions)
        if self._source is not Source.OFFSETS and self._clock() >= self._ask_sizes_at:
            try:
                return self._by_sizes(partitions)
            except SizesDeniedError as error:
                if self._source is Source.LOG_DIRS:
                    raise
                self.refusal, self._ask_sizes_at = str(error), self._clock() + self._ask_again_s
        return self._by_offsets(partitions)

    def _by_sizes(self, partitions: frozenset[TopicPartition]) -> Told:
        asked_at = self._clock()
        sizes = self._cluster.sizes(self._broker, partitions)
        # They are from some moment between the question and the answer: the middle is half of that off at most.
        at = (asked_at + self._clock()) / 2
        self.refusal = ""
        logs = {partition: Log(size) for partition, size in sizes.items()}
        return Told(at, logs, Source.LOG_DIRS)

    def _by_prometheus(self, partitions: frozenset[TopicPartition]) -> Told:
        sizes = self._prometheus.sizes()
        logs = {each: Log(sizes[each].bytes, at=sizes[each].at) for each in partitions if each in sizes}
        return Told(self._clock(), logs, Source.PROMETHEUS, ASKED_FOR, untold=partitions - logs.keys())

    def _by_offsets(self, partitions: frozenset[TopicPartition]) -> Told:
        asked_at = self._clock()
        held = self._cluster.offsets(partitions)
        at = (asked_at + self._clock()) / 2
        starts = self._sampling.starts(held)
        fetched = self._cluster.fetch(self._broker, starts) if starts else Fetched({}, frozenset())
        samples = self._sampling.take(held, fetched.records)
        logs = {partition: Log(None, log, samples.get(partition)) for partition, log in held.items()}
        self._refused = (self._refused & held.keys() - starts.keys()) | fetched.refused
        unreadable = frozenset(partition.topic for partition in self._refused)
        return Told(at, logs, Source.OFFSETS, self.refusal, unreadable)


def first_look(
    cluster: AskedLogs, led: Mapping[int, frozenset[TopicPartition]], settings: MonitorSettings
) -> Iterator[Told]:
    """What a monitor that begins would be told: a broker that does not answer is left out.

    Args:
        cluster: whom to ask.
        led: the partitions that each broker leads.
        settings: as for `BrokerLogs`.

    Raises:
        SizesDeniedError: a broker tells no sizes, and no other source may be used.
        PrometheusAwayError: it is the source, and tells nothing.
    """
    prometheus = Prometheus(settings)
    for broker, partitions in led.items():
        try:
            yield BrokerLogs(cluster, broker, settings, prometheus, time.monotonic).ask(partitions)
        except (SizesDeniedError, PrometheusAwayError):
            raise
        except BrokerAwayError:
            continue


def sources_of(told: Iterable[Told]) -> tuple[MeasuredBy, ...]:
    """The sources that brokers were measured by, in ascending order."""
    topics: dict[tuple[Source, str], set[str]] = {}
    for each in told:
        topics.setdefault((each.source, each.because), set()).update(partition.topic for partition in each.logs)
    return tuple(
        MeasuredBy(source, tuple(sorted(of_source)), because)
        for (source, because), of_source in sorted(topics.items())
        if of_source
    )
