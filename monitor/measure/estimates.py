"""Decides speeds and lags of all partitions of interest: a window for each, from its appearance to its end."""

import math
from collections.abc import Collection, Iterable, Mapping

from domain.partitions import TopicPartition
from domain.speeds import Lag
from monitor.measure.growth import LogMeasurement
from monitor.measure.window import SpeedWindow, WriteSpeed

LEAST_SHARE = 1 / 6
"""Of the window that has to be measured before there is a speed. Producers write in batches: a second alone may hold
none of them, or twice as many. A monitor that was just started would report steady partitions to be idle, or twice as
fast; unknown ones keep the speed that they had."""


class SpeedEstimates:
    """The windows of the partitions of interest."""

    def __init__(self, window_s: float, hold_s: float, *, follows_changes: bool = False) -> None:
        """
        Args:
            window_s: length of the windows.
            hold_s: how long a partition that is not measured keeps its last good speed, and what was committed counts.
            follows_changes: a partition that is written faster or slower than before has the speed of since then.
        """
        self.window_s = window_s
        self._hold_s = hold_s
        self._least_span_s = LEAST_SHARE * window_s
        self._follows_changes = follows_changes
        self._windows: dict[TopicPartition, SpeedWindow] = {}
        self._committed: Mapping[TopicPartition, int | None] = {}
        self._committed_at = -math.inf

    def follow(self, partitions: Collection[TopicPartition]) -> None:
        """These are of interest from now on, and no others: what was known of others is forgotten."""
        self._windows = {
            partition: self._windows.get(partition) or self._new_window() for partition in sorted(partitions)
        }

    def _new_window(self) -> SpeedWindow:
        return SpeedWindow(self.window_s, self._hold_s, self._least_span_s, follows_changes=self._follows_changes)

    def add(self, measurements: Iterable[tuple[TopicPartition, LogMeasurement]]) -> None:
        """Takes in new measurements; those of partitions that are of no interest are left aside."""
        for partition, measurement in measurements:
            if partition in self._windows:
                self._windows[partition].add(measurement)

    def commit(self, committed: Mapping[TopicPartition, int | None], at: float) -> None:
        """The group goes on at these offsets; None where it has committed nothing, left out where that is not known."""
        self._committed = committed
        self._committed_at = at

    def lags(self, at: float) -> dict[TopicPartition, Lag]:
        """How far the group is behind at the moment `at`, in ascending order; unknown lags are left out."""
        if at - self._committed_at > self._hold_s:
            return {}
        return {
            partition: behind
            for partition, window in self._windows.items()
            if partition in self._committed and (behind := window.lag(self._committed[partition], at)) is not None
        }

    def speeds(self, at: float) -> dict[TopicPartition, WriteSpeed | None]:
        """The speed of each partition of interest at the moment `at`, in ascending order; None where unknown."""
        return {partition: window.speed(at) for partition, window in self._windows.items()}
