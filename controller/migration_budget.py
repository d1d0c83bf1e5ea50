"""How much may be migrated within a while: the Rscore that plans have cost lately, and what is left of the budget."""

import math
from collections import deque


class MigrationBudget:
    """A limit on the Rscore of all plans carried out within any window.

    Args:
        limit: in consumers; infinite for no limit.
        window_s: what was spent longer ago does not count any more.
    """

    def __init__(self, limit: float, window_s: float) -> None:
        self.limit = limit
        self._window_s = window_s
        self._spent: deque[tuple[float, float]] = deque()

    def spend(self, at: float, rscore: float) -> None:
        """A plan was carried out. Those that had to be count too, and may leave less than nothing."""
        if rscore > 0 and math.isfinite(self.limit):
            self._forget(at)
            self._spent.append((at, rscore))

    def left(self, at: float) -> float:
        """What a plan may cost now, in consumers; 0 or more."""
        self._forget(at)
        return max(0.0, self.limit - math.fsum(rscore for _, rscore in self._spent))

    def _forget(self, at: float) -> None:
        while self._spent and self._spent[0][0] <= at - self._window_s:
            self._spent.popleft()
