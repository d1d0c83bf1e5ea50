"""The bin packing instance of one iteration, as the heuristics work on it: partitions and consumers by index.

Decides the order that everything else relies on, and the only time that anything is sorted by size.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from domain.assignment import NAME, Assignment, ConsumerId
from domain.partitions import TopicPartition
from domain.speeds import require_speed


@dataclass(frozen=True, slots=True)
class Items:
    """Item i is the partition with the i-th greatest speed; equal speeds stand in partition order.

    So a list of items in ascending order is one of decreasing sizes. Consumer c is the c-th lowest number of all that
    may be opened, so comparing indices compares numbers.
    """

    partitions: Sequence[TopicPartition]
    sizes: Sequence[float]
    """Of each item: its speed."""
    owners: Sequence[int | None]
    """Of each item: the consumer that has it now."""
    consumers: Sequence[ConsumerId]
    """The numbers of all consumers that may be opened: those that own an item, and enough others for all items."""
    first_new: int
    """The consumer with the lowest number that one without items may have."""
    capacity: float

    @property
    def owned_by(self) -> dict[int, list[int]]:
        """The items of each consumer that owns any; consumers and items in ascending order."""
        owned: dict[int, list[int]] = {}
        for item, owner in enumerate(self.owners):
            if owner is not None:
                owned.setdefault(owner, []).append(item)
        return dict(sorted(owned.items()))

    @property
    def unassigned(self) -> list[int]:
        """The items that no consumer owns, in ascending order."""
        return [item for item, owner in enumerate(self.owners) if owner is None]

    def assignment(self, consumer_of: Sequence[int]) -> Assignment:
        """The assignment that gives item i to consumer `consumer_of[i]`."""
        return Assignment(
            {
                partition: self.consumers[consumer]
                for partition, consumer in zip(self.partitions, consumer_of, strict=True)
            }
        )


def items_of(
    speeds: Mapping[TopicPartition, float], capacity: float, current: Assignment, first_consumer: ConsumerId
) -> Items:
    """The instance of one iteration; partitions of `current` without a speed are left aside.

    Raises:
        ValueError: a speed is negative, infinite or no number; the capacity is not above 0; a consumer is below 0.
    """
    if not (math.isfinite(capacity) and capacity > 0):
        raise ValueError(f"capacity is {capacity}: it must be a number of bytes/s above 0")
    if first_consumer < 0:
        raise ValueError(f"first_consumer is {first_consumer}: it must be 0 or more")
    for partition, speed in speeds.items():
        require_speed(speed, partition)

    by_name = sorted(speeds, key=NAME)
    partitions = sorted(by_name, key=speeds.__getitem__, reverse=True)  # which leaves equal ones in that order
    owners = [current.get(partition) for partition in partitions]
    owning = {owner for owner in owners if owner is not None}
    consumers = sorted(owning.union(range(first_consumer, first_consumer + len(partitions))))
    index_of = {consumer: index for index, consumer in enumerate(consumers)}
    return Items(
        partitions=partitions,
        sizes=[speeds[partition] for partition in partitions],
        owners=[None if owner is None else index_of[owner] for owner in owners],
        consumers=consumers,
        first_new=index_of.get(first_consumer, 0),
        capacity=capacity,
    )
