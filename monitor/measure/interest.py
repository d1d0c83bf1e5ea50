"""Decides which partitions are of interest: from the topics asked for and the topics that the cluster has."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from domain.partitions import TopicPartition
from domain.topics import is_kcgas


def is_expression(topic: str) -> bool:
    """Whether `topic` asks for all topics that match it, rather than for the one of that name."""
    return topic.startswith("^")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the cluster describes it."""

    name: str
    topic_id: str
    """Drawn when the topic is created: a topic that was deleted and created again has another."""
    leaders: Mapping[int, int | None]
    """The broker that leads each partition; None where no broker does."""
    internal: bool = False
    compacted: bool = False
    """Whether its cleanup policy lets records vanish from the middle of a log."""


@dataclass(frozen=True, slots=True)
class Interest:
    """The topics of interest, and what was asked for in vain."""

    topics: Mapping[str, Topic] = field(default_factory=dict)
    missing: frozenset[str] = frozenset()
    """Names that no topic has, and expressions that match no topic."""
    hidden: frozenset[TopicPartition] = frozenset()
    """Partitions that were of interest, are not shown, and are not known to be gone."""
    gone: frozenset[TopicPartition] = frozenset()
    """Partitions that were deleted, or are of interest no more."""

    @property
    def leaders(self) -> dict[TopicPartition, int | None]:
        """The partitions of interest, each with the broker that leads it."""
        return {
            TopicPartition(topic.name, partition): leader
            for topic in self.topics.values()
            for partition, leader in topic.leaders.items()
        }

    @property
    def led(self) -> dict[int, frozenset[TopicPartition]]:
        """The partitions that each broker leads."""
        led: dict[int, set[TopicPartition]] = {}
        for partition, leader in self.leaders.items():
            if leader is not None:
                led.setdefault(leader, set()).add(partition)
        return {broker: frozenset(partitions) for broker, partitions in led.items()}


def topics_of_interest(wanted: Iterable[str], topics: Mapping[str, Topic], own: Collection[str] = ()) -> Interest:
    """The topics that `wanted` names or matches.

    An expression matches neither internal topics (those that Kafka marks so, and those that begin with `__`) nor what
    components of kcga talk through: topics of this group, which are its `own`, and those of any other group that are
    called as they are by default. Whoever wants one of these has to name it.
    """
    found: dict[str, Topic] = {}
    missing = set()
    for asked in wanted:
        if is_expression(asked):
            matches = [
                topic
                for name, topic in topics.items()
                if re.match(asked, name)
                and not (topic.internal or name.startswith("__") or name in own or is_kcgas(name))
            ]
        else:
            matches = [topics[asked]] if asked in topics else []
        found.update((topic.name, topic) for topic in matches)
        if not matches:
            missing.add(asked)
    return Interest(topics={name: found[name] for name in sorted(found)}, missing=frozenset(missing))
