"""Health and metrics of the monitor."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prometheus_client import Counter, Gauge

from app.settings import Settings
from app.status.health import Health
from app.telemetry.exporter import Probes, served
from app.telemetry.process import process_registry
from domain.messages import WriteSpeedReport
from monitor.measure.changes import Standing

Observe = Callable[[WriteSpeedReport | None, Standing], None]

HUNG_S = 300.0
"""Longer than a round takes when every broker is away."""


@contextmanager
def observed(settings: Settings) -> Iterator[Observe]:
    """What is to be told of each round; serves what comes of it, where a port is set.

    Raises:
        KcgaError: the port cannot be had.
    """
    figures = MonitorFigures(freshness_s=settings.controller.speeds_timeout_s)
    probes = Probes(figures.alive, figures.ready, figures.registry)
    with served(settings.http, settings.http.monitor_port, probes):
        yield figures.tell


class MonitorFigures:
    """What the rounds amount to.

    Args:
        freshness_s: a report that is older is of no use to the controller.
        clock: monotonic, in seconds.
    """

    def __init__(self, freshness_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._freshness_s = freshness_s
        self._clock = clock
        self._round_at = clock()
        self._published_at: float | None = None
        self._trouble: str | None = None
        self.registry = registry = process_registry()
        self._rounds = Counter("kcga_monitor_rounds", "Rounds of measuring.", registry=registry)
        self._reports = Counter("kcga_monitor_reports", "Reports published.", registry=registry)
        self._partitions = Gauge("kcga_monitor_partitions", "Partitions of interest.", registry=registry)
        self._unknown = Gauge("kcga_monitor_partitions_unknown", "Those of unknown write speed.", registry=registry)
        self._leaderless = Gauge("kcga_monitor_partitions_leaderless", "Those without a leader.", registry=registry)
        self._missing = Gauge("kcga_monitor_topics_missing", "Topics that do not exist.", registry=registry)
        self._away = Gauge("kcga_monitor_brokers_away", "Brokers that do not answer.", registry=registry)
        self._by_offsets = Gauge(
            "kcga_monitor_topics_by_offsets",
            "Topics that are measured by end offsets and samples of records.",
            registry=registry,
        )
        self._unreadable = Gauge(
            "kcga_monitor_topics_unreadable", "Those of them that may not be read.", registry=registry
        )
        self._speed = Gauge(
            "kcga_monitor_write_speed_bytes_per_second", "Known write speed of all partitions.", registry=registry
        )
        self._measured = Gauge(
            "kcga_monitor_measured_timestamp_seconds", "When the newest report was made.", registry=registry
        )

    def tell(self, report: WriteSpeedReport | None, standing: Standing) -> None:
        """A round is over."""
        self._round_at = self._clock()
        self._rounds.inc()
        self._partitions.set(len(standing.partitions))
        self._unknown.set(len(standing.unknown))
        self._leaderless.set(len(standing.leaderless))
        self._missing.set(len(standing.missing))
        self._away.set(len(standing.brokers_away))
        self._by_offsets.set(len(standing.by_offsets))
        self._unreadable.set(len(standing.unreadable))
        self._trouble = standing.publishing_fails or standing.cluster_away
        if report is not None and standing.publishing_fails is None:
            self._published_at = self._round_at
            self._reports.inc()
            self._speed.set(report.speeds.total)
            self._measured.set(report.measured_at)

    def alive(self) -> Health:
        silent_s = self._clock() - self._round_at
        return Health(silent_s <= HUNG_S, f"the last round is {silent_s:.0f} s ago")

    def ready(self) -> Health:
        """Whether it publishes."""
        because = f": {self._trouble}" if self._trouble else ""
        if self._published_at is None:
            return Health(False, f"nothing was published yet{because}")
        age_s = self._clock() - self._published_at
        return Health(age_s <= self._freshness_s, f"the last report is {age_s:.0f} s ago{because}")
