"""The capacity of a consumer, learned from what consumers report of themselves.

Packing rests on one capacity for all consumers, and a plan that trusts too high a figure leaves partitions behind. So
what is learned of a consumer is the bound that its mean rate lies above with the stated confidence, which few or uneven
cycles push down; and of all consumers, the least counts. Until somebody has told enough, the floor is taken.

How much cycles vary is itself known from these cycles alone, so the bound is by Student's t: 2.92 standard errors after
three cycles at 0.95, where the normal distribution, for a deviation that is known, has 1.64.
"""

import math
from collections.abc import Iterable
from functools import lru_cache

from domain.messages import Throughput

_MOST_FREEDOM = 100
"""More degrees of freedom count as so many: the quantile at 0.95 is 1.660 with these, and 1.645 with any number."""


def learned_capacity(told: Iterable[Throughput], floor: float, ceiling: float, confidence: float) -> float | None:
    """What one consumer reads at most, in bytes/s; None while nobody has told.

    Args:
        told: by the newest report of each consumer that tells of itself.
        floor: in bytes/s, as the next: what is learned is never taken to be less, nor more than that.
        ceiling: see there.
        confidence: between 0.5 and 1: how sure it must be that a consumer's mean rate is no lower.
    """
    slowest = min((_surely_above(throughput, confidence) for throughput in told), default=None)
    return None if slowest is None else min(max(slowest, floor), ceiling)


def _surely_above(throughput: Throughput, confidence: float) -> float:
    """The lower confidence bound of the mean of so many cycles, in bytes/s."""
    freedom = throughput.cycles - 1
    if not freedom:
        return 0.0
    # The variation is over all cycles; that of the population is greater by the root of cycles / freedom.
    error = throughput.variation * throughput.bytes_per_s / math.sqrt(freedom)
    return throughput.bytes_per_s - students_t(confidence, min(freedom, _MOST_FREEDOM)) * error


@lru_cache
def students_t(confidence: float, freedom: int) -> float:
    """The quantile of Student's t distribution at a confidence of 0.5 or more, found by bisection."""
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _share_within(middle, freedom) < 2 * confidence - 1 else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def _share_within(angle: float, freedom: int) -> float:
    """How likely |t| is below sqrt(freedom) * tan(angle): Abramowitz and Stegun (1964), 26.7.3 and 26.7.4."""
    is_odd = freedom % 2
    term, series = math.cos(angle) if is_odd else 1.0, 0.0
    for step in range(1, freedom // 2 + 1):
        series += term
        term *= math.cos(angle) ** 2 * (2 * step - 1 + is_odd) / (2 * step + is_odd)
    share = math.sin(angle) * series
    return 2 / math.pi * (angle + share) if is_odd else share
