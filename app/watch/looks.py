"""`kcga watch`: looks at a group that is not kcga's, round after round. It asks, and neither joins nor writes anything.

Speeds and lags are measured as the monitor measures them, who reads what is asked of the group's coordinator, and what
that means is `app.watch.decide.watcher`.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from app.access import client_config
from app.errors import KcgaError, UsageError
from app.settings import Settings
from app.watch.decide.membership import Membership, Protocol
from app.watch.decide.watcher import Moment, Watcher
from app.watch.membership import NoSuchGroupError, committed_topics, membership
from controller.decide.question import Solve
from domain.speeds import WriteSpeeds
from monitor.broker_logs import first_look
from monitor.cluster_logs import BrokerAwayError, ClusterLogs
from monitor.connection import ConnectionSettingsError
from monitor.measure.changes import Standing, changes
from monitor.measure.estimates import SpeedEstimates
from monitor.measure.interest import topics_of_interest
from monitor.prometheus import PrometheusAwayError
from monitor.runner import report_of, rounds, standing_of
from monitor.settings import MonitorSettings
from monitor.survey import Surveyor

BEGINS_WITHIN_S = 60.0
"""So long at most the first rebalance of a group is waited for."""
LOOK_EVERY_S = 0.5


class Look(NamedTuple):
    moment: Moment
    speeds: WriteSpeeds | None
    """As they were measured; None while it is not known what there is to measure."""


def look_at(settings: Settings, topics: tuple[str, ...], stop: threading.Event, solve: Solve) -> Iterator[Look]:
    """A look each interval, until `stop` is set. Whatever is away is waited for, once the first look was taken.

    Args:
        settings: the group and its cluster, how it is measured, and the controller whose advice is asked.
        topics: names and expressions, in place of those that settings name; none for those that the group reads.
        stop: ends it.
        solve: answers the controller's questions.

    Raises:
        UsageError: the clients refuse their settings.
        KcgaError: at first: no broker answers, there is no such group, it reads nothing, or a right is missing.
    """
    group = settings.kafka.group
    with ExitStack() as resources:
        cluster = _cluster(settings)
        resources.callback(cluster.close)
        with _answering(settings):
            topics = topics_of(cluster, group, topics, stop)
            _require_measurable(cluster, topics, settings.monitor)
        measured = settings.monitor.model_copy(update={"topics": topics})
        surveyor = Surveyor(cluster, measured, group=group)
        resources.callback(surveyor.close)
        resources.callback(cluster.close)  # called first: it ends what the surveyor's threads wait for
        estimates = SpeedEstimates(measured.window_s, measured.hold_s, follows_changes=measured.follow_changes)
        watcher = Watcher(group, settings.of_controller, solve)
        began_at, began = time.time(), time.monotonic()
        for _ in rounds(measured.interval_s, stop):
            survey = surveyor.survey()
            report = report_of(survey, estimates)
            troubles = list(_troubles(standing_of(survey, report)))
            found: Membership | None = None
            try:
                found = membership(cluster, group)
            except NoSuchGroupError as error:
                found = Membership(Protocol.CLASSIC, "Dead")
                troubles.append(str(error))
            except (BrokerAwayError, KcgaError) as error:
                troubles.append(f"who is in the group is not told: {error}")
            speeds = report.speeds if report is not None else None
            at = began_at + time.monotonic() - began
            yield Look(watcher.look(at, found, speeds, survey.committed, troubles), speeds)


def _cluster(settings: Settings) -> ClusterLogs:
    kafka = settings.kafka
    try:
        return ClusterLogs(kafka.bootstrap_servers, client_config(kafka), settings.monitor.request_timeout_s)
    except ConnectionSettingsError as error:
        raise UsageError(f"kafka.client: {error}") from error


@contextmanager
def _answering(settings: Settings) -> Iterator[None]:
    try:
        yield
    except PrometheusAwayError as error:
        raise KcgaError(f"write speeds cannot be measured: {error}") from error
    except BrokerAwayError as error:
        kafka = settings.kafka
        raise KcgaError(
            f"Kafka at {kafka.bootstrap_servers} does not tell how the group {kafka.group} stands: {error}; is it "
            "running, and has its user the rights that kcga acls prints for the watcher?"
        ) from error


def topics_of(cluster: ClusterLogs, group: str, named: tuple[str, ...], stop: threading.Event) -> tuple[str, ...]:
    """Those that are named, or that the group reads; a group that has just begun is waited for until that is known.

    Raises:
        BrokerAwayError: the group's coordinator did not answer.
        KcgaError: there is no such group, or it reads nothing.
    """
    deadline = time.monotonic() + BEGINS_WITHIN_S
    while True:
        found = membership(cluster, group)
        topics = named or tuple(sorted(found.topics or committed_topics(cluster, group)))
        if topics:
            return topics
        if found.settled or stop.is_set() or time.monotonic() > deadline:
            raise KcgaError(
                f"nobody in the group {group} reads a topic (it is {found.state}), and it has committed nothing: name "
                "topics by --topic"
            )
        stop.wait(LOOK_EVERY_S)


def _require_measurable(cluster: ClusterLogs, topics: tuple[str, ...], settings: MonitorSettings) -> None:
    """Who may not see topics or sizes learns it before anything is shown; a broker that is away is waited for later."""
    interest = topics_of_interest(topics, cluster.topics())
    if not interest.topics:
        raise KcgaError(f"no such topic, or no right to describe it: {', '.join(topics)}")
    for told in first_look(cluster, interest.led, settings):
        if told.unreadable:
            raise KcgaError(
                f"no right to read {', '.join(sorted(told.unreadable))}, where samples of records tell the write "
                f"speed, since {told.because}; kcga acls prints the rights that the watcher needs"
            )


def _troubles(standing: Standing) -> Iterator[str]:
    for change in changes(Standing(), standing):
        if change.is_trouble:
            details = ", ".join(f"{name}: {value}" for name, value in change.details.items())
            yield f"{change.event} ({details})"
