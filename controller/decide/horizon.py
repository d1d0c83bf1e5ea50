"""How far ahead it is worth to look: as long as acting takes, in this very group."""

import math
from collections import deque
from statistics import median

from controller.decide.forecast import LONGEST_HORIZON_S, STEP_S
from domain.messages import Foresight

DELAY_S = 15.0
"""By so much speeds are late: half of the monitor's window, where that is not set."""
ACTING_S = 10.0
"""What it takes to carry a plan out, until one was."""
NEWEST = 9


class Horizon:
    """From the moment that speeds stand for until a plan that rests on them is carried out.

    Its length is what plans with more consumers took lately (a consumer's start, hand-overs, the batches that are
    written before), in the median, and what speeds are late by. It is in whole steps of the forecast.
    """

    def __init__(self) -> None:
        self.seconds = _whole(ACTING_S)
        self._took: deque[float] = deque(maxlen=NEWEST)

    def inherit(self, foresight: Foresight | None) -> None:
        """What a controller has told, until more is known."""
        if foresight is not None:
            self.seconds = min(LONGEST_HORIZON_S, max(STEP_S, foresight.horizon_s))

    def acted(self, took_s: float) -> None:
        """A plan with more consumers is carried out; so long after it was decided."""
        self._took.append(took_s)
        self.seconds = _whole(median(self._took))


def _whole(acting_s: float) -> float:
    return min(LONGEST_HORIZON_S, STEP_S * math.ceil((DELAY_S + acting_s) / STEP_S))
