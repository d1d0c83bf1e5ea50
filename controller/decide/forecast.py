"""How fast partitions will be written when a plan that is made now is carried out, where their own past proves it.

A line through a partition's newest minute counts while its errors, on that very partition, are at most `PROVEN` of
those that its newest speed would have had as a forecast, and while its upper quantiles have held. Where no line counts
nothing is foreseen, and speeds are what they are. So it takes a minute, the horizon and `FEWEST` errors, two minutes in
all, until anything is foreseen of a partition; a controller that begins learns it anew.

The upper quantile is the line and the largest of its newest errors. Of 19 errors that come in any order that would hold
19 times of 20; errors come in runs, as horizons overlap, so it holds about 9 times of 10. Errors of a consumer's
partitions are added moment by moment before the largest is taken, so it is the quantile of the consumer's load: errors
that cancel out cost no room, and those that are alike all of it. What it is above the consumer's lines is shared among
its partitions in proportion to their own; of a plan's consumers it is the quantile as far as they are mixed as the
present ones are.

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
MEMORY = LINE - 1 + 2 * (_LONGEST + SCORED)
MEMORY_S = MEMORY * STEP_S


@dataclass(frozen=True, slots=True)
class Foretold:
    """What is foreseen at one moment. Arrays: an element, or a column, for each partition."""

    lines: Figures
    """In bytes/s."""
    errors: Figures
    """By what the speeds of the newest `SCORED` moments were above the lines, in bytes/s; NaN where there was none."""
    counts: Flags
    """Whether the line counts."""
    due: int
    """Quantiles that counted, and of which it is known whether they held: all of the newest `SCORED` moments."""
    held: int
    """Of those."""


def margin(errors: Figures) -> Figures:
    """What the upper quantile is above the line: the largest error of each column, or 0; NaN where there are too few.

    Args:
        errors: rows in the order of time, NaN where there is none.
    """
    there = (~np.isnan(errors)).sum(axis=0)
    largest = np.max(np.where(np.isnan(errors), 0.0, errors), axis=0, initial=0.0)
    return np.where(there >= FEWEST, largest, np.nan)


def foretell(speeds: Figures, ahead: int) -> Foretold:
    """What follows from the past.

    Args:
        speeds: in bytes/s, a row every `STEP_S`, the oldest first, and a column for each partition; NaN: not known.
        ahead: the horizon in steps, 1 or more.
    """
    speeds = speeds[-(LINE - 1 + 2 * (ahead + SCORED)) :]
    lines = _lines(speeds, ahead)
    of_lines, of_last = (_newest(speeds[ahead:] - made[:-ahead], SCORED + ahead + SCORED) for made in (lines, speeds))
    known = ~np.isnan(of_lines)
    of_last[~known] = np.nan
    better = np.zeros(known.shape, bool)
    margins = np.full(known.shape, np.nan)
    for row in range(len(known)):
        scored = slice(max(0, row + 1 - SCORED), row + 1)
        margins[row] = margin(of_lines[scored])
        of_line, of_the_last = (np.nansum(np.abs(each[scored]), axis=0) for each in (of_lines, of_last))
        better[row] = (of_line <= PROVEN * of_the_last) & (known[scored].sum(axis=0) >= FEWEST)
    # The margin of a row was told when the error of the row was known, of the line whose error is known `ahead` later.
    made, came = margins[:-ahead], of_lines[ahead:]
    was_due = ~np.isnan(made) & ~np.isnan(came)
    did_hold = was_due & (came <= made + ROUNDING * _newest(speeds, len(came)))
    rising = _newest(lines, len(known)) > _newest(speeds, len(known))
    due, held = was_due[-SCORED:].sum(axis=0), did_hold[-SCORED:].sum(axis=0)
    counted = (better & rising)[:-ahead][-SCORED:]
    return Foretold(
        lines=lines[-1],
        errors=of_lines[-SCORED:],
        counts=better[-1] & rising[-1] & (held >= LEAST_HELD * due),
        due=int((was_due[-SCORED:] & counted).sum()),
        held=int((did_hold[-SCORED:] & counted).sum()),
    )


def _newest(rows: Figures, count: int) -> Figures:
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
        self._foretold: tuple[int, Foretold] | None = None
        self._upper: tuple[Foretold, Assignment, Mapping[TopicPartition, float]] | None = None

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
        self._step, self._foretold = step, None

    def _rearrange(self, partitions: tuple[TopicPartition, ...]) -> None:
        """What is not measured just now is forgotten, and learned anew."""
        places = {partition: place for place, partition in enumerate(self._partitions)}
        taken = [places.get(partition, -1) for partition in partitions]
        for number, row in enumerate(self._rows):
            self._rows[number] = np.append(row, np.nan)[taken]
        self._partitions = partitions

    def at(self, horizon_s: float) -> Foretold:
        """What is foreseen for so many seconds after the newest speeds, at most `LONGEST_HORIZON_S`."""
        ahead = min(_LONGEST, max(1, math.ceil(horizon_s / STEP_S)))
        if self._foretold is None or self._foretold[0] != ahead:
            rows = np.array(self._rows).reshape(len(self._rows), len(self._partitions))
            self._foretold = ahead, foretell(_newest(rows, max(1, len(rows))), ahead)
        return self._foretold[1]

    def upper(self, horizon_s: float, readers: Assignment) -> Mapping[TopicPartition, float]:
        """The upper quantile of the speed at the horizon, in bytes/s, of each partition whose line counts.

        Args:
            horizon_s: in seconds.
            readers: what a consumer's partitions have adds up to the quantile of its load.
        """
        foretold = self.at(horizon_s)
        if self._upper is None or self._upper[0] is not foretold or self._upper[1] is not readers:
            self._upper = foretold, readers, self._shared(foretold, readers)
        return self._upper[2]

    def _shared(self, foretold: Foretold, readers: Assignment) -> dict[TopicPartition, float]:
        margins = margin(foretold.errors)
        counting = [(place, p) for place, p in enumerate(self._partitions) if foretold.counts[place]]
        together: dict[ConsumerId, list[int]] = {}
        for place, partition in counting:
            if (reader := readers.get(partition)) is not None:
                together.setdefault(reader, []).append(place)
        for places in together.values():
            if (own := margins[places].sum()) > 0:
                margins[places] *= float(margin(foretold.errors[:, places].sum(axis=1))) / own
        return {p: float(foretold.lines[place] + margins[place]) for place, p in counting}
