"""How fast each partition will be written when a plan that is made now is carried out, where its own past proves it.

A line through the newest minute of a partition's speeds counts only while its error over the horizon, tracked on that
very partition, is at most `PROVEN` of the error of the newest speed. What is foreseen is then the upper quantile of the
line, by the errors that it had. Where nothing is proven, nothing is foreseen.
"""

import math
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from domain.partitions import TopicPartition

HORIZON_S = 25.0
"""Half of the monitor's window, by which its speeds are late, and what a plan takes to be carried out and followed by
another. To be: as measured in the group."""
EVERY_S = 5.0
"""Speeds are taken in so often."""
LINE_S = 60.0
"""What the line goes through."""
PROVEN = 0.6
QUANTILE = 0.9
LEAST_SCORED = 8
"""So many forecasts of a partition have come due before one counts."""
LEAST_HELD = 0.8
"""A quantile that has held less often lately does not count."""
MEMORY = 0.1
"""The share of the newest error in what is tracked."""


STEP, MOST_ABOVE = 0.5, 4.0
"""By how much the quantile moves at most, and what it is at most, in errors."""


@dataclass(slots=True)
class _Foreseen:
    due: float
    last: float
    line: float
    upper: float


@dataclass(slots=True)
class _Track:
    """Of one partition."""

    samples: deque[tuple[float, float]] = field(default_factory=deque)
    foreseen: deque[_Foreseen] = field(default_factory=deque)
    error_of_last: float = 0.0
    error_of_line: float = 0.0
    above: float = 1.0
    """What the upper quantile is above the line, in errors of the line: it shrinks with them."""
    held: float = QUANTILE
    """How often it held lately, as a share."""
    scored: int = 0

    @property
    def is_proven(self) -> bool:
        enough, newest = self.scored >= LEAST_SCORED and self.held >= LEAST_HELD, self.foreseen[-1]
        return enough and newest.line > newest.last and self.error_of_line <= PROVEN * self.error_of_last

    def take(self, at: float, speed: float, horizon_s: float) -> None:
        while self.foreseen and self.foreseen[0].due <= at:
            self._score(self.foreseen.popleft(), speed)
        self.samples.append((at, speed))
        while self.samples[0][0] < at - LINE_S:
            self.samples.popleft()
        line = max(0.0, speed + self._slope * horizon_s)
        self.foreseen.append(_Foreseen(at + horizon_s, speed, line, line + self.above * self.error_of_line))

    @property
    def _slope(self) -> float:
        """In bytes/s per second, by least squares; 0 until the line is long enough."""
        if self.samples[-1][0] - self.samples[0][0] < LINE_S / 2:
            return 0.0
        count = len(self.samples)
        mean_at, mean = (math.fsum(each[axis] for each in self.samples) / count for axis in (0, 1))
        spread = math.fsum((at - mean_at) ** 2 for at, _ in self.samples)
        return math.fsum((at - mean_at) * (speed - mean) for at, speed in self.samples) / spread

    def _score(self, foreseen: _Foreseen, speed: float) -> None:
        self.scored += 1
        error = speed - foreseen.line
        self.error_of_last += MEMORY * (abs(speed - foreseen.last) - self.error_of_last)
        self.error_of_line += MEMORY * (abs(error) - self.error_of_line)
        held = speed <= foreseen.upper
        self.held += MEMORY * (held - self.held)
        # The quantile rises where it did not hold and falls where it did, so that it holds QUANTILE of the time.
        self.above = min(MOST_ABOVE, max(0.0, self.above + STEP * (QUANTILE - held)))


class Forecast:
    """Tracks each partition.

    Args:
        horizon_s: from the moment that a speed stands for until a plan is carried out.
    """

    def __init__(self, horizon_s: float) -> None:
        self.horizon_s = horizon_s
        self._tracks: dict[TopicPartition, _Track] = {}
        self._taken_at = -math.inf

    def measured(self, at: float, speeds: Mapping[TopicPartition, float]) -> None:
        """Speeds came, in bytes/s, at `at` (s since the epoch), which must not go back."""
        if at < self._taken_at + EVERY_S:
            return
        if at > self._taken_at + 3 * EVERY_S:  # what was between is not known
            self._tracks.clear()
        self._taken_at = at
        self._tracks = {partition: self._tracks.get(partition) or _Track() for partition in speeds}
        for partition, speed in speeds.items():
            self._tracks[partition].take(at, speed, self.horizon_s)

    @property
    def upper(self) -> dict[TopicPartition, float]:
        """The upper quantile of the speed at the horizon, in bytes/s, of each partition whose line is proven."""
        return {p: track.foreseen[-1].upper for p, track in self._tracks.items() if track.is_proven}

    @property
    def calibration(self) -> Iterator[tuple[TopicPartition, float]]:
        """How often the quantile held lately, of each partition that was scored often enough."""
        return ((p, track.held) for p, track in self._tracks.items() if track.scored >= LEAST_SCORED)
