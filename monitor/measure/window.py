"""Decides the write speed of one partition, and the group's lag: the queue of its measurements (section Monitor).

Invariant: a speed comes from two measurements of one log by one source, at most one window and at least a given time
apart. It is never negative, and it is None (unknown) where it cannot be known.

The queue holds, for each measurement, the bytes appended since the oldest: a sum that only grows, whatever happens to
the log's size. As long as nothing is deleted, it is the size itself, and the speed is the paper's
`(last size - first size) / time between them`. With `follows_changes` the first is where the newest rise or fall
begins.
"""

import math
from collections import deque
from dataclasses import dataclass
from itertools import pairwise

from domain.speeds import Lag, Method
from monitor.measure.growth import LogMeasurement, RecordSize, growth
from monitor.measure.lag import lag

STEADY_SHARE = 0.6
"""Of the least time that gives a speed: as much does where the log grew steadily."""
STEADY_STEPS = 3
STEADY = 1.5
"""The fastest of the steps is at most so many times as fast as the slowest."""
CHANGE_STEPS = 4
"""At least so many steps, each faster than so many before and all else in the window, are a rise; slower, a fall."""


@dataclass(frozen=True, slots=True)
class WriteSpeed:
    """A partition's write speed, how it was measured and when."""

    bytes_per_s: float
    method: Method
    """`END_OFFSETS` where any part of the window had to be measured so."""
    measured_at: float
    """When the newest of its measurements was taken."""


@dataclass(frozen=True, slots=True)
class _Entry:
    at: float
    appended_bytes: float
    """Since this window began to count; never less than in the entry before."""
    by_offsets: int
    """How many steps up to here were measured by end offsets."""


class SpeedWindow:
    """The measurements of one partition in the last `window_s`, and the speed that they give."""

    def __init__(
        self, window_s: float, hold_s: float, least_span_s: float = 0.0, *, follows_changes: bool = False
    ) -> None:
        """
        Args:
            window_s: measurements older than this, against the newest, are forgotten.
            hold_s: for how long the last good speed stands in where there is no fresh measurement.
            least_span_s: measurements of a shorter time give no speed: a moment's burst is none. Where the log grew
                steadily, step by step, `STEADY_SHARE` of it is enough.
            follows_changes: once each of the newest steps is faster than every one before, or each is slower, those
                before count no more.
        """
        self._window_s = window_s
        self._hold_s = hold_s
        self._least_span_s = least_span_s
        self._follows_changes = follows_changes
        self._changed_from: _Entry | None = None
        """Where the newest rise or fall begins."""
        self._entries: deque[_Entry] = deque()
        self._newest: LogMeasurement | None = None
        self._newest_with_offsets: LogMeasurement | None = None
        self._record_size = RecordSize()
        self._last_good: WriteSpeed | None = None

    def add(self, measurement: LogMeasurement) -> None:
        """Takes in a measurement; one that is not newer than the newest is left aside."""
        before = self._newest
        if before is not None and measurement.at <= before.at:
            return
        self._newest = measurement
        if measurement.offsets is not None:
            self._newest_with_offsets = measurement
        elif before is not None and measurement.topic_id != before.topic_id:
            self._newest_with_offsets = None
        if before is None:
            self._record_size = RecordSize.of(measurement)
            self._begin(measurement)
            return
        self._record_size = self._record_size.observe(before, measurement)
        appended = growth(before, measurement, self._record_size.bytes_per_record)
        if appended is None:
            if measurement.topic_id != before.topic_id:
                self._record_size = RecordSize.of(measurement)
                self._last_good = None
            self._begin(measurement)
            return
        last = self._entries[-1]
        self._entries.append(
            _Entry(
                measurement.at,
                last.appended_bytes + appended.bytes,
                last.by_offsets + (appended.method is Method.END_OFFSETS),
            )
        )
        while self._entries[0].at < measurement.at - self._window_s:
            self._entries.popleft()
        if self._follows_changes:
            self._changed_from = self._change() or self._changed_from
        self._last_good = self._measured() or self._last_good

    def speed(self, at: float) -> WriteSpeed | None:
        """The speed at the moment `at`, or None: too few measurements, or none within the last `hold_s`."""
        good = self._last_good
        return good if good is not None and at - good.measured_at <= self._hold_s else None

    def lag(self, committed: int | None, at: float) -> Lag | None:
        """How far the group is behind at the moment `at`, or None where nothing is committed, or the log's end is not
        known from the last `hold_s`.

        Args:
            committed: the offset that the group goes on at; None where it has committed nothing.
            at: as in `speed`.
        """
        log = self._newest_with_offsets
        if log is None or log.offsets is None or at - log.at > self._hold_s:
            return None
        speed = self.speed(at)
        return lag(
            log.offsets,
            log.stored_bytes,
            committed,
            bytes_per_record=self._record_size.bytes_per_record,
            bytes_per_s=speed.bytes_per_s if speed else None,
        )

    def _begin(self, measurement: LogMeasurement) -> None:
        self._changed_from = None
        self._entries.clear()
        self._entries.append(_Entry(measurement.at, 0.0, 0))

    def _measured(self) -> WriteSpeed | None:
        first, last = self._entries[0], self._entries[-1]
        if self._changed_from is not None and self._changed_from.at > first.at:
            first = self._changed_from
        elapsed_s = last.at - first.at
        if elapsed_s <= 0 or (elapsed_s < self._least_span_s and not self._is_steady(elapsed_s)):
            return None
        return WriteSpeed(
            bytes_per_s=(last.appended_bytes - first.appended_bytes) / elapsed_s,
            method=Method.END_OFFSETS if last.by_offsets > first.by_offsets else Method.STORED_BYTES,
            measured_at=last.at,
        )

    def _change(self) -> _Entry | None:
        """Where the steps begin that are a rise or a fall just now, as few as give a speed; None where none are."""
        begins, slowest, fastest = self._entries[-1], math.inf, -math.inf
        later_steps, earlier_steps, rises, falls = 0, 0, True, True
        for later, earlier in pairwise(reversed(self._entries)):
            rate = (later.appended_bytes - earlier.appended_bytes) / (later.at - earlier.at)
            if later_steps < CHANGE_STEPS or self._entries[-1].at - begins.at < self._least_span_s:
                begins, slowest, fastest, later_steps = earlier, min(slowest, rate), max(fastest, rate), later_steps + 1
                continue
            rises, falls, earlier_steps = rises and rate < slowest, falls and rate > fastest, earlier_steps + 1
            if not (rises or falls):
                return None
        return begins if earlier_steps >= CHANGE_STEPS else None

    def _is_steady(self, elapsed_s: float) -> bool:
        """Whether all that was measured of the log, if it is enough, are steps of about the same speed."""
        if elapsed_s < STEADY_SHARE * self._least_span_s or len(self._entries) <= STEADY_STEPS:
            return False
        rates = [
            (later.appended_bytes - earlier.appended_bytes) / (later.at - earlier.at)
            for earlier, later in pairwise(self._entries)
        ]
        return 0 < max(rates) <= STEADY * min(rates)
