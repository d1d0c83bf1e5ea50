"""A cluster made of plain values, for tests of what the monitor makes of a cluster's answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from domain.partitions import OffsetRange, TopicPartition
from monitor.cluster_logs import BrokerAwayError, Fetched, SizesDeniedError
from monitor.measure.interest import Topic


@dataclass
class FakeLogs:
    """Answers as `ClusterLogs` does, from what a test puts into it."""

    described: dict[str, Topic] = field(default_factory=dict)
    stored: dict[TopicPartition, int] = field(default_factory=dict)
    ranges: dict[TopicPartition, OffsetRange] = field(default_factory=dict)
    commits: dict[TopicPartition, int | None] = field(default_factory=dict)
    coordinator_away: bool = False
    compacted_topics: set[str] = field(default_factory=set)
    brokers_away: set[int] = field(default_factory=set)
    sizes_denied: bool = False
    unreadable: set[str] = field(default_factory=set)
    """Topics that the right to read is missing for."""
    kept: dict[TopicPartition, bytes] = field(default_factory=dict)
    """What a fetch finds, wherever it begins."""
    fetched_from: list[dict[TopicPartition, int]] = field(default_factory=list)
    is_away: bool = False
    withheld: set[str] = field(default_factory=set)
    """Topics that the right to describe is missing for."""
    asked_topics: list[frozenset[str] | None] = field(default_factory=list)
    asked_policies: list[frozenset[str]] = field(default_factory=list)

    def topics(self, names: frozenset[str] | None = None) -> Mapping[str, Topic]:
        self.asked_topics.append(names)
        if self.is_away:
            raise BrokerAwayError("nobody answers")
        asked = self.described.keys() if names is None else names
        return {name: topic for name, topic in self.described.items() if name in asked - self.withheld}

    def existing(self, names: frozenset[str]) -> Mapping[str, Topic | None]:
        return {name: self.described.get(name) for name in names - self.withheld}

    def compacted(self, topics: frozenset[str]) -> Mapping[str, bool]:
        if topics:
            self.asked_policies.append(topics)
        return {topic: topic in self.compacted_topics for topic in topics}

    def sizes(self, broker: int, partitions: frozenset[TopicPartition]) -> Mapping[TopicPartition, int]:
        if broker in self.brokers_away:
            raise BrokerAwayError(f"broker {broker} does not answer")
        if self.sizes_denied:
            raise SizesDeniedError("it shows no log directories")
        return {partition: self.stored[partition] for partition in partitions if partition in self.stored}

    def offsets(self, partitions: frozenset[TopicPartition]) -> Mapping[TopicPartition, OffsetRange]:
        return {partition: self.ranges[partition] for partition in partitions if partition in self.ranges}

    def fetch(self, broker: int, starts: Mapping[TopicPartition, int]) -> Fetched:
        if broker in self.brokers_away:
            raise BrokerAwayError(f"broker {broker} does not answer")
        self.fetched_from.append(dict(starts))
        refused = frozenset(partition for partition in starts if partition.topic in self.unreadable)
        return Fetched({p: self.kept[p] for p in starts.keys() & self.kept.keys() - refused}, refused)

    def close(self) -> None:
        """Holds nothing open."""

    def committed(self, group: str, partitions: frozenset[TopicPartition]) -> Mapping[TopicPartition, int | None]:
        if self.coordinator_away:
            raise BrokerAwayError(f"the coordinator of {group} does not answer")
        return {partition: self.commits[partition] for partition in partitions if partition in self.commits}


def topic(name: str, leaders: Mapping[int, int | None] | None = None, topic_id: str = "") -> Topic:
    """A topic whose one partition, unless `leaders` says otherwise, broker 1 leads."""
    return Topic(name=name, topic_id=topic_id or f"id of {name}", leaders=leaders or {0: 1})
