"""How fast producers write to each partition, how and when that was measured, and what the group has yet to read."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from domain.partitions import TopicPartition

LEAST_CAPACITY = 1.0
"""Of a consumer that is set up, in bytes/s: with less, shares of it would be no numbers any more."""
HIGHEST_SPEED = 1e18
"""In bytes/s: what is above it is no speed, and the sum of many such would be no number."""


def require_speed(speed: float, of: object = "a write speed") -> float:
    """`speed` itself, in bytes/s.

    Raises:
        ValueError: it is negative, infinite or no number.
    """
    if not (math.isfinite(speed) and speed >= 0):
        raise ValueError(f"the write speed of {of} is {speed}: it must be a number of bytes/s, 0 or more")
    return speed


class Method(StrEnum):
    """How a speed was measured."""

    STORED_BYTES = "stored_bytes"
    """By what the log takes on the brokers' disks."""
    END_OFFSETS = "end_offsets"
    """By the number of records, times the size that they had lately: where stored bytes mislead, or are not told."""


class Source(StrEnum):
    """What tells how fast a partition is written."""

    LOG_DIRS = "log_dirs"
    """The brokers tell what logs take on their disks: exact, and it takes the right to describe the cluster."""
    OFFSETS = "offsets"
    """Records are counted by end offsets, and samples of them tell their size: it takes the right to read them."""
    PROMETHEUS = "prometheus"
    """A Prometheus tells what logs take, as often as it scrapes that: brokers are asked for offsets alone."""


class Origin(NamedTuple):
    """Where a speed comes from."""

    method: Method
    age_s: float
    """How old the newest measurement in it was when the speed was told."""


class MeasuredBy(NamedTuple):
    """Topics that are measured by one source. While a right comes or goes, a topic may be measured by two."""

    source: str
    """One of `Source`, or what a later version knows besides."""
    topics: tuple[str, ...]
    """In ascending order."""
    because: str = ""
    """Why it is this source; empty where it is the best."""


class Lag(NamedTuple):
    """What is written to a partition, and not committed by the group yet."""

    records: int
    """Offsets, strictly: those of compacted records and of transactions' markers count, too."""
    bytes: float
    """On the brokers' disks, as the write speeds are."""
    seconds: float | None
    """For how long the partition would have to be written at its present speed; None where that is 0 or unknown."""


@dataclass(frozen=True, slots=True)
class WriteSpeeds:
    """The write speed of each partition of interest, in bytes/s, as measured at one moment.

    A partition that is of interest and could not be measured is `unknown`; it is never given a speed of 0.

    Raises:
        ValueError: a speed is negative, infinite or no number, or a partition is two of measured, unknown and gone.
    """

    measured_at: float
    """Seconds since the epoch."""
    bytes_per_s: Mapping[TopicPartition, float]
    unknown: frozenset[TopicPartition] = field(default=frozenset())
    origins: Mapping[TopicPartition, Origin] = field(default_factory=dict)
    """Of the speeds, as far as it was told."""
    lags: Mapping[TopicPartition, Lag] = field(default_factory=dict)
    """Of partitions of interest; one that is left out is unknown, and not 0."""
    gone: frozenset[TopicPartition] = field(default=frozenset())
    """Partitions that were deleted, or are of interest no more. One that is only not named is neither."""
    sources: tuple[MeasuredBy, ...] = ()
    """What tells the speeds, as far as it was told."""
    window_s: float | None = None
    """Over which each of them is the mean, once that is full; None where it was not told."""

    def __post_init__(self) -> None:
        for partition, speed in self.bytes_per_s.items():
            require_speed(speed, partition)
        if both := self.unknown & self.bytes_per_s.keys():
            raise ValueError(f"{min(both)} has a speed and is said to be unknown: it must be one of the two")
        if both := self.gone & (self.unknown | self.bytes_per_s.keys()):
            raise ValueError(f"{min(both)} is of interest and is said to be gone: it must be one of the two")

    @property
    def total(self) -> float:
        """The sum of the known speeds, in bytes/s."""
        return math.fsum(self.bytes_per_s.values())
