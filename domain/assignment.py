"""Which consumer reads which partition, and what it takes to get from one assignment to another."""

import math
from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple, TypeVar, overload

from domain.partitions import TopicPartition

_Default = TypeVar("_Default")

ConsumerId = int
"""N, the number of a consumer: it reads its commands on partition N of `consumer.metadata`, where it is 1 or more."""
HIGHEST_CONSUMER = 10_000
"""No group can be asked for more consumers."""

NAME = attrgetter("topic", "partition")
"""The order of partitions, much faster than by their own comparison."""


class Migration(NamedTuple):
    """A partition that leaves one consumer for another: while it moves, nobody reads it."""

    partition: TopicPartition
    source: ConsumerId
    target: ConsumerId


class Assignment(Mapping[TopicPartition, ConsumerId]):
    """The consumer of each partition. Immutable; a partition has at most one consumer by construction."""

    def __init__(self, consumers: Mapping[TopicPartition, ConsumerId] | None = None) -> None:
        self._consumer_of = dict(consumers or {})

    def __getitem__(self, partition: TopicPartition) -> ConsumerId:
        return self._consumer_of[partition]

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._consumer_of)

    def __len__(self) -> int:
        return len(self._consumer_of)

    # These are Mapping's as well, only many times as slow: the controller needs them at every turn, of thousands.

    def __contains__(self, partition: object) -> bool:
        return partition in self._consumer_of

    def keys(self) -> KeysView[TopicPartition]:
        return self._consumer_of.keys()

    def items(self) -> ItemsView[TopicPartition, ConsumerId]:
        return self._consumer_of.items()

    def values(self) -> ValuesView[ConsumerId]:
        return self._consumer_of.values()

    @overload
    def get(self, partition: TopicPartition, /) -> ConsumerId | None: ...

    @overload
    def get(self, partition: TopicPartition, /, default: ConsumerId | _Default) -> ConsumerId | _Default: ...

    def get(
        self, partition: TopicPartition, /, default: ConsumerId | _Default | None = None
    ) -> ConsumerId | _Default | None:
        return self._consumer_of.get(partition, default)

    def __hash__(self) -> int:
        return hash(frozenset(self._consumer_of.items()))

    def __repr__(self) -> str:
        groups = (f"{consumer}: {{{', '.join(map(str, held))}}}" for consumer, held in self.by_consumer.items())
        return f"Assignment({', '.join(groups)})"

    @cached_property
    def by_consumer(self) -> Mapping[ConsumerId, tuple[TopicPartition, ...]]:
        """The partitions of each consumer that has any; consumers and partitions in ascending order."""
        held: dict[ConsumerId, list[TopicPartition]] = {}
        for partition, consumer in self._consumer_of.items():
            held.setdefault(consumer, []).append(partition)
        return {consumer: tuple(sorted(held[consumer], key=NAME)) for consumer in sorted(held)}

    @cached_property
    def consumers(self) -> frozenset[ConsumerId]:
        """The consumers that have a partition."""
        return frozenset(self.by_consumer)

    def loads(self, speeds: Mapping[TopicPartition, float]) -> dict[ConsumerId, float]:
        """What each consumer has to read, in the unit of `speeds`; a partition without a speed adds nothing."""
        return {
            consumer: math.fsum(speeds.get(partition, 0.0) for partition in held)
            for consumer, held in self.by_consumer.items()
        }

    def migrations_to(self, target: "Assignment") -> tuple[Migration, ...]:
        """The partitions that have a consumer here and another one in `target`, in ascending order.

        A partition without a consumer on either side is started or stopped, not migrated.
        """
        moved = [p for p, source in self._consumer_of.items() if target.get(p, source) != source]
        return tuple(Migration(p, self._consumer_of[p], target[p]) for p in sorted(moved, key=NAME))
