"""How fast partitions will be written when a plan that is made now is carried out, where their own past proves it.

A line through a partition's newest minute counts while its errors, on that very partition, are at most `PROVEN` of
those that its newest speed would have had as a forecast, and while its upper quantiles have held. Where no line counts
nothing is foreseen, and speeds are what they are. So it takes a minute, the horizon and `FEWEST` errors, two minutes in
all, until anything is foreseen of a partition; a controller that begins learns it anew.

The upper quantile is the line and the largest of its newest errors. Of 19 errors that come in any order that would hold
19 times of 20; where errors come in runs, as horizons overlap, it holds about 9 times of 10. Where it held more often
than that, the largest is spared, and the second largest taken. Errors of a consumer's partitions are added moment by
moment before the largest is taken, so it is the quantile of the consumer's load: errors that cancel out cost no room,
and those that are alike all of it. What it is above the consumer's lines is shared among its partitions in proportion
to their own; of a plan's consumers it is the quantile as far as they are mixed as the present ones are.

All partitions together have a line, too, which counts by the same rules, and often where theirs do not: what each does
by chance cancels out. Then its upper quantile is what all come to: those whose own lines count follow these, the others
share what is left of the line in proportion to their speeds, and all who rise the margin in proportion to their growth.

All follows from the newest `MEMORY_S` of speeds, and from no others: whoever has heard these foresees the same.
"""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from domain.assignment import Assignment, ConsumerId
from domain.partitions import TopicPartition

Figures = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

STEP_S = 5.0
"""Speeds are taken in so often."""
LINE = 13
"""Speeds that the line goes through: a minute's."""
SCORED, FEWEST = 19, 9
"""The newest errors that count, and how many there have to be."""
PROVEN = 0.6
LEAST_HELD = 0.8
QUANTILE = 0.9
ROUNDING = 1e-9
"""Of a speed: an error that is no larger is one of the arithmetic."""
LONGEST_GAP = 3
"""Steps without speeds that are filled in along a line. After more nothing is known of the past."""
LONGEST_HORIZON_S = 60.0
_LONGEST = round(LONGEST_HORIZON_S / STEP_S)


def memory(ahead: int) -> int:
    """How many speeds tell what is foreseen so many steps ahead.

    From the errors of lines follow margins, from whether these held which of them spare an error, and from whether
    those held which lines count.
    """
    return LINE - 1 + 3 * (ahead + SCORED)


MEMORY = memory(_LONGEST)
MEMORY_S = MEMORY * STEP_S


@dataclass(frozen=True, slots=True)
class Foretold:
    """What is foreseen at one moment. Arrays: an element, or a column, for each partition."""

    lines: Figures
    """In bytes/s."""
    errors: Figures
    """By what the newest `SCORED` speeds of each partition (rows) were above its lines, in bytes/s; NaN where there was
    none."""
    spares: Flags
    """Whether the largest of these is left out: it would hold more often than it is to."""
    counts: Flags
    """Whether the line counts."""
    due: int
    """Quantiles that counted, and of which it is known whether they held: all of the newest `SCORED` moments."""
    held: int
    """Of those."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is foreseen at one moment of partitions, one by one and all together."""

    each: Foretold
    together: Foretold
    """Of the sum of those that were known all the time: one column."""
    summed: Flags
    """Whether a partition is in that sum."""

    @property
    def partitions(self) -> int:
        """Of so many something is foreseen."""
        return int((self.each.counts | (self.summed & self.together.counts)).sum())

    @property
    def due(self) -> int:
        return self.each.due + self.together.due

    @property
    def held(self) -> int:
        return self.each.held + self.together.held


def margin(errors: Figures, spares: Flags) -> Figures:
    """What the upper quantile is above the line: the largest of the errors, or 0; NaN where there are too few.

    Args:
        errors: along the last axis, NaN where there is none.
        spares: where the second largest is taken instead.
    """
    there = (~np.isnan(errors)).sum(axis=-1)
    above = np.where(errors > 0, errors, 0.0)
    margins = above.max(axis=-1)
    margins[spares] = np.partition(above[spares], -2, axis=-1)[..., -2]
    return np.where(there >= FEWEST, margins, np.nan)


