"""The monitor's loop: survey, compute, publish, and tell what changed."""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack

import structlog

from domain.messages import WriteSpeedReport
from domain.speeds import Origin, Source, WriteSpeeds
from domain.topics import WRITE_SPEED
from monitor.cluster_logs import ClusterLogs
from monitor.connection import kafka_python_arguments
from monitor.last_report import NotAllowedError, last_report
from monitor.measure.changes import Standing, changes
from monitor.measure.estimates import SpeedEstimates
from monitor.publisher import ReportPublisher
from monitor.settings import MonitorSettings
from monitor.survey import Survey, Surveyor

log = structlog.get_logger("monitor")


class Monitor:
    """Measures the write speeds of the partitions of interest and publishes them, until it is told to stop.

    A report names every partition of interest, with null for a speed that is not known, even where none is: then it
    still says that the monitor lives, and which partitions there are. What was named once, also by the monitor before
    this one, stays named until it is known to be gone (`monitor.measure.departed`). As long as it is not known which
    partitions are of interest, nothing is published.
    """

    def __init__(
        self,
        settings: MonitorSettings,
        bootstrap_servers: str,
        client_config: Mapping[str, str],
        write_speed_topic: str = WRITE_SPEED,
        own_topics: Collection[str] = (),
        group: str | None = None,
    ) -> None:
        """
        Args:
            settings: what to measure, and how often.
            bootstrap_servers: `host:port`, separated by commas.
            client_config: how to connect, in librdkafka's property names.
            write_speed_topic: where the reports go; it must exist.
            own_topics: what kcga's components talk through: matched by no expression.
            group: the consumer group whose lag is measured; None to leave all lags unknown.

        Raises:
            ConnectionSettingsError: `bootstrap_servers` or `client_config` is not understood.
        """
        kafka_python_arguments(bootstrap_servers, client_config)  # bad ones are told before anything is started
        self._settings = settings
        self._bootstrap_servers = bootstrap_servers
        self._client_config = client_config
        self._topic = write_speed_topic
        self._own_topics = frozenset(own_topics) | {write_speed_topic}
        self._group = group

    def run(
        self, stop: threading.Event, observe: Callable[[WriteSpeedReport | None, Standing], None] = lambda *_: None
    ) -> None:
        """Publishes a report each interval until `stop` is set; a cluster that is away is waited for.

        Args:
            stop: ends it.
            observe: is told of each round: what was published, if anything, and how things stand.

        Raises:
            ConnectionSettingsError: the Kafka client refuses its settings.
        """
        settings = self._settings
        estimates = SpeedEstimates(settings.window_s, settings.hold_s, follows_changes=settings.follow_changes)
        standing = Standing()
        with ExitStack() as resources:
            cluster = ClusterLogs(self._bootstrap_servers, self._client_config, settings.request_timeout_s)
            publisher = ReportPublisher(self._topic, self._bootstrap_servers, self._client_config)
            resources.callback(publisher.close)
            log.info("monitor started", topics=settings.topics, interval_s=settings.interval_s, reports_to=self._topic)
            surveyor = Surveyor(cluster, settings, self._own_topics, self._group, told_before=self._told_before)
            resources.callback(surveyor.close)
            resources.callback(cluster.close)  # called first: it ends what the surveyor's threads wait for
            for _ in rounds(settings.interval_s, stop):
                survey = surveyor.survey()
                report = report_of(survey, estimates)
                if report is not None:
                    publisher.publish(report.model_copy(update={"group": self._group}))
                before, standing = standing, standing_of(survey, report, publisher.fault)
                _tell(before, standing)
                observe(report, standing)
            log.info("monitor stopped")

    def _told_before(self) -> WriteSpeeds | None:
        """What the monitor before this one told last.

        Raises:
            BrokerAwayError: that cannot be read just now.
        """
        timeout_s = self._settings.request_timeout_s
        try:
            return last_report(self._topic, self._bootstrap_servers, self._client_config, timeout_s)
        except NotAllowedError as error:
            log.warning("what was of interest before is not known", reason=str(error))
            return None


def rounds(interval_s: float, stop: threading.Event) -> Iterator[None]:
    """One now, and one each interval from then on, until `stop` is set."""
    due_at = time.monotonic()
    while not stop.is_set():
        yield
        # A round that took too long is followed by the next one that is due, not by all that were missed.
        missed = max(0.0, time.monotonic() - due_at) // interval_s
        due_at += (missed + 1) * interval_s
        stop.wait(due_at - time.monotonic())


def report_of(survey: Survey, estimates: SpeedEstimates) -> WriteSpeedReport | None:
    """What a round comes to, once the estimates have taken it in; None while it is not known what is of interest."""
    if survey.interest is None:
        return None
    estimates.follow(survey.interest.leaders)
    estimates.add(survey.measurements)
    now = time.monotonic()
    if survey.committed is not None:
        estimates.commit(survey.committed, now)
    speeds = estimates.speeds(now)
    known = {partition: speed for partition, speed in speeds.items() if speed is not None}
    return WriteSpeedReport.of(
        WriteSpeeds(
            measured_at=time.time(),
            bytes_per_s={partition: speed.bytes_per_s for partition, speed in known.items()},
            unknown=frozenset(speeds.keys() - known.keys()) | survey.interest.hidden,
            origins={partition: Origin(speed.method, now - speed.measured_at) for partition, speed in known.items()},
            lags=estimates.lags(now),
            gone=survey.interest.gone,
            sources=survey.sources,
            window_s=estimates.window_s,
        )
    )


def standing_of(survey: Survey, report: WriteSpeedReport | None, publishing_fails: str | None = None) -> Standing:
    """How things stand after a round."""
    leaders = survey.interest.leaders if survey.interest else {}
    return Standing(
        partitions=frozenset(leaders),
        unknown=report.speeds.unknown if report else frozenset(),
        leaderless=frozenset(partition for partition, leader in leaders.items() if leader is None),
        missing=survey.interest.missing if survey.interest else frozenset(),
        brokers_away=survey.away,
        leaders=frozenset(leader for leader in leaders.values() if leader is not None),
        cluster_away=survey.cluster_away,
        publishing_fails=publishing_fails,
        commits_unknown=survey.commits_unknown,
        by_offsets={topic: by.because for by in survey.sources if by.source == Source.OFFSETS for topic in by.topics},
        unreadable=survey.unreadable,
        prometheus_away=survey.prometheus_away,
        untold=survey.untold,
    )


def _tell(before: Standing, after: Standing) -> None:
    for change in changes(before, after):
        if change.is_trouble:
            log.warning(change.event, **change.details)
        else:
            log.info(change.event, **change.details)
