"""Sentinel: what makes the controller consider the assignment anew."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

from controller.decide.sizes import Size
from domain.assignment import Assignment, ConsumerId
from domain.partitions import TopicPartition

SHOWN = 3
"""So many partitions or consumers are named in a sentence."""

Cause = tuple[str, ConsumerId | TopicPartition | None]


@dataclass(frozen=True, slots=True)
class Trigger:
    """A reason to leave Sentinel."""

    sentence: str
    """For the operator."""
    causes: frozenset[Cause]
    """What it is, apart from its figures: a trigger that changed nothing need not be answered again at once."""


INTERVAL = "interval"
REPLAN = Trigger("an operator asked for a plan", frozenset({("replan", None)}))


def interval_over(interval_s: float) -> Trigger:
    return Trigger(f"{interval_s:g} s have passed since the last decision", frozenset({(INTERVAL, None)}))


def placed(why: str) -> Trigger:
    """What was given to consumers by rule, for this reason, may have a better place."""
    return Trigger(why, frozenset({("placed", None)}))


def outdated(consumer: ConsumerId) -> Trigger:
    """It is to be replaced by one that begins as consumers begin now."""
    began = "began with another image, template or settings than consumers begin with now"
    return Trigger(f"consumer {consumer} {began}", frozenset({("outdated", consumer)}))


def nothing_to_read(idle_s: float) -> Trigger:
    """Nobody has to read any more."""
    sentence = f"nothing was written, and nothing was left to read, for {idle_s:g} s"
    return Trigger(sentence, frozenset({("idle", None)}))


def something_to_read(partitions: Set[TopicPartition]) -> Iterator[Trigger]:
    """Where nobody read, as there was nothing to read; the partitions that are not known to be quiet."""
    return _named("busy", "nobody read, and there is something to read", partitions)


def foreseen(
    desired: Assignment,
    grown: Mapping[TopicPartition, Size],
    capacity_of: Callable[[ConsumerId], float],
    largest: float,
    horizon_s: float,
) -> Iterator[Trigger]:
    """Consumers that will be above their capacity and are not yet; what they have can be taken from them, as above.

    Args:
        desired: who reads what once the last plan is carried out.
        grown: the newest known size of each partition, with what is foreseen.
        capacity_of: what a consumer reads at most, in bytes/s.
        largest: the same, of the largest that there may be.
        horizon_s: for how far ahead.
    """
    for consumer in _above(desired, {p: size.total for p, size in grown.items()}, capacity_of, largest):
        held = [p for p in desired.by_consumer[consumer] if p in grown]
        load = math.fsum(grown[p].total for p in held)
        growth, capacity = math.fsum(grown[p].foreseen for p in held), capacity_of(consumer)
        if growth > 0 and load - growth <= capacity:
            most = max(sorted(held), key=lambda p: grown[p].foreseen)
            yield Trigger(
                f"consumer {consumer} will have up to {load:,.0f} bytes/s to read in {horizon_s:g} s, above its "
                f"capacity of {capacity:,.0f}; it has {load - growth:,.0f} now, and most comes from {most}, which will "
                f"need up to {grown[most].total:,.0f}",
                frozenset({("foreseen", consumer)}),
            )


def triggers(
    desired: Assignment,
    sizes: Mapping[TopicPartition, Size],
    capacity_of: Callable[[ConsumerId], float],
    largest: float,
    unread: Set[TopicPartition] = frozenset(),
    vanished: Set[TopicPartition] = frozenset(),
    lost: Set[ConsumerId] = frozenset(),
    scheduled: int = 0,
) -> tuple[Trigger, ...]:
    """Why the assignment has to be considered before the interval is over; empty where it need not be.

    Args:
        desired: who reads what once the last plan is carried out.
        sizes: the newest known size of each partition.
        capacity_of: what a consumer reads at most, in bytes/s.
        largest: the same, of the largest that there may be.
        unread: partitions that it gives to nobody.
        vanished: partitions that were read and are not of interest any more.
        lost: consumers that had some of the unread partitions.
        scheduled: so many consumers a schedule wants at least now.
    """
    return (
        *_overloaded(desired, sizes, capacity_of, largest),
        *_named("unread", "partition without a consumer", unread),
        *_named("vanished", "partition is gone", vanished),
        *_named("lost", "consumer is gone", lost),
        *_fewer_than_scheduled(desired, min(scheduled, len(sizes))),
    )


def _overloaded(
    assignment: Assignment,
    sizes: Mapping[TopicPartition, Size],
    capacity_of: Callable[[ConsumerId], float],
    largest: float,
) -> Iterable[Trigger]:
    totals = {partition: size.total for partition, size in sizes.items()}
    for consumer, load in _above(assignment, totals, capacity_of, largest).items():
        backlog = math.fsum(sizes[p].backlog for p in assignment.by_consumer[consumer] if p in sizes)
        of_it = f", {backlog:,.0f} of them to catch up" if backlog >= 1 else ""
        capacity = capacity_of(consumer)
        sentence = f"consumer {consumer} has {load:,.0f} bytes/s to read{of_it}, above its capacity of {capacity:,.0f}"
        yield Trigger(sentence, frozenset({("overloaded", consumer)}))


def _above(
    assignment: Assignment,
    totals: Mapping[TopicPartition, float],
    capacity_of: Callable[[ConsumerId], float],
    largest: float,
) -> dict[ConsumerId, float]:
    """Who has more to read than it can, and how much.

    A consumer that has a single partition is left alone where none is larger: nothing else can be taken from it.
    """
    return {
        consumer: load
        for consumer, load in assignment.loads(totals).items()
        if load > (capacity := capacity_of(consumer))
        and (capacity < largest or sum(1 for p in assignment.by_consumer[consumer] if totals.get(p, 0.0) > 0) > 1)
    }


def _fewer_than_scheduled(assignment: Assignment, scheduled: int) -> Iterable[Trigger]:
    if (there := len(assignment.consumers)) < scheduled:
        have = "has" if there == 1 else "have"
        sentence = f"a schedule wants {scheduled} consumers or more now, and {there} {have} partitions"
        yield Trigger(sentence, frozenset({("scheduled", None)}))


def _named(kind: str, what: str, which: Set[TopicPartition] | Set[ConsumerId]) -> Iterator[Trigger]:
    if which:
        first = ", ".join(map(str, sorted(which)[:SHOWN]))
        more = f" and {len(which) - SHOWN} more" if len(which) > SHOWN else ""
        yield Trigger(f"{what}: {first}{more}", frozenset((kind, each) for each in which))
