"""Which tables a consumer takes care of, and when.

Of those of which it reads partition 0: that partition has one reader, so each table has one who takes care of it. A
consumer that gets it says first that it takes it over: by then it has let the moments pass that its predecessor had.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from domain.moments import Moments
from domain.partitions import TopicPartition


@dataclass(frozen=True, slots=True)
class Turn:
    """A moment has come."""

    topics: tuple[str, ...]
    """Whose tables it is the turn of, one after the other."""
    reason: str | None = None
    """Why it is of none."""


@dataclass(slots=True)
class Rounds:
    """The moments at which tables are taken care of."""

    moments: Moments
    looked_at: float
    """When it was looked last whether one has come, in seconds since the epoch."""

    def turn(self, at: float, reads: Iterable[TopicPartition], *, under_way: bool = False) -> Turn | None:
        """Whose turn it is, if a moment has come since it was looked last; several that have come are one.

        Args:
            at: in seconds since the epoch.
            reads: the partitions that the consumer reads, and is not just taking over.
            under_way: whether it still takes care of those of an earlier moment.
        """
        last = self.moments.last(at)
        has_come = last is not None and last > self.looked_at
        self.looked_at = max(at, self.looked_at)
        topics = tuple(sorted(partition.topic for partition in reads if partition.partition == 0)) if has_come else ()
        if topics and under_way:
            return Turn((), "the care before is still under way")
        return Turn(topics) if topics else None
