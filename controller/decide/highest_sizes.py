"""The highest size of each partition over a window of the recent past, in bounded memory.

Time is cut into buckets; each keeps one number for each partition. What is asked for covers the whole window and at
most one bucket more, never less: a plan that fits it would have fitted at any moment of the window. Buckets begin at
the same moments for all who remember, however far back they do.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.decide.sizes import Size
from domain.partitions import TopicPartition

BUCKETS = 12
LEAST_S = 1e-9
"""Moments are told apart no better: a bucket that is shorter is one moment."""


@dataclass(slots=True)
class _Bucket:
    number: float
    newest: float
    highest: dict[TopicPartition, Size] = field(default_factory=dict)


class HighestSizes:
    """Remembers at most `BUCKETS` + 2 sizes of each partition.

    Args:
        window_s: how far back it remembers, 0 or more; with 0 only the newest sizes.
        longest_gap_s: after a longer time without sizes the past counts as unknown: what was not seen may have been
            high.
    """

    def __init__(self, window_s: float, longest_gap_s: float) -> None:
        self._window_s = window_s
        self._longest_gap_s = longest_gap_s
        self._buckets: deque[_Bucket] = deque()
        self.known_since: float | None = None
        """From when on sizes have come without a gap, in seconds since the epoch; None before the first."""

    def record(self, at: float, sizes: Mapping[TopicPartition, Size]) -> None:
        """Takes in the sizes that are the newest known at `at`, which must not go back."""
        last = self._buckets[-1] if self._buckets else None
        if last is None or at - last.newest > self._longest_gap_s:
            self.known_since = at
        width = self._window_s / BUCKETS
        number = at // width if width > LEAST_S else at
        if last is None or number > last.number:
            last = _Bucket(number, at)
            self._buckets.append(last)
        last.newest = at
        highest = last.highest
        for partition, size in sizes.items():
            known = highest.get(partition)
            if known is None or size.total >= known.total:  # among equals the newest
                highest[partition] = size
        # By buckets, not by `newest`: whoever was told a moment later forgets the same.
        oldest = number - BUCKETS if width > LEAST_S else number
        while self._buckets[0].number < oldest:
            self._buckets.popleft()

    def over(self, sizes: Mapping[TopicPartition, Size]) -> dict[TopicPartition, Size]:
        """The highest size of each of these partitions within the window, at least its present one in `sizes`."""
        highest = dict(sizes)
        for bucket in self._buckets:
            for partition, size in bucket.highest.items():
                known = highest.get(partition)
                if known is not None and size.total > known.total:
                    highest[partition] = size
        return highest
