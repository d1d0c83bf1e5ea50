"""How long nothing is planned and no consumer is created after some have failed: the longer, the more did in a row."""

import math

LONGEST_BACKOFF_S = 60.0


class Backoff:
    """So that consumers which cannot start are not created over and over. Times are in seconds since the epoch."""

    def __init__(self) -> None:
        self._failures = 0
        """Consumers lost or not created since one became ready."""
        self._failed_at = -math.inf

    def failed(self, now: float) -> None:
        self._failures += 1
        self._failed_at = now

    def succeeded(self) -> None:
        """A consumer is ready."""
        self._failures = 0

    @property
    def until(self) -> float:
        """One failure alone holds nothing up."""
        return self._failed_at + (min(LONGEST_BACKOFF_S, 2.0**self._failures) if self._failures > 1 else 0.0)
