"""When a component that ended without being asked to is begun anew: what Kubernetes does with a container."""

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 30.0
STEADY_S = 30.0
"""Who ran for so long had begun well."""
MOST_FAILURES = 6
"""So many times in a row a component may end before it has run for so long."""


class BackOff:
    """Of one component: at once the first time, then after pauses that double up to a bound; given up in the end."""

    def __init__(self) -> None:
        self._failures = 0

    def wait_s(self, ran_s: float) -> float | None:
        """It has ended after so long: how long to wait before it is begun anew, 0 for not at all; None: no more."""
        if ran_s >= STEADY_S:
            self._failures = 0
        self._failures += 1
        if self._failures >= MOST_FAILURES:
            return None
        if self._failures == 1:
            return 0.0
        return min(FIRST_WAIT_S * 2.0 ** (self._failures - 2), LONGEST_WAIT_S)
