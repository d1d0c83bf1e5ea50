"""Keeps the topics of interest up to date: the known ones at every call, the whole cluster once in a while."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from domain.speeds import WriteSpeeds
from monitor.measure.departed import Departed
from monitor.measure.interest import Interest, Topic, is_expression, topics_of_interest

_POLICY_REFRESH_S = 60.0
"""How soon a changed cleanup policy is noticed."""


class DescribedTopics(Protocol):
    """Whom to ask; see `monitor.cluster_logs.ClusterLogs`."""

    def topics(self, names: frozenset[str] | None = None) -> Mapping[str, Topic]: ...

    def existing(self, names: frozenset[str]) -> Mapping[str, Topic | None]: ...

    def compacted(self, topics: frozenset[str]) -> Mapping[str, bool]: ...


class Discovery:
    """The topics of interest, as they are at each call. One call at a time."""

    def __init__(
        self,
        cluster: DescribedTopics,
        wanted: tuple[str, ...],
        interval_s: float,
        own_topics: frozenset[str] = frozenset(),
        clock: Callable[[], float] = time.monotonic,
        told_before: Callable[[], WriteSpeeds | None] = lambda: None,
    ) -> None:
        """
        Args:
            cluster: whom to ask.
            wanted: names and expressions.
            interval_s: how often all topics are described, to find those that match an expression; a call in between
                describes the known ones alone, which costs as much as they are, not as much as the cluster is.
            own_topics: topics that no expression matches.
            clock: seconds; never goes back.
            told_before: what the monitor before this one told last, if anything; may raise BrokerAwayError, and is then
                asked again.
        """
        self._cluster = cluster
        self._wanted = wanted
        self._interval_s = interval_s
        self._own_topics = own_topics
        self._clock = clock
        self._told_before = told_before
        self._departed: Departed | None = None
        self._known: frozenset[str] = frozenset()
        self._discover_at = clock()
        self._compacted: dict[str, bool] = {}
        """By id of the topic."""
        self._refresh_policies_at = clock()

    def interest(self) -> Interest:
        """The topics of interest now.

        Raises:
            BrokerAwayError: no broker answered.
        """
        named = frozenset(topic for topic in self._wanted if not is_expression(topic))
        now = self._clock()
        if len(named) < len(self._wanted) and now >= self._discover_at:
            topics = self._cluster.topics()
            self._discover_at = now + self._interval_s
        else:
            topics = self._cluster.topics(named | self._known) if named | self._known else {}
        interest = topics_of_interest(self._wanted, topics, self._own_topics)
        self._known = frozenset(interest.topics)
        if self._departed is None:
            self._departed = Departed(self._wanted, self._own_topics, self._told_before())
        shown, departed = interest.leaders.keys(), self._departed
        doubtful = frozenset(partition.topic for partition in departed.hidden(shown))
        departed.judge(shown, self._cluster.existing(doubtful) if doubtful else {})
        return replace(
            interest,
            topics=self._with_cleanup_policies(interest.topics, now),
            hidden=departed.hidden(shown),
            gone=departed.gone,
        )

    def _with_cleanup_policies(self, topics: Mapping[str, Topic], now: float) -> dict[str, Topic]:
        refresh = now >= self._refresh_policies_at
        if refresh:
            self._refresh_policies_at = now + _POLICY_REFRESH_S
        answers = self._cluster.compacted(
            frozenset(name for name, topic in topics.items() if refresh or topic.topic_id not in self._compacted)
        )
        # A topic whose policy may not be read counts as not compacted: its speed then errs where it is.
        self._compacted = {
            topic.topic_id: answers.get(name, self._compacted.get(topic.topic_id, False))
            for name, topic in topics.items()
        }
        return {name: replace(topic, compacted=self._compacted[topic.topic_id]) for name, topic in topics.items()}
