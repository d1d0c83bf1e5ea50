"""Decides where reading goes on when the log does not hold the position it had come to.

Retention may delete records before they are read; a leader that lacked the newest records, or a topic that was made
anew, leaves a log that is shorter than what was read. Invariant: reading never goes back to records that were read
before, so nothing is doubled; what nobody can read any more is told.
"""

from dataclasses import dataclass
from typing import Literal

from domain.partitions import OffsetRange, TopicPartition

BeyondEnd = Literal["continue", "hold"]


@dataclass(frozen=True, slots=True)
class PassedOver:
    """Offsets from `first` to before `end` of which the log has nothing any more."""

    partition: TopicPartition
    first: int
    end: int
    were_read: bool
    """Whether they had been read: the log is shorter than what was read; else they were deleted unread."""

    @property
    def lost(self) -> int:
        """So many offsets nobody has read."""
        return 0 if self.were_read else self.end - self.first

    def __str__(self) -> str:
        offsets = f"{self.partition}: offsets {self.first} to {self.end - 1}"
        if self.were_read:
            return f"{offsets} were read and are no more in the log, which is shorter: goes on at its end, {self.first}"
        return f"{offsets} were deleted before they were read: goes on at the log's beginning, {self.end}"


def go_on(
    partition: TopicPartition, position: int, held: OffsetRange, beyond_end: BeyondEnd
) -> tuple[int | None, PassedOver | None]:
    """Where reading of the partition goes on, none if it does not; and what is passed over, none if nothing is.

    Args:
        partition: which one.
        position: the offset that was to be read next.
        held: what the log holds.
        beyond_end: what to do where that is beyond the log's end.
    """
    if position < held.start:
        return held.start, PassedOver(partition, position, held.start, were_read=False)
    if position <= held.end:
        return position, None
    if beyond_end == "hold":
        return None, None
    return held.end, PassedOver(partition, held.end, position, were_read=True)
