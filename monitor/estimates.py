"""Decides the write speeds of all partitions of interest: a window for each, from its appearance to its end."""

from collections.abc import Collection, Iterable

from domain.partitions import TopicPartition
from monitor.growth import LogMeasurement
from monitor.window import SpeedWindow, WriteSpeed


class SpeedEstimates:
    """The windows of the partitions of interest."""

    def __init__(self, window_s: float, hold_s: float, interval_s: float) -> None:
        """
        Args:
            window_s: length of the windows.
            hold_s: how long a partition that is not measured keeps its last good speed.
            interval_s: from one measurement to the next, as planned.
        """
        self._window_s = window_s
        self._hold_s = hold_s
        self._least_span_s = interval_s / 2
        self._windows: dict[TopicPartition, SpeedWindow] = {}

    def follow(self, partitions: Collection[TopicPartition]) -> None:
        """These are of interest from now on, and no others: what was known of others is forgotten."""
        self._windows = {
            partition: self._windows.get(partition) or SpeedWindow(self._window_s, self._hold_s, self._least_span_s)
            for partition in sorted(partitions)
        }

    def add(self, measurements: Iterable[tuple[TopicPartition, LogMeasurement]]) -> None:
        """Takes in new measurements; those of partitions that are of no interest are left aside."""
        for partition, measurement in measurements:
            if partition in self._windows:
                self._windows[partition].add(measurement)

    def speeds(self, at: float) -> dict[TopicPartition, WriteSpeed | None]:
        """The speed of each partition of interest at the moment `at`, in ascending order; None where unknown."""
        return {partition: window.speed(at) for partition, window in self._windows.items()}