def foretell(speeds: Figures, ahead: int) -> Foretold:
    """What follows from the past.

    Args:
        speeds: in bytes/s, a row every `STEP_S`, the oldest first, and a column for each partition; NaN: not known.
        ahead: the horizon in steps, 1 or more.
    """
    speeds = speeds[-memory(ahead) :]
    lines = _lines(speeds, ahead)
    rows = 2 * (ahead + SCORED)
    of_lines, of_last = (_newest_of_each(speeds[ahead:] - made[:-ahead], rows) for made in (lines, speeds))
    known = ~np.isnan(of_lines)
    off, last_off = (np.abs(errors).sum(axis=-1, where=known) for errors in (of_lines, of_last))
    better = (off <= PROVEN * last_off) & (known.sum(axis=-1) >= FEWEST)
    came, rounding = of_lines[..., -1], ROUNDING * _newest(speeds, rows)

    def outcomes(margins: Figures) -> tuple[Flags, Flags]:
        """At each row, whether it is known what came of a margin, and whether that held.

        The margin of a row was told when its error was known, of the line whose error is known `ahead` later.
        """
        told = _newest(margins[:-ahead], rows)
        due = ~np.isnan(told) & ~np.isnan(came)
        return due, due & (came <= told + rounding)

    unspared = margin(of_lines, np.zeros(came.shape, bool))
    due, held = (np.nansum(_newest_of_each(flags, rows), axis=-1) for flags in outcomes(unspared))
    spares = (due >= FEWEST) & (held > QUANTILE * due)
    due, held = (flags[-SCORED:] for flags in outcomes(margin(of_lines, spares)))
    rising = _newest(lines, rows) > _newest(speeds, rows)
    counted = (better & rising)[-ahead - SCORED : -ahead]
    return Foretold(
        lines=lines[-1],
        errors=of_lines[-1],
        spares=spares[-1],
        counts=better[-1] & rising[-1] & (held.sum(axis=0) >= LEAST_HELD * due.sum(axis=0)),
        due=int((due & counted).sum()),
        held=int((held & counted).sum()),
    )


def _newest_of_each(rows: Figures | Flags, count: int) -> Figures:
    """At each of the last rows (first axis), of each column (second), the newest `SCORED` elements; NaN: none is."""
    return np.lib.stride_tricks.sliding_window_view(_newest(rows, count + SCORED - 1), SCORED, axis=0)


def _newest(rows: Figures | Flags, count: int) -> Figures:
    """The last rows; where there are fewer, NaN before them."""
    missing = max(0, count - len(rows))
    return np.concatenate((np.full((missing, rows.shape[1]), np.nan), rows[len(rows) - count + missing :]))


def _lines(speeds: Figures, ahead: int) -> Figures:
    """The line's value `ahead` steps after each row, by least squares through the `LINE` rows up to it, moved to end in
    the last of them; NaN where one of them is not known."""
    lines = np.full(speeds.shape, np.nan)
    if len(speeds) >= LINE:
        places = np.arange(LINE) - (LINE - 1) / 2
        windows = np.lib.stride_tricks.sliding_window_view(speeds, LINE, axis=0)
        slopes = windows @ (places / (places @ places))
        lines[LINE - 1 :] = np.maximum(0.0, speeds[LINE - 1 :] + ahead * slopes)
    return lines


