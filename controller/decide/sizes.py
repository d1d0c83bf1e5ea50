"""The size of a partition: what a consumer must have to spare for it, in bytes/s.

That is its write speed, and what it takes to drain its backlog within the recovery time. Without backlog, or with a
recovery time of 0, it is the paper's. Why a backlog counts no further than up to a consumer's capacity, and what else
follows: `docs/decisions/0008-backlog.md`.
"""

from collections.abc import Iterable
from typing import NamedTuple

from controller.decide.standing_lag import StandingLag
from domain.consumer_class import ConsumerClass
from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds


class Size(NamedTuple):
    """In bytes/s, all."""

    write_speed: float
    backlog: float = 0.0
    """What it takes to drain it in time."""
    foreseen: float = 0.0
    """What the write speed is to grow by until a plan is carried out."""

    @property
    def total(self) -> float:
        return self.write_speed + self.backlog + self.foreseen

    def growing_to(self, write_speed: float, capacity: float) -> "Size":
        """With the write speed that is foreseen, if it is to grow.

        A plan that is made early need not fail for what may come: foreseen is no more than a consumer reads, with its
        backlog.

        Args:
            write_speed: that is foreseen, in bytes/s.
            capacity: of the largest consumer, in bytes/s.
        """
        then = min(write_speed, capacity)
        if then <= self.write_speed:
            return self
        return Size(self.write_speed, min(self.backlog, capacity - then), then - self.write_speed)


def size(write_speed: float, behind: float, recovery_time_s: float, capacity: float) -> Size:
    """The size of a partition.

    Args:
        write_speed: in bytes/s.
        behind: the backlog, in bytes.
        recovery_time_s: within which it is to be drained; 0 leaves it out.
        capacity: what a consumer reads at most, in bytes/s. One that has the partition to itself cannot do more, so a
            backlog makes no partition larger than that: only writing too fast does. Where there are larger classes, it
            is that of the smallest that keeps up.
    """
    if recovery_time_s == 0:
        return Size(write_speed)
    return Size(write_speed, max(0.0, min(behind / recovery_time_s, capacity - write_speed)))


class Sizes:
    """The sizes of the partitions of interest, by what is known last of their write speeds and lags.

    Args:
        recovery_time_s: within which a backlog is to be drained; 0 leaves backlogs out.
        capacity: what an ordinary consumer reads at most, in bytes/s.
        classes: what others there are.
    """

    def __init__(self, recovery_time_s: float, capacity: float, classes: Iterable[ConsumerClass] = ()) -> None:
        self._recovery_time_s = recovery_time_s
        self.capacity = capacity
        self._larger = sorted(each.capacity for each in classes if each.capacity > capacity)
        self._write_speeds: dict[TopicPartition, float] = {}
        self._lags = StandingLag()
        self.fresh: frozenset[TopicPartition] = frozenset()
        """The partitions of which all that counts was known when speeds came last."""
        self.present: dict[TopicPartition, Size] = {}
        """Of the partitions that ever had a speed. What was not measured since counts as it was: nothing falls to 0."""

    def measured(self, speeds: WriteSpeeds) -> None:
        """Speeds and lags came."""
        self._write_speeds.update(speeds.bytes_per_s)
        self.fresh = frozenset(speeds.bytes_per_s)
        if self._recovery_time_s > 0:
            self._lags.record(speeds.measured_at, {partition: lag.bytes for partition, lag in speeds.lags.items()})
            self.fresh &= speeds.lags.keys()
        self.present = {
            # A lag that was never known is none that could be planned for; while it is not fresh, nothing shrinks.
            partition: size(speed, self._lags.of(partition) or 0.0, self._recovery_time_s, self._capacity_for(speed))
            for partition, speed in self._write_speeds.items()
        }

    def recalled(self, speeds: WriteSpeeds) -> None:
        """Speeds and lags that are the last known ones, and of any age."""
        self.measured(speeds)
        self.fresh = frozenset()

    def _capacity_for(self, speed: float) -> float:
        """Of a consumer that keeps up with a partition, an ordinary one if it does; of the largest where none does."""
        capacities = (self.capacity, *self._larger)
        return next((capacity for capacity in capacities if speed <= capacity), capacities[-1])

    def forget(self, partition: TopicPartition) -> None:
        """It is of no interest any more."""
        self._write_speeds.pop(partition, None)
        self.present.pop(partition, None)
        self._lags.forget(partition)
