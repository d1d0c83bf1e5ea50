"""Asks all brokers at once, so that one that is dead or hangs costs only its own partitions.

No broker waits for another: each is asked again once it has answered, and a round takes what has come in.

What a broker tells counts only where the topic, described before it was asked and again after it answered, is one and
the same: of a topic that was deleted and created again in between, one log is never taken for the other.
"""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from domain.partitions import OffsetRange, TopicPartition
from domain.speeds import MeasuredBy, WriteSpeeds
from monitor.broker_logs import AskedLogs, BrokerLogs, Told, sources_of
from monitor.cluster_logs import BrokerAwayError
from monitor.discovery import DescribedTopics, Discovery
from monitor.measure.growth import LogMeasurement
from monitor.measure.interest import Interest, Topic
from monitor.prometheus import Prometheus, PrometheusAwayError
from monitor.settings import MonitorSettings

_BROKERS_AT_ONCE = 64


class MeasuredLogs(DescribedTopics, AskedLogs, Protocol):
    """Whom to ask; see `monitor.cluster_logs.ClusterLogs`."""

    def committed(self, group: str, partitions: frozenset[TopicPartition]) -> Mapping[TopicPartition, int | None]: ...


@dataclass(frozen=True, slots=True)
class Survey:
    """What one round found out."""

    interest: Interest | None
    """The newest known; None as long as the topics could not be described even once."""
    measurements: tuple[tuple[TopicPartition, LogMeasurement], ...] = ()
    """The fresh ones, those of each partition in the order in which they were taken."""
    away: Mapping[int, str] = field(default_factory=dict)
    """The brokers whose last answer was none, and why."""
    cluster_away: str | None = None
    """Why the topics could not be described the last time; None where they could."""
    committed: Mapping[TopicPartition, int | None] | None = None
    """Where the group goes on in each partition, None where it has committed nothing; as a whole None where the
    coordinator of the group has not answered in this round."""
    commits_unknown: str | None = None
    """Why its last answer was none; None where it was one."""
    sources: tuple[MeasuredBy, ...] = ()
    """Of the topics whose leaders have answered, in ascending order."""
    unreadable: frozenset[str] = frozenset()
    """Topics that are measured by offsets, and may not be read."""
    prometheus_away: str | None = None
    """Why Prometheus told nothing the last time; None where it did, or is not asked."""
    untold: frozenset[TopicPartition] = frozenset()
    """Partitions that it knows nothing of."""


@dataclass(frozen=True, slots=True)
class _Question:
    """What a broker was asked, and its answers to come."""

    topics: Mapping[str, Topic]
    """As they were known when it was asked."""
    told: Future[Told]
    offsets: Future[Mapping[TopicPartition, OffsetRange]] | None
    has_waited: bool = False
    """Its sizes have waited for a round for its offsets."""


@dataclass(frozen=True, slots=True)
class _Answer:
    topics: Mapping[str, Topic]
    broker: int
    told: Told
    offsets: Mapping[TopicPartition, OffsetRange]


