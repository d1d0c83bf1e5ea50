"""How fast producers write to each partition as time goes by: a story that repeats itself."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from domain.partitions import TopicPartition
from domain.speeds import require_speed

Corner = tuple[float, float]
"""A moment in seconds since the start, and the speed in bytes/s at that moment."""


@dataclass(frozen=True, slots=True)
class Course:
    """The speed of one partition: straight lines between corners; after the last corner it begins anew.

    Raises:
        ValueError: the first corner is not at 0 s, the moments do not rise, or a speed is negative or no number.
    """

    corners: tuple[Corner, ...]
    _bytes_before: tuple[float, ...] = field(init=False, repr=False, compare=False)
    """What is written before each corner."""

    def __post_init__(self) -> None:
        moments = [moment for moment, _ in self.corners]
        if len(moments) < 2 or moments[0] != 0 or not all(earlier < later for earlier, later in pairwise(moments)):
            raise ValueError(f"the corners are at {moments} s: there must be two at least, from 0 s on, each later")
        for _, speed in self.corners:
            require_speed(speed)
        areas = ((t2 - t1) * (v1 + v2) / 2 for (t1, v1), (t2, v2) in pairwise(self.corners))
        object.__setattr__(self, "_bytes_before", tuple(accumulate(areas, initial=0.0)))

    @property
    def period_s(self) -> float:
        return self.corners[-1][0]

    def speed(self, at_s: float) -> float:
        """In bytes/s, `at_s` seconds (0 or more) after the start."""
        into = at_s % self.period_s
        (t1, v1), (t2, v2) = self.corners[(line := self._line(into)) : line + 2]
        return v1 + (v2 - v1) * (into - t1) / (t2 - t1)

    def bytes_until(self, at_s: float) -> float:
        """All that is written in the first `at_s` seconds (0 or more): the integral of `speed`."""
        periods, into = divmod(at_s, self.period_s)
        line = self._line(into)
        t1, v1 = self.corners[line]
        return periods * self._bytes_before[-1] + self._bytes_before[line] + (into - t1) * (v1 + self.speed(into)) / 2

    def _line(self, into_s: float) -> int:
        return bisect_right(self.corners, into_s, hi=len(self.corners) - 1, key=lambda corner: corner[0]) - 1


@dataclass(frozen=True, slots=True)
class LoadProfile:
    """The course of each partition."""

    courses: Mapping[TopicPartition, Course]

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """In ascending order."""
        return tuple(sorted(self.courses))

    @property
    def period_s(self) -> float:
        """After which every course has begun anew."""
        return max(course.period_s for course in self.courses.values())

    @property
    def topics(self) -> dict[str, int]:
        """How many partitions each topic needs at least."""
        needed: dict[str, int] = {}
        for partition in self.partitions:
            needed[partition.topic] = max(needed.get(partition.topic, 0), partition.partition + 1)
        return needed

    def total_speed(self, at_s: float) -> float:
        """Of all partitions, in bytes/s."""
        return sum(course.speed(at_s) for course in self.courses.values())


_SHARES = {
    TopicPartition("orders", 0): 0.16,
    TopicPartition("orders", 1): 0.14,
    TopicPartition("orders", 2): 0.12,
    TopicPartition("orders", 3): 0.10,
    TopicPartition("clicks", 0): 0.15,
    TopicPartition("clicks", 1): 0.13,
    TopicPartition("clicks", 2): 0.11,
    TopicPartition("clicks", 3): 0.09,
}
"""What each partition has of the total while none is hot: uneven, as keys make it."""

DEMO_HOT = TopicPartition("clicks", 1)
"""The partition that runs hot."""

DEMO_PERIOD_S = 120.0
_CALM, _BUSY, _HOT = 0.6, 2.6, 0.95
"""In consumers: all partitions when calm, all when busy, the hot one alone."""
_OVERSIZED = 1.4
"""The same of a hot one that is too fast for a consumer."""


def demo_profile(consumer_capacity: float, prefix: str = "", *, oversized: bool = False) -> LoadProfile:
    """Two minutes in which more consumers are needed, then a lone one for a hot partition, then one again.

    Seconds 0-25 are calm: one consumer reads it all. From 25 to 40 the load rises to 2.6 consumers' capacity. From 45
    to 50 one partition turns hot and takes 0.95 of a consumer by itself: 3.2 together. From 65 to 75 all calms down.

    One that is `oversized` takes 1.4 of a consumer: 3.7 together. It calms down from 95 to 105, and all begins anew at
    150, so that a larger consumer has the time to come, to catch up, and to go, on a slow machine too.

    Args:
        consumer_capacity: what one consumer reads at most, in bytes/s.
        prefix: of the names of the topics.
        oversized: the hot partition is.
    """
    hot, hot_until_s = (_OVERSIZED, 95.0) if oversized else (_HOT, 65.0)
    period_s = DEMO_PERIOD_S + hot_until_s - 65

    def course(partition: TopicPartition, share: float) -> Course:
        calm, busy = share * _CALM, share * _BUSY
        peak: tuple[Corner, ...] = ((65, busy), (75, calm))
        if partition == DEMO_HOT:
            peak = ((45, busy), (50, hot), (hot_until_s, hot), (hot_until_s + 10, calm))
        corners: tuple[Corner, ...] = ((0, calm), (25, calm), (40, busy), *peak, (period_s, calm))
        return Course(tuple((moment, speed * consumer_capacity) for moment, speed in corners))

    return LoadProfile(
        {
            TopicPartition(prefix + partition.topic, partition.partition): course(partition, share)
            for partition, share in _SHARES.items()
        }
    )
