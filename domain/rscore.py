"""What a change of assignment costs."""

import math
from collections.abc import Iterable, Mapping

from domain.assignment import Migration
from domain.partitions import TopicPartition


def rscore(migrations: Iterable[Migration], speeds: Mapping[TopicPartition, float], capacity: float) -> float:
    """The Rscore of an iteration: the write speed of the partitions that move over a consumer's capacity (equation 1).

    It is the rate at which data piles up while they move, in consumers. First assignments do not count.

    Args:
        migrations: the partitions that had a consumer and now have another.
        speeds: their *new* write speeds, in bytes/s.
        capacity: what one consumer reads at most, in bytes/s, over 0.
    """
    return math.fsum(speeds[migration.partition] for migration in migrations) / capacity
