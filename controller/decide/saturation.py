"""Partitions that are faster than a consumer, and what would help them: more partitions."""

import math
from collections.abc import Mapping, Set

from domain.messages import SaturatedPartition
from domain.partitions import TopicPartition


def saturated(
    speeds: Mapping[TopicPartition, float], named: Set[TopicPartition], capacity: float, packing_capacity: float
) -> tuple[SaturatedPartition, ...]:
    """The partitions that are faster than `capacity`, with the partitions that their topic would need.

    Kafka's producers choose a record's partition by its key's hash modulo the number of partitions. With n times as
    many partitions, the keys of each go to n of the new ones. So a topic with P partitions, one of which is as fast as
    k times `packing_capacity`, needs P * ceil(k). (A single key that is too fast for a consumer cannot be helped so.)

    Args:
        speeds: in bytes/s.
        named: all partitions of interest, those of unknown speed included.
        capacity: what a consumer reads at most, in bytes/s.
        packing_capacity: what a plan gives a consumer at most, in bytes/s.
    """
    fast = sorted(partition for partition, speed in speeds.items() if speed > capacity)
    partitions: dict[str, int] = {}
    for partition in named | speeds.keys() if fast else ():
        partitions[partition.topic] = partitions.get(partition.topic, 0) + 1
    return tuple(
        SaturatedPartition(
            topic=partition.topic,
            partition=partition.partition,
            speed=speeds[partition],
            partitions_needed=partitions[partition.topic] * math.ceil(speeds[partition] / packing_capacity),
        )
        for partition in fast
    )
