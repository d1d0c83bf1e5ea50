"""How fast a consumer is while it always has enough to do: the constant that packing rests on. Measured, or made so.

A cycle counts if it shows the consumer's own limit: its batch was full, and no request for its records came back empty.
Its time is that from the end of the write before to the end of its own, whichever of fetching and writing took it.
"""

import math
from dataclasses import dataclass, replace

from domain.messages import Throughput

NEWEST = 30
"""So many cycles are remembered."""
FEWEST = 3
"""With fewer, nothing is said."""


@dataclass(frozen=True, slots=True)
class _Cycle:
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class SaturatedRate:
    """What the newest saturated cycles tell."""

    _cycles: tuple[_Cycle, ...] = ()
    _since: float | None = None
    """When the last cycle ended, on any clock; none where the time since then tells nothing of the rate."""

    def after(self, size_bytes: int, seconds: float) -> "SaturatedRate":
        """With one more saturated cycle: of so many bytes of keys and values, in so many seconds (more than 0)."""
        return replace(self, _cycles=(*self._cycles, _Cycle(size_bytes, seconds))[-NEWEST:])

    def ended(self, size_bytes: int, at: float, *, whole: bool, saturated: bool) -> "SaturatedRate":
        """A cycle has ended then; `whole`: nothing of it failed, `saturated`: there was enough to do all the time."""
        known = self
        if whole and saturated and self._since is not None:
            known = self.after(size_bytes, at - self._since)
        return replace(known, _since=at if whole else None)

    def interrupted(self) -> "SaturatedRate":
        """Something else was done meanwhile: the cycle under way does not count."""
        return replace(self, _since=None)

    def throughput(self, record_bytes: float, compression: float | None) -> Throughput | None:
        """What a report says of it; none while there are too few cycles.

        Args:
            record_bytes: the mean of a record's key and value.
            compression: bytes of keys and values for each byte that the brokers sent, if known.
        """
        if len(self._cycles) < FEWEST:
            return None
        seconds = sum(cycle.seconds for cycle in self._cycles)
        rate = sum(cycle.bytes for cycle in self._cycles) / seconds
        squares = sum(cycle.seconds * (cycle.bytes / cycle.seconds - rate) ** 2 for cycle in self._cycles)
        return Throughput(
            bytes_per_s=rate,
            variation=math.sqrt(squares / seconds) / rate,
            cycles=len(self._cycles),
            record_bytes=record_bytes,
            compression=compression,
        )


@dataclass(frozen=True, slots=True)
class Pace:
    """How far batches are apart so that they are read no faster than a limit. What is slow once is not made up for."""

    bytes_per_s: float | None
    """The limit, if there is one."""
    free_at: float = -math.inf
    """When the next batch may be written."""

    def after(self, size_bytes: int, at: float) -> "Pace":
        """With a batch of so many bytes of keys and values that began to be written then, on any clock."""
        return self if self.bytes_per_s is None else replace(self, free_at=at + size_bytes / self.bytes_per_s)

    def wait_s(self, at: float) -> float:
        """How long the next batch has to wait then, in seconds."""
        return max(0.0, self.free_at - at)
