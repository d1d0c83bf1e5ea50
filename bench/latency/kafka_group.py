"""Kafka's own group in the simulation: the classic protocol, with its range or its cooperative-sticky assignor.

A member learns of a rebalance with its next heartbeat, and takes part once its batch in hand is written; the rebalance
ends when all have. With range everyone stops reading everything when it takes part, and reads its new partitions when
the rebalance ends. With cooperative-sticky only what moves stops, when a first rebalance ends; it is read again when a
second has. The partitions of a consumer that leaves have no reader until the first ends.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from bench.latency.queues import NOBODY, Queues, Readers
from bench.latency.times import Times
from domain.assignment import Assignment
from domain.partitions import TopicPartition
from heuristics.kafka import kafka_assign

HEARTBEAT_S = 3.0
"""`heartbeat.interval.ms`, by default."""
SYNC_S = 0.1
"""What the broker takes to hand the assignments out, and a consumer to fetch."""

Scaling = Callable[[float, int, Queues], int]
"""`(now, consumers, queues)`: how many consumers there shall be; called every tick."""


def fixed(consumers: int) -> Scaling:
    """Always as many."""
    return lambda _now, _consumers, _queues: consumers


@dataclass(slots=True)
class _Rebalance:
    takes_part_at: dict[int, float]
    """When each member does."""
    ends_at: float
    is_second: bool
    """It hands out what the first took away."""
    follow: bool = False
    """Somebody came or went since it began, too late for this one."""


class KafkaGroup:
    """A group that subscribes to all topics; its first members are there and assigned when the run begins.

    Args:
        partitions: in the order of the queues.
        assignor: one of `KAFKA_ASSIGNORS`.
        consumers: how many there are at the beginning.
        scaling: how many there shall be.
        times: what it takes to begin, and to write a batch; each is drawn from these.
        seed: of the draws.
    """

    def __init__(
        self,
        partitions: Sequence[TopicPartition],
        assignor: str,
        consumers: int,
        scaling: Scaling,
        times: Times,
        seed: int,
    ) -> None:
        self.migrations = 0
        self._partitions = partitions
        self._assignor = assignor
        self._members = consumers
        self._scaling = scaling
        self._times = times
        self._chance = Random(seed)
        self._joins_at: list[float] = []
        """When those that were created and are no members yet become it."""
        self._assigned = kafka_assign(assignor, partitions, consumers)
        self._withheld: frozenset[TopicPartition] = frozenset()
        self._rebalance: _Rebalance | None = None
        self.readers: Readers = self._reading(self._assigned)

    @property
    def consumers(self) -> int:
        """How many exist, those that begin included."""
        return self._members + len(self._joins_at)

    def advance(self, now: float, queues: Queues) -> None:
        """Everything that happens until `now`."""
        joined = sum(1 for at in self._joins_at if at <= now)
        if joined:
            self._joins_at = [at for at in self._joins_at if at > now]
            self._members += joined
            self._begin_or_follow(now)
        self._resize(now, self._scaling(now, self.consumers, queues))
        self._revoke_eagerly(now)
        if self._rebalance is not None and now >= self._rebalance.ends_at:
            self._end(now, self._rebalance)

    def _resize(self, now: float, wanted: int) -> None:
        if wanted > self.consumers:
            self._joins_at += [now + self._draw(self._times.creation_s) for _ in range(wanted - self.consumers)]
        elif wanted < self.consumers:
            surplus = self.consumers - wanted
            cancelled = min(surplus, len(self._joins_at))
            self._joins_at = sorted(self._joins_at)[: len(self._joins_at) - cancelled]
            if leaving := surplus - cancelled:
                self._members -= leaving
                for gone in sorted(self._assigned.consumers)[self._members :]:
                    self.readers[self.readers == gone] = NOBODY
                self._begin_or_follow(now)

    def _begin_or_follow(self, now: float) -> None:
        if self._rebalance is None:
            self._begin(now, is_second=False)
        else:
            self._rebalance.follow = True

    def _begin(self, now: float, *, is_second: bool) -> None:
        takes_part_at = {
            member: now + self._chance.uniform(0.0, HEARTBEAT_S) + self._draw(self._times.stop_s)
            for member in sorted(self._assigned.consumers)[: self._members]
        }
        ends_at = max(takes_part_at.values(), default=now) + SYNC_S
        self._rebalance = _Rebalance(takes_part_at, ends_at, is_second)

    def _revoke_eagerly(self, now: float) -> None:
        if self._assignor == "kafka-range" and self._rebalance is not None:
            for member, at in self._rebalance.takes_part_at.items():
                if at <= now:
                    self.readers[self.readers == member] = NOBODY

    def _end(self, now: float, rebalance: _Rebalance) -> None:
        self._rebalance = None
        if not rebalance.is_second:
            before = self._assigned
            self._assigned = kafka_assign(self._assignor, self._partitions, self._members, before)
            moved = before.migrations_to(self._assigned)
            self.migrations += len(moved)
            staying = frozenset(sorted(before.consumers)[: self._members])
            revoked = frozenset(move.partition for move in moved if move.source in staying)
            self._withheld = revoked if self._assignor == "kafka-sticky" else frozenset()
        else:
            self._withheld = frozenset()
        self.readers = self._reading(self._assigned)
        if self._withheld:
            self._begin(now, is_second=True)
        elif rebalance.follow:
            self._begin(now, is_second=False)
        if self._rebalance is not None:
            self._rebalance.follow = rebalance.follow and self._rebalance.is_second

    def _reading(self, assigned: Assignment) -> Readers:
        return np.array([NOBODY if p in self._withheld else assigned[p] for p in self._partitions])

    def _draw(self, measured: Sequence[float]) -> float:
        return self._chance.choice(measured)
