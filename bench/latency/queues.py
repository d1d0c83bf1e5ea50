"""Exact queues: what is written to each partition, what its consumer reads of it, and how long each byte waits.

Both are curves over time, straight within a tick. A consumer shares its capacity fairly among its partitions: none gets
more than another that still wants more. A byte's delay is the time between the two curves at its level, so quantiles
over all bytes follow from the curves alone, without sampling.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Figures = npt.NDArray[np.float64]
Readers = npt.NDArray[np.int64]
"""The consumer that reads each partition; `NOBODY` where none does."""

NOBODY = -1


def fair_shares(wanted: Figures, capacity: float) -> Figures:
    """What each gets of `capacity`: all that it wants, or the same as all others that want more (max-min fairness)."""
    if wanted.sum() <= capacity:
        return wanted
    ascending = np.sort(wanted)
    served_before = np.concatenate(([0.0], np.cumsum(ascending)[:-1]))
    levels = (capacity - served_before) / np.arange(len(wanted), 0, -1)
    # The first that wants more than the level at its place sets the level for itself and all after it.
    shares: Figures = np.minimum(wanted, levels[np.argmax(ascending > levels)])
    return shares


class Queues:
    """All partitions over a run.

    Args:
        partitions: how many.
        ticks: the length of the run.
        tick_s: of one tick.
        capacity: what a consumer reads at most, in bytes/s.
    """

    def __init__(self, partitions: int, ticks: int, tick_s: float, capacity: float) -> None:
        self.written = np.zeros((ticks + 1, partitions))
        """Bytes written to each partition until each moment."""
        self.read = np.zeros((ticks + 1, partitions))
        self.tick_s = tick_s
        self._per_tick = capacity * tick_s
        self._now = 0

    @property
    def so_far(self) -> Figures:
        """What was written to each partition until now, in bytes."""
        written: Figures = self.written[self._now]
        return written

    @property
    def backlog(self) -> Figures:
        """What waits in each partition now, in bytes."""
        backlog: Figures = self.written[self._now] - self.read[self._now]
        return backlog

    def advance(self, speeds: Figures, readers: Readers) -> None:
        """One tick: `speeds` in bytes/s are written, `readers` read."""
        written = self.written[self._now] + speeds * self.tick_s
        wanted = written - self.read[self._now]
        served = np.where(readers == NOBODY, 0.0, wanted)
        loads = np.bincount(readers + 1, weights=served)
        for overloaded in np.flatnonzero(loads > self._per_tick):
            held = np.flatnonzero(readers == overloaded - 1)
            served[held] = fair_shares(wanted[held], self._per_tick)
        self._now += 1
        self.written[self._now] = written
        # What is read to the end is equal, not nearly equal: sums of floats would leave bytes that nobody ever reads.
        self.read[self._now] = np.where(served == wanted, written, self.read[self._now - 1] + served)

    def uncommitted(self, age_s: float) -> Figures:
        """What waits in each partition by the commits, where each is `age_s` behind what is read, in bytes."""
        committed: Figures = self.read[max(0, self._now - round(age_s / self.tick_s))]
        waiting: Figures = self.written[self._now] - committed
        return waiting

    def speeds(self, window_s: float) -> Figures:
        """Each partition's mean write speed over the last `window_s`, in bytes/s."""
        ticks = min(self._now, max(1, round(window_s / self.tick_s)))
        if not ticks:
            return np.zeros(self.written.shape[1])
        mean: Figures = (self.written[self._now] - self.written[self._now - ticks]) / (ticks * self.tick_s)
        return mean


@dataclass(frozen=True, slots=True)
class Delays:
    """How long bytes wait: runs of bytes, within each of which the delay goes evenly from `low` to `high`."""

    low: Figures
    """Seconds."""
    high: Figures
    bytes: Figures
    """Of each run."""

    def quantile(self, share: float) -> float:
        """The delay in seconds that a `share` of all bytes does not exceed; within a millisecond."""
        wanted = share * self.bytes.sum()
        waiting = self.high > 0
        low, high, size = self.low[waiting], self.high[waiting], self.bytes[waiting]
        at_once = self.bytes.sum() - size.sum()
        if wanted <= at_once:
            return 0.0
        widths = np.maximum(high - low, 1e-9)
        below, above = 0.0, float(high.max())
        while above - below > 1e-3:
            middle = (below + above) / 2
            if at_once + (size * np.clip((middle - low) / widths, 0.0, 1.0)).sum() < wanted:
                below = middle
            else:
                above = middle
        return above


def delays(written: Figures, read: Figures, tick_s: float, since: int = 0) -> Delays:
    """The delays of all bytes written from tick `since` on.

    What is not read at the end has waited until then: it counts with that, which is less than it will have been.

    Args:
        written: bytes written to each partition (columns) until each moment (rows).
        read: of these, how many are read; never more.
        tick_s: from one row to the next.
        since: the row from which on.
    """
    parts = [_delays_of(written[:, p], read[:, p], since) for p in range(written.shape[1])]
    low, high, size = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return Delays(low * tick_s, high * tick_s, size)


def _delays_of(written: Figures, read: Figures, since: int) -> tuple[Figures, Figures, Figures]:
    """Of one partition, in ticks."""
    levels = np.unique(np.concatenate((written[since:], read)))
    levels = levels[(levels >= written[since]) & (levels <= written[-1])]
    starts, ends = levels[:-1], levels[1:]
    at_start = _left_at(read, starts) - _left_at(written, starts)
    at_end = _reached_at(read, ends) - _reached_at(written, ends)
    first, last = np.maximum(at_start, 0.0), np.maximum(at_end, 0.0)
    return np.minimum(first, last), np.maximum(first, last), ends - starts


def _left_at(curve: Figures, levels: Figures) -> Figures:
    """When a rising curve goes beyond each level; at its end where it does not."""
    after = np.searchsorted(curve, levels, side="right")
    return _between(curve, levels, after)


def _reached_at(curve: Figures, levels: Figures) -> Figures:
    """When a rising curve comes to each level; at its end where it does not."""
    after = np.searchsorted(curve, levels, side="left")
    return _between(curve, levels, after)


def _between(curve: Figures, levels: Figures, after: npt.NDArray[np.int64]) -> Figures:
    last = len(curve) - 1
    inside = np.clip(after, 1, last)
    before, behind = curve[inside - 1], curve[inside]
    steps = np.where(behind > before, behind - before, 1.0)
    moments: Figures = np.where(
        after > last, float(last), np.where(after < 1, 0.0, inside - 1 + (levels - before) / steps)
    )
    return moments
