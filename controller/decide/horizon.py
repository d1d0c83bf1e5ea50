"""How far ahead it is worth to look: as long as acting takes, in this very group."""

import math
from collections import deque
from statistics import median

from controller.decide.forecast import LONGEST_HORIZON_S, STEP_S
from domain.messages import Foresight

DELAY_S = 15.0
"""By so much speeds are late where their window is not told: half of the monitor's default."""
ACTING_S = 10.0
"""What it takes to carry a plan out, until one was."""
NEWEST = 9


class Horizon:
    """From the moment that speeds stand for until a plan that rests on them is carried out.

    Its length is what plans with more consumers took lately (a consumer's start, hand-overs, the batches that are
    written before), in the median, and what speeds are late by: half of the window that they are means over. It is in
    whole steps of the forecast.
    """

    def __init__(self) -> None:
        self._delay_s = DELAY_S
        self._told_s: float | None = None
        self._took: deque[float] = deque(maxlen=NEWEST)

    @property
    def seconds(self) -> float:
        """Its length; what a controller has told, until more is known."""
        if self._told_s is not None:
            return self._told_s
        acting_s = median(self._took) if self._took else ACTING_S
        return min(LONGEST_HORIZON_S, STEP_S * math.ceil((self._delay_s + acting_s) / STEP_S))

    @property
    def acting_s(self) -> float:
        """That part of it in which a plan is carried out."""
        return max(STEP_S, self.seconds - self._delay_s)

    def inherit(self, foresight: Foresight | None) -> None:
        """What a controller has told."""
        if foresight is not None:
            self._told_s = min(LONGEST_HORIZON_S, max(STEP_S, foresight.horizon_s))

    def measured(self, window_s: float | None) -> None:
        """Speeds came that are means over so long a window; None where that is not told."""
        self._delay_s = DELAY_S if window_s is None else window_s / 2

    def acted(self, took_s: float) -> None:
        """A plan with more consumers is carried out; so long after it was decided."""
        self._told_s = None
        self._took.append(took_s)
