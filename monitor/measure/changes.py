"""Decides what an operator should read: what is different from the round before, never what stayed the same."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from domain.partitions import TopicPartition


@dataclass(frozen=True, slots=True)
class Standing:
    """How things stand after a round."""

    partitions: frozenset[TopicPartition] = frozenset()
    """Of interest."""
    unknown: frozenset[TopicPartition] = frozenset()
    """Of interest, and without a speed."""
    leaderless: frozenset[TopicPartition] = frozenset()
    missing: frozenset[str] = frozenset()
    """Names and expressions that no topic answers to."""
    brokers_away: Mapping[int, str] = field(default_factory=dict)
    """Those of the leaders that tell no sizes, and why."""
    leaders: frozenset[int] = frozenset()
    """The brokers that lead partitions of interest."""
    cluster_away: str | None = None
    publishing_fails: str | None = None
    commits_unknown: str | None = None
    """Why the group's commits are not told."""
    by_offsets: Mapping[str, str] = field(default_factory=dict)
    """Topics that are measured by end offsets and samples of their records, and why not by sizes."""
    unreadable: frozenset[str] = frozenset()
    """Those of them whose records may not be read."""
    prometheus_away: str | None = None
    """Why Prometheus tells nothing, where it is asked."""
    untold: frozenset[TopicPartition] = frozenset()
    """Partitions that it knows nothing of."""


@dataclass(frozen=True, slots=True)
class Change:
    """One line of the log."""

    event: str
    is_trouble: bool = False
    details: Mapping[str, object] = field(default_factory=dict)


def changes(before: Standing, after: Standing) -> tuple[Change, ...]:
    """What happened from `before` to `after`: what is about all, then topics, brokers and partitions, ascending."""
    return (
        *_of_all(before, after),
        *_of_topics(before, after),
        *_of_brokers(before, after),
        *_of_methods(before, after),
        *_of_partitions(before, after),
    )


def _of_all(before: Standing, after: Standing) -> Iterator[Change]:
    yield from _fault(
        "the cluster cannot be reached, retrying", "the cluster is back", before.cluster_away, after.cluster_away
    )
    yield from _fault(
        "write speeds cannot be published, retrying",
        "write speeds are published again",
        before.publishing_fails,
        after.publishing_fails,
    )
    yield from _fault(
        "the group's commits are not told, its lag is not known",
        "the group's commits are told again",
        before.commits_unknown,
        after.commits_unknown,
    )


def _of_topics(before: Standing, after: Standing) -> Iterator[Change]:
    for topic in sorted(after.missing - before.missing):
        yield Change("no such topic, or no right to describe it", is_trouble=True, details={"topic": topic})
    for topic in sorted(before.missing - after.missing):
        yield Change("topic found", details={"topic": topic})


def _of_brokers(before: Standing, after: Standing) -> Iterator[Change]:
    for broker in sorted(after.brokers_away.keys() - before.brokers_away.keys()):
        yield Change(
            "a broker tells no sizes, its partitions are not measured",
            is_trouble=True,
            details={"broker": broker, "reason": after.brokers_away[broker]},
        )
    for broker in sorted(before.brokers_away.keys() - after.brokers_away.keys()):
        tells = broker in after.leaders
        event = "a broker tells its sizes again" if tells else "a broker that told no sizes leads nothing any more"
        yield Change(event, details={"broker": broker})


def _of_methods(before: Standing, after: Standing) -> Iterator[Change]:
    """How topics are measured."""
    for topic in sorted(after.by_offsets.keys() - before.by_offsets.keys()):
        yield Change(
            "a topic is measured by end offsets and samples of its records",
            details={"topic": topic, "reason": after.by_offsets[topic]},
        )
    for topic in sorted(before.by_offsets.keys() - after.by_offsets.keys()):
        if any(partition.topic == topic for partition in after.partitions):
            yield Change("a topic is measured by the sizes of its logs again", details={"topic": topic})
    for topic in sorted(after.unreadable - before.unreadable):
        event = "no right to read a topic: how large its records are is not known"
        yield Change(event, is_trouble=True, details={"topic": topic})
    yield from _fault(
        "Prometheus tells no sizes, retrying",
        "Prometheus tells sizes again",
        before.prometheus_away,
        after.prometheus_away,
    )


def _of_partitions(before: Standing, after: Standing) -> Iterator[Change]:
    known_before = before.partitions - before.unknown
    known_after = after.partitions - after.unknown
    has_leader = (before.leaderless - after.leaderless) & after.partitions
    yield from _partitions("Prometheus knows nothing of partitions", after.untold - before.untold, is_trouble=True)
    yield from _partitions("partitions appeared", after.partitions - before.partitions)
    yield from _partitions("partitions vanished", before.partitions - after.partitions)
    yield from _partitions("partitions have no leader", after.leaderless - before.leaderless, is_trouble=True)
    yield from _partitions("partitions have a leader again", has_leader)
    yield from _partitions("write speeds became unknown", known_before & after.unknown, is_trouble=True)
    yield from _partitions("write speeds are known", known_after - known_before)


def _fault(begins: str, ends: str, before: str | None, after: str | None) -> tuple[Change, ...]:
    if before is None and after is not None:
        return (Change(begins, is_trouble=True, details={"reason": after}),)
    if before is not None and after is None:
        return (Change(ends),)
    return ()


def _partitions(event: str, partitions: frozenset[TopicPartition], is_trouble: bool = False) -> tuple[Change, ...]:
    by_topic: dict[str, list[int]] = {}
    for partition in sorted(partitions):
        by_topic.setdefault(partition.topic, []).append(partition.partition)
    return tuple(
        Change(event, is_trouble, {"topic": topic, "partitions": _ranges(numbers)})
        for topic, numbers in by_topic.items()
    )


def _ranges(numbers: list[int]) -> str:
    """Ascending numbers, runs of them shortened: `0-3, 7`."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
