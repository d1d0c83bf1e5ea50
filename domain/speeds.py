"""How fast producers write to each partition, and when that was measured."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from domain.partitions import TopicPartition


def require_speed(speed: float, of: object = "a write speed") -> float:
    """`speed` itself, in bytes/s.

    Raises:
        ValueError: it is negative, infinite or no number.
    """
    if not (math.isfinite(speed) and speed >= 0):
        raise ValueError(f"the write speed of {of} is {speed}: it must be a number of bytes/s, 0 or more")
    return speed


@dataclass(frozen=True, slots=True)
class WriteSpeeds:
    """The write speed of each partition of interest, in bytes/s, as measured at one moment.

    A partition that is of interest and could not be measured is `unknown`; it is never given a speed of 0.

    Raises:
        ValueError: a speed is negative, infinite or no number, or a partition is both measured and unknown.
    """

    measured_at: float
    """Seconds since the epoch."""
    bytes_per_s: Mapping[TopicPartition, float]
    unknown: frozenset[TopicPartition] = field(default=frozenset())

    def __post_init__(self) -> None:
        for partition, speed in self.bytes_per_s.items():
            require_speed(speed, partition)
        if both := self.unknown & self.bytes_per_s.keys():
            raise ValueError(f"{min(both)} has a speed and is said to be unknown: it must be one of the two")

    @property
    def total(self) -> float:
        """The sum of the known speeds, in bytes/s."""
        return math.fsum(self.bytes_per_s.values())
