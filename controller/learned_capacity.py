"""The capacity of a consumer, learned from what consumers report of themselves.

Packing rests on one capacity for all consumers, and a plan that trusts too high a figure leaves partitions behind. So
what is learned of a consumer is the bound that its mean rate lies above with the stated confidence, which few or uneven
cycles push down; and of all consumers, the least counts. Until somebody has told enough, the floor is taken.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

from domain.messages import Throughput


@dataclass(frozen=True, slots=True)
class CapacityLimits:
    """What an operator allows."""

    floor: float
    """In bytes/s, as the next: what is learned is never taken to be less, nor more than that."""
    ceiling: float
    confidence: float
    """Between 0.5 and 1: how sure it must be that a consumer's mean rate is no lower."""


@dataclass(frozen=True, slots=True)
class LearnedCapacity:
    """What one consumer reads at most, and what that rests on."""

    bytes_per_s: float
    consumers: int
    """That have told of themselves; 0: nothing is known, and it is the floor."""
    cycles: int
    """Of theirs, together."""


def learned_capacity(told: Iterable[Throughput], limits: CapacityLimits) -> LearnedCapacity:
    """The capacity by the newest report of each consumer that has one."""
    known = list(told)
    slowest = min((_surely_above(throughput, limits.confidence) for throughput in known), default=limits.floor)
    return LearnedCapacity(
        bytes_per_s=min(max(slowest, limits.floor), limits.ceiling),
        consumers=len(known),
        cycles=sum(throughput.cycles for throughput in known),
    )


def _surely_above(throughput: Throughput, confidence: float) -> float:
    """The lower confidence bound of the mean of so many cycles, in bytes/s."""
    deviation = throughput.variation * throughput.bytes_per_s / math.sqrt(throughput.cycles)
    return throughput.bytes_per_s - NormalDist().inv_cdf(confidence) * deviation
