"""The highest size of each partition over a window of the recent past, in bounded memory.

Time is cut into buckets; each keeps one number for each partition. What is asked for covers the whole window and at
most one bucket more, never less: a plan that fits it would have fitted at any moment of the window. Buckets begin at
the same moments for all who remember, however far back they do, and go by when speeds were measured: whoever hears them
later remembers the same.
"""

import math
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
    highest: dict[TopicPartition, Size] = field(default_factory=dict)


class HighestSizes:
    """Remembers at most `BUCKETS` + 2 sizes of each partition.

    Args:
        window_s: how far back it remembers, 0 or more; with 0 only the newest sizes.
        longest_gap_s: after a longer time without sizes the past counts as unknown: what was not seen may have been
            high. It is so, too, where the clock that they are measured by goes on, or back, by more than this.
    """

    def __init__(self, window_s: float, longest_gap_s: float) -> None:
        self._window_s = window_s
        self._longest_gap_s = longest_gap_s
        self._buckets: deque[_Bucket] = deque()
        self._newest_at = self._newest_measured_at = -math.inf
        self.known_since: float | None = None
        """From when on sizes have come without a gap, in seconds since the epoch; None before the first."""

    def record(self, at: float, measured_at: float, sizes: Mapping[TopicPartition, Size]) -> None:
        """Takes in the newest sizes.

        Args:
            at: when they came, which must not go back.
            measured_at: when, by the clock of who measured them; that of the next one may be another.
            sizes: of all partitions.
        """
        gap_s, passed_s = self._longest_gap_s, measured_at - self._newest_measured_at
        if passed_s < -gap_s:
            self._buckets.clear()
            self._newest_measured_at = measured_at
        if not self._buckets or max(passed_s, at - self._newest_at) > gap_s:
            self.known_since = at
        self._newest_at, self._newest_measured_at = at, max(self._newest_measured_at, measured_at)
        width = self._window_s / BUCKETS
        number = measured_at // width if width > LEAST_S else measured_at
        if not self._buckets or number > self._buckets[-1].number:
            self._buckets.append(_Bucket(number))
        highest = self._buckets[-1].highest
        for partition, size in sizes.items():
            known = highest.get(partition)
            if known is None or size.total >= known.total:  # among equals the newest
                highest[partition] = size
        newest = self._buckets[-1].number
        oldest = newest - BUCKETS if width > LEAST_S else newest
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
