"""The highest write speed of each partition over a window of the recent past, in bounded memory.

The window is cut into buckets; each keeps one number for each partition. What is asked for covers the whole window and
at most one bucket more, never less: a plan that fits it would have fitted at any moment of the window.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from domain.partitions import TopicPartition

BUCKETS = 12


@dataclass(slots=True)
class _Bucket:
    begins: float
    newest: float
    highest: dict[TopicPartition, float] = field(default_factory=dict)


class HighestSpeeds:
    """Remembers at most `BUCKETS` + 2 speeds of each partition.

    Args:
        window_s: how far back it remembers, 0 or more; with 0 only the newest speeds.
        longest_gap_s: after a longer time without speeds the past counts as unknown: what was not seen may have been
            high.
    """

    def __init__(self, window_s: float, longest_gap_s: float) -> None:
        self._window_s = window_s
        self._longest_gap_s = longest_gap_s
        self._buckets: deque[_Bucket] = deque()
        self._known_since: float | None = None

    @property
    def known_since(self) -> float | None:
        """From when on speeds have come without a gap, in seconds since the epoch; None before the first."""
        return self._known_since

    def record(self, at: float, speeds: Mapping[TopicPartition, float]) -> None:
        """Takes in the speeds, in bytes/s, that are the newest known at `at`, which must not go back."""
        last = self._buckets[-1] if self._buckets else None
        if last is None or at - last.newest > self._longest_gap_s:
            self._known_since = at
        if last is None or (at > last.begins and at >= last.begins + self._window_s / BUCKETS):
            last = _Bucket(at, at)
            self._buckets.append(last)
        last.newest = at
        highest = last.highest
        for partition, speed in speeds.items():
            if speed >= highest.get(partition, 0.0):
                highest[partition] = speed
        while self._buckets[0].newest < at - self._window_s:
            self._buckets.popleft()

    def over(self, speeds: Mapping[TopicPartition, float]) -> dict[TopicPartition, float]:
        """The highest speed of each of these partitions within the window, at least its present one in `speeds`."""
        highest = dict(speeds)
        for bucket in self._buckets:
            for partition, speed in bucket.highest.items():
                if speed > highest.get(partition, speed):
                    highest[partition] = speed
        return highest
