"""What kcga would have saved since a group is watched: the whole controller, with the speeds that the group had.

Both are reckoned from the same write speeds and the same capacity: the group as it was, and a group of kcga's that
begins with the first speeds (`app.watch.decide.simulated_group`). So what waits is what waits for want of capacity or
of a reader; what either waits for its next fetch or commit is in neither.
"""

import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from app.watch.decide.simulated_group import SimulatedGroup
from controller.decide.question import Solve
from controller.settings import DEFAULT_HANDOVER_S, ControllerSettings
from domain.assignment import Assignment, ConsumerId
from domain.consumer_class import ConsumerClass
from domain.partitions import TopicPartition
from domain.speeds import Lag, WriteSpeeds

HOUR_S = 3_600.0


@dataclass(slots=True)
class Readership:
    """One of the two: how many consumers it had, and how long records waited."""

    capacity: float
    """Of an ordinary consumer, in bytes/s."""
    consumer_s: float = 0.0
    """Each consumer counts as its price."""
    waiting: dict[TopicPartition, float] = field(default_factory=dict)
    """Bytes of each partition that are written and not read."""
    waited: float = 0.0
    """Bytes times the seconds that they waited."""

    def pass_time(
        self,
        seconds: float,
        speeds: Mapping[TopicPartition, float],
        price: float,
        readers: Assignment,
        unread: Set[TopicPartition] = frozenset(),
        classes: Mapping[ConsumerId, ConsumerClass] = MappingProxyType({}),
    ) -> None:
        """So long consumers of this price read what is written at these speeds in bytes/s, but for `unread`.

        Those of which `classes` says nothing are ordinary.
        """
        self.consumer_s += seconds * price
        for partition, speed in speeds.items():
            self.waiting[partition] = self.waiting.get(partition, 0.0) + seconds * speed
        for consumer, held in readers.by_consumer.items():
            capacity = classes[consumer].capacity if consumer in classes else self.capacity
            read = [p for p in held if p in self.waiting and p not in unread]
            total = sum(self.waiting[p] for p in read)
            left = max(0.0, 1 - seconds * capacity / total) if total else 0.0
            for partition in read:
                self.waiting[partition] *= left
        self.waited += seconds * sum(self.waiting.values())

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """There are none of them any more: nothing of them waits."""
        for partition in partitions:
            self.waiting.pop(partition, None)


@dataclass(frozen=True, slots=True)
class Saving:
    """What there was since speeds were first known, beside what there would have been with kcga."""

    seconds: float
    consumers: int
    """That kcga would have now."""
    consumer_hours: float
    """Each consumer counts as its price, which is 1 of an ordinary one."""
    consumer_hours_with_kcga: float
    waited_s: float
    """A byte, on average."""
    waited_s_with_kcga: float


class Comparison:
    """Follows both, side by side.

    Args:
        settings: of the controller. A partition that it moves is not read for `handover_s`.
        solve: answers its questions.
    """

    def __init__(self, settings: ControllerSettings, solve: Solve) -> None:
        self._handover_s = DEFAULT_HANDOVER_S if settings.handover_s is None else settings.handover_s
        self._longest_s = settings.speeds_timeout_s
        self._group = SimulatedGroup(settings, solve)
        self._own = Readership(settings.consumer_capacity)
        self._with_kcga = Readership(settings.consumer_capacity)
        self._before: tuple[float, WriteSpeeds, int, Assignment] | None = None
        self._clock_s = self._written = 0.0
        self._unread_until: dict[TopicPartition, float] = {}

    def measured(self, at: float, speeds: WriteSpeeds, consumers: int, readers: Assignment) -> None:
        """From `at` on, in seconds since the epoch, there are so many consumers, and these speeds."""
        if not speeds.bytes_per_s:
            return
        if self._before is not None:
            self._count(at, *self._before)
        self._own.forget(speeds.gone)
        self._with_kcga.forget(speeds.gone)
        before = self._group.assignment
        lags = dict.fromkeys(speeds.bytes_per_s, Lag(0, 0.0, None))
        self._group.measured(self._clock_s, replace(speeds, measured_at=self._clock_s, lags=lags, origins={}))
        moved = (each.partition for each in before.migrations_to(self._group.assignment))
        self._unread_until |= dict.fromkeys(moved, self._clock_s + self._handover_s)
        self._before = at, speeds, consumers, readers

    def _count(self, at: float, since: float, speeds: WriteSpeeds, consumers: int, readers: Assignment) -> None:
        """What passed since the last measurement: nothing, where that is so long ago that nobody knows what was."""
        seconds = at - since
        if seconds > self._longest_s:
            return
        unread = {p for p, until in self._unread_until.items() if until > self._clock_s}
        self._own.pass_time(seconds, speeds.bytes_per_s, consumers, readers)
        planned, classes = self._group.assignment, self._group.classes
        price = math.fsum(each.price for each in classes.values())
        self._with_kcga.pass_time(seconds, speeds.bytes_per_s, price, planned, unread, classes)
        self._unread_until = {p: self._unread_until[p] for p in unread}
        self._clock_s += seconds
        self._written += seconds * speeds.total

    @property
    def saving(self) -> Saving | None:
        """None before two measurements."""
        if not self._clock_s:
            return None
        written = self._written or 1.0
        return Saving(
            seconds=self._clock_s,
            consumers=len(self._group.consumers),
            consumer_hours=self._own.consumer_s / HOUR_S,
            consumer_hours_with_kcga=self._with_kcga.consumer_s / HOUR_S,
            waited_s=self._own.waited / written,
            waited_s_with_kcga=self._with_kcga.waited / written,
        )
