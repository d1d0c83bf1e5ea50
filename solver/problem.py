"""What is to be solved: the packing problem of one iteration."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from domain.assignment import Assignment, ConsumerId
from domain.partitions import TopicPartition
from domain.speeds import require_speed


@dataclass(frozen=True, slots=True)
class Problem:
    """Minimise `consumers + migration_weight * Rscore` over the assignments that give each partition one consumer.

    No consumer is given more than its capacity, unless a single partition is more than that: such a partition has a
    consumer of its own and is reported as saturated.

    Raises:
        ValueError: a value is outside its range.
    """

    speeds: Mapping[TopicPartition, float]
    """Bytes/s of every partition that must have a consumer."""
    capacity: float
    """What a consumer reads at most, in bytes/s."""
    current: Assignment = field(default_factory=Assignment)
    """Who reads what now; partitions that have no speed here are left aside."""
    migration_weight: float = 0.5
    """Lambda, in consumers per unit of Rscore."""
    first_consumer: ConsumerId = 1
    """The lowest number that a new consumer may have."""
    time_limit_s: float = 1.0
    """Of the whole call."""
    seed: int = 0

    def __post_init__(self) -> None:
        for partition, speed in self.speeds.items():
            require_speed(speed, partition)
        if not (math.isfinite(self.capacity) and self.capacity > 0):
            raise ValueError(f"capacity is {self.capacity}: it must be a number of bytes/s above 0")
        if not (math.isfinite(self.migration_weight) and self.migration_weight >= 0):
            raise ValueError(f"migration_weight is {self.migration_weight}: it must be a number, 0 or more")
        if not (math.isfinite(self.time_limit_s) and self.time_limit_s > 0):
            raise ValueError(f"time_limit_s is {self.time_limit_s}: it must be a number of seconds above 0")
