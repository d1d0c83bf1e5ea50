"""The published rules of two autoscalers, as arithmetic: KEDA with the Horizontal Pod Autoscaler, and Flink's."""

import math
from collections import deque
from dataclasses import dataclass, field

_ROUNDING = 1e-9
"""What is a whole number but for the rounding of floats is not rounded up."""

HPA_SYNC_S = 15.0
HPA_TOLERANCE = 0.1
HPA_STABILISATION_S = 300.0
"""Of scaling down."""


@dataclass(slots=True)
class LagRule:
    """KEDA's Kafka scaler as an external metric of the Horizontal Pod Autoscaler, all else at their defaults.

    desired = ceil(lag / threshold), unless that over the present number is within the tolerance of 1. Growing: at most
    to the double, or by 4 where that is more, at each sync of 15 s. Shrinking: to the highest that was desired in the
    last 300 s. The lag counts up to `threshold * partitions`, so that there are no more consumers than partitions.
    """

    threshold: float
    """`lagThreshold`, in records for each consumer."""
    partitions: int
    _desired: deque[tuple[float, int]] = field(default_factory=deque)

    def replicas(self, at: float, lag: float, present: int) -> int:
        """How many consumers there are to be, given the lag of the group in records; called at each sync."""
        lag = min(lag, self.threshold * self.partitions)
        within = abs(lag / (self.threshold * present) - 1) <= HPA_TOLERANCE
        desired = present if within else max(1, math.ceil(lag / self.threshold))
        self._desired.append((at, desired))
        while self._desired[0][0] < at - HPA_STABILISATION_S:
            self._desired.popleft()
        if desired > present:
            return min(desired, max(2 * present, present + 4))
        return min(present, max(wanted for _, wanted in self._desired))


@dataclass(frozen=True, slots=True)
class FlinkSettings:
    """Those of Flink's autoscaler that matter here, by their names and defaults (Flink Kubernetes Operator)."""

    utilisation: float = 0.7
    """`utilization.target`."""
    boundary: float = 0.3
    """`utilization.target.boundary`: within it nothing is scaled."""
    window_s: float = 900.0
    """`metrics.window`."""
    stabilisation_s: float = 300.0
    """`stabilization.interval`: after a restart, nothing is decided for so long."""
    catch_up_s: float = 1800.0
    """`catch-up.duration`: a backlog is to be gone after so long."""
    restart_s: float = 300.0
    """`restart.time`: what the rule expects a restart to take."""
    least_factor: float = 0.4
    """1 - `scale-down.max-factor`."""


def flink_parallelism(
    settings: FlinkSettings, *, rate: float, backlog: float, true_rate: float, present: int, partitions: int
) -> int:
    """The parallelism that Flink's rule wants for a source; `present` where it sees no need.

    Args:
        settings: see there.
        rate: what is written, mean over the window, in bytes/s.
        backlog: bytes that wait.
        true_rate: what one reader would read if it were never idle, in bytes/s.
        present: the parallelism now.
        partitions: the source has no more readers than these; their number is to divide it.
    """
    catch_up = (backlog + rate * settings.restart_s) / settings.catch_up_s
    capacity = present * true_rate
    highest, lowest = settings.utilisation + settings.boundary, settings.utilisation - settings.boundary
    if rate / highest + catch_up <= capacity <= rate / lowest + catch_up:
        return present
    factor = max(settings.least_factor, (rate / settings.utilisation + catch_up) / capacity)
    wanted = min(partitions, max(1, math.ceil(factor * present - _ROUNDING)))
    return next(number for number in range(wanted, partitions + 1) if partitions % number == 0)