class Surveyor:
    """Surveys the partitions of interest, round after round."""

    def __init__(
        self,
        cluster: MeasuredLogs,
        settings: MonitorSettings,
        own_topics: frozenset[str] = frozenset(),
        group: str | None = None,
        told_before: Callable[[], WriteSpeeds | None] = lambda: None,
    ) -> None:
        """
        Args:
            cluster: whom to ask, from several threads.
            settings: which topics, and how often.
            own_topics: topics that no expression matches.
            group: the consumer group whose commits are asked for; None for none.
            told_before: what the monitor before this one told last, if anything; may raise BrokerAwayError, and is then
                asked again.
        """
        self._cluster = cluster
        self._group = group
        self._discovery = Discovery(
            cluster, settings.topics, settings.discovery_interval_s, own_topics, told_before=told_before
        )
        self._logs_of = partial(
            BrokerLogs, cluster, settings=settings, prometheus=Prometheus(settings), clock=time.monotonic
        )
        self._brokers: dict[int, BrokerLogs] = {}
        self._told: dict[int, Told] = {}
        """The newest of each broker."""
        self._patience_s = settings.interval_s / 2
        self._threads = ThreadPoolExecutor(_BROKERS_AT_ONCE, thread_name_prefix="survey")
        self._interest: Interest | None = None
        self._description: Future[Interest] | None = None
        self._questions: dict[int, _Question] = {}
        self._late_offsets: dict[int, Future[Mapping[TopicPartition, OffsetRange]]] = {}
        """Asked with sizes that have been taken without them: answers to no question any more."""
        self._unconfirmed: list[_Answer] = []
        self._confirming: list[_Answer] = []
        """Came in before the description that is under way was asked for: it confirms them."""
        self._away: dict[int, str] = {}
        self._cluster_away: str | None = None
        self._prometheus_away: str | None = None
        self._commits: Future[Mapping[TopicPartition, int | None]] | None = None
        """What the group's coordinator was asked, and its answer to come."""
        self._commits_unknown: str | None = None

    def survey(self) -> Survey:
        """One round; waits for an interval at most, half of it for the sizes and half for the topics."""
        committed = None
        if self._interest is not None:
            led = self._interest.led
            self._ask_coordinator(self._interest)
            self._ask_brokers(led, self._interest.topics)
            self._collect_answers()
            committed = self._collect_commits()
            self._away = {broker: reason for broker, reason in self._away.items() if broker in led}
            self._told = {broker: told for broker, told in self._told.items() if broker in led}
        measurements = self._describe()
        return Survey(
            self._interest,
            measurements,
            away=dict(self._away),
            cluster_away=self._cluster_away,
            committed=committed,
            commits_unknown=self._commits_unknown,
            sources=sources_of(self._told.values()),
            unreadable=frozenset[str]().union(*(told.unreadable for told in self._told.values())),
            prometheus_away=self._prometheus_away,
            untold=frozenset[TopicPartition]().union(*(told.untold for told in self._told.values())),
        )

    def close(self) -> None:
        """Waits for the questions under way; close the cluster's connections first, and they end soon."""
        self._threads.shutdown(cancel_futures=True)

    def _ask_coordinator(self, interest: Interest) -> None:
        """Asks how far the group has committed, unless the answer is still to come."""
        if self._group is not None and self._commits is None:
            partitions = frozenset(interest.leaders)
            self._commits = self._threads.submit(self._cluster.committed, self._group, partitions)

    def _collect_commits(self) -> Mapping[TopicPartition, int | None] | None:
        """The coordinator's answer, where it has come in."""
        if self._commits is None or not self._commits.done():
            return None
        answer, self._commits = self._commits, None
        try:
            committed = answer.result()
        except BrokerAwayError as error:
            self._commits_unknown = str(error)
            return None
        self._commits_unknown = None
        return committed

    def _ask_brokers(self, led: Mapping[int, frozenset[TopicPartition]], topics: Mapping[str, Topic]) -> None:
        """Asks those that have answered what they were asked before."""
        self._late_offsets = {broker: late for broker, late in self._late_offsets.items() if not late.done()}
        for broker in led.keys() - self._questions.keys():
            if broker not in self._brokers:
                self._brokers[broker] = self._logs_of(broker)
            logs = self._brokers[broker]
            told = self._threads.submit(logs.ask, led[broker])
            asks_offsets = broker not in self._late_offsets and not logs.refusal
            offsets = self._threads.submit(self._cluster.offsets, led[broker]) if asks_offsets else None
            self._questions[broker] = _Question(topics, told, offsets)

    def _collect_answers(self) -> None:
        """Takes the sizes that have come in, with the offsets where those have come in too.

        It waits a moment for all of them, and for the commits. Sizes wait for their offsets until the next round: where
        brokers always take that long for them, no lag would ever be known.
        """
        awaited: list[Future[Any]] = [] if self._commits is None else [self._commits]
        for question in self._questions.values():
            awaited += [question.told] if question.offsets is None else [question.told, question.offsets]
        wait(awaited, timeout=self._patience_s)
        for broker, question in [(broker, asked) for broker, asked in self._questions.items() if asked.told.done()]:
            late = None if question.offsets is None or question.offsets.done() else question.offsets
            if late is not None and not question.has_waited:
                self._questions[broker] = replace(question, has_waited=True)
                continue
            del self._questions[broker]
            if late is not None:
                self._late_offsets[broker] = late
            try:
                told = question.told.result()
            except PrometheusAwayError as error:
                self._prometheus_away = str(error)
                continue
            except BrokerAwayError as error:
                self._away[broker] = str(error)
                continue
            self._away.pop(broker, None)
            self._prometheus_away = None
            self._told[broker] = told
            self._unconfirmed.append(_Answer(question.topics, broker, told, _offsets_in(question)))

    def _describe(self) -> tuple[tuple[TopicPartition, LogMeasurement], ...]:
        """Brings the interest up to date, and returns what that confirms."""
        if self._description is None:
            self._description = self._threads.submit(self._discovery.interest)
            self._confirming, self._unconfirmed = self._unconfirmed, []
        wait([self._description], timeout=self._patience_s)
        if not self._description.done():
            return ()
        description, self._description = self._description, None
        try:
            self._interest = description.result()
        except BrokerAwayError as error:
            self._cluster_away = str(error)
            return ()
        self._cluster_away = None
        return tuple(
            measurement for answer in self._confirming for measurement in _confirmed(answer, self._interest.topics)
        )


def _offsets_in(question: _Question) -> Mapping[TopicPartition, OffsetRange]:
    if question.offsets is None or not question.offsets.done():
        return {}
    try:
        return question.offsets.result()
    except BrokerAwayError:  # sizes alone say less, and enough as long as nothing is deleted
        return {}


def _confirmed(answer: _Answer, topics: Mapping[str, Topic]) -> list[tuple[TopicPartition, LogMeasurement]]:
    return [
        (
            partition,
            LogMeasurement(
                at=answer.told.at if log.at is None else log.at,
                topic_id=topic.topic_id,
                leader=answer.broker,
                stored_bytes=log.stored_bytes,
                offsets=log.offsets or answer.offsets.get(partition),
                compacted=topic.compacted,
                sample=log.sample,
            ),
        )
        for partition, log in answer.told.logs.items()
        if (topic := topics.get(partition.topic)) and topic.topic_id == answer.topics[partition.topic].topic_id
    ]
