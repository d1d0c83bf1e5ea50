"""Sentinel: what makes the controller consider the assignment anew. Each trigger is a sentence for the operator."""

from collections.abc import Mapping

from controller.group import Group
from domain.assignment import Assignment
from domain.partitions import TopicPartition


def triggers(
    group: Group,
    desired: Assignment,
    speeds: Mapping[TopicPartition, float],
    consumer_capacity: float,
) -> tuple[str, ...]:
    """Why the assignment has to be considered before the interval is over; empty where it need not be.

    Args:
        group: the consumers and what they read.
        desired: what the last plan wanted.
        speeds: the newest known write speed of each partition, in bytes/s.
        consumer_capacity: in bytes/s.
    """
    return (
        *_overloaded(group.assignment, speeds, consumer_capacity),
        *_count("partition without a consumer", sorted(speeds.keys() - group.assignment.keys())),
        *_count("consumer is gone", sorted(desired.consumers - group.keys())),
    )


def _overloaded(assignment: Assignment, speeds: Mapping[TopicPartition, float], capacity: float) -> list[str]:
    """A consumer that has a single partition is left alone: nothing else can be taken from it."""
    return [
        f"consumer {consumer} has {load:,.0f} bytes/s to read, above its capacity of {capacity:,.0f}"
        for consumer, load in assignment.loads(speeds).items()
        if load > capacity and sum(1 for p in assignment.by_consumer[consumer] if speeds.get(p, 0.0) > 0) > 1
    ]


def _count(what: str, which: list[object] | list[TopicPartition] | list[int]) -> list[str]:
    if not which:
        return []
    more = f" and {len(which) - 3} more" if len(which) > 3 else ""
    return [f"{what}: {', '.join(map(str, which[:3]))}{more}"]