class Forecast:
    """Remembers the speeds of the last `MEMORY_S`, and what follows from them."""

    def __init__(self) -> None:
        self._partitions: tuple[TopicPartition, ...] = ()
        self._rows: deque[Figures] = deque(maxlen=MEMORY)
        self._step = -math.inf
        self._outlook: tuple[int, Outlook] | None = None
        self._upper: tuple[Outlook, Assignment, Mapping[TopicPartition, float]] | None = None

    def measured(self, at: float, speeds: Mapping[TopicPartition, float]) -> None:
        """Speeds came, in bytes/s, that were measured at `at`, by the clock of who measured them.

        Only differences of that clock count. Where it goes back, or jumps, nothing is known of the past.
        """
        step = at // STEP_S
        if step == self._step:
            return
        missing = step - self._step - 1
        if not 0 <= missing <= LONGEST_GAP:
            self._rows.clear()
            missing = 0
        partitions = tuple(sorted(speeds))
        if partitions != self._partitions:
            self._rearrange(partitions)
        row = np.array([speeds[partition] for partition in partitions])
        last = self._rows[-1] if self._rows else row
        shares = (np.arange(missing) + 1) / (missing + 1)
        self._rows.extend(last + share * (row - last) for share in shares)
        self._rows.append(row)
        self._step, self._outlook = step, None

    def _rearrange(self, partitions: tuple[TopicPartition, ...]) -> None:
        """What is not measured just now is forgotten, and learned anew."""
        places = {partition: place for place, partition in enumerate(self._partitions)}
        taken = [places.get(partition, -1) for partition in partitions]
        for number, row in enumerate(self._rows):
            self._rows[number] = np.append(row, np.nan)[taken]
        self._partitions = partitions

    def at(self, horizon_s: float) -> Outlook:
        """What is foreseen for so many seconds after the newest speeds, at most `LONGEST_HORIZON_S`."""
        ahead = min(_LONGEST, max(1, math.ceil(horizon_s / STEP_S)))
        if self._outlook is None or self._outlook[0] != ahead:
            rows = np.array(self._rows).reshape(len(self._rows), len(self._partitions))
            rows = _newest(rows, max(1, len(rows)))[-memory(ahead) :]
            summed: Flags = ~np.isnan(rows.sum(axis=0))
            together = rows[:, summed].sum(axis=1, keepdims=True)
            self._outlook = ahead, Outlook(foretell(rows, ahead), foretell(together, ahead), summed)
        return self._outlook[1]

    def upper(self, horizon_s: float, readers: Assignment) -> Mapping[TopicPartition, float]:
        """The speeds at the horizon that are to be planned with, in bytes/s, of the partitions of which something is
        foreseen: upper quantiles, or what adds up to that of all together.

        Args:
            horizon_s: in seconds.
            readers: what a consumer's partitions have adds up to the quantile of its load.
        """
        outlook = self.at(horizon_s)
        if self._upper is None or self._upper[0] is not outlook or self._upper[1] is not readers:
            upper = self._of_each(outlook.each, readers)
            if outlook.together.counts[0]:
                upper |= self._of_all(outlook)
            self._upper = outlook, readers, upper
        return self._upper[2]

    def _of_each(self, foretold: Foretold, readers: Assignment) -> dict[TopicPartition, float]:
        margins = margin(foretold.errors, foretold.spares)
        counting = self._counting(foretold)
        by_reader: dict[ConsumerId, list[int]] = {}
        for partition, place in counting.items():
            if (reader := readers.get(partition)) is not None:
                by_reader.setdefault(reader, []).append(place)
        for places in by_reader.values():
            if (own := margins[places].sum()) > 0:
                errors = foretold.errors[places].sum(axis=0, keepdims=True)
                margins[places] *= margin(errors, np.array([foretold.spares[places].all()])) / own
        return {p: float(foretold.lines[place] + margins[place]) for p, place in counting.items()}

    def _of_all(self, outlook: Outlook) -> dict[TopicPartition, float]:
        """What adds up to the upper quantile of all together."""
        counting, together = self._counting(outlook.each), outlook.together
        speeds = {p: float(self._rows[-1][place]) for place, p in enumerate(self._partitions) if outlook.summed[place]}
        lines = {p: float(outlook.each.lines[place]) for p, place in counting.items() if p in speeds}
        others = math.fsum(speed for p, speed in speeds.items() if p not in lines)
        line = float(together.lines[0])
        left = line - math.fsum(lines.values()) - others
        growth = 1 + left / others if others > 0 and left > ROUNDING * line else 1.0
        comes = {p: lines.get(p, growth * speed) for p, speed in speeds.items()}
        rises = {p: comes[p] - speed for p, speed in speeds.items() if comes[p] > speed}
        room = line + float(margin(together.errors, together.spares)[0]) - math.fsum(comes.values())
        share = max(0.0, room) / math.fsum(rises.values()) if rises else 0.0
        return {p: comes[p] + share * rise for p, rise in rises.items()}

    def _counting(self, foretold: Foretold) -> dict[TopicPartition, int]:
        """The places of the partitions whose lines count."""
        return {p: place for place, p in enumerate(self._partitions) if foretold.counts[place]}
