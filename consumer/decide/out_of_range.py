"""Decides where reading goes on when the log does not hold the position it had come to.

Retention may delete records before they are read; a leader that lacked the newest records, or a topic that was made
anew, leaves a log that was cut off before what was read, and may have grown beyond it again since. Invariant: reading
never goes back to a record that was read before, only to others that have its offset by now; so nothing is doubled.
What nobody can read any more is told.
"""

import re
from dataclasses import dataclass
from typing import Literal

from consumer.decide.reached import Reached
from domain.partitions import OffsetRange, TopicPartition

BeyondEnd = Literal["continue", "hold"]

_CUT_AT = re.compile(r"broker end offset is (\d+) \(offset leader epoch (\d+)\)")
"""How the client words what the leader answered when it was asked how far the epoch goes that was read last."""


@dataclass(frozen=True, slots=True)
class PassedOver:
    """Offsets from `first` to before `end` whose records the log does not have any more."""

    partition: TopicPartition
    first: int
    end: int
    were_read: bool
    """Whether they had been read: the log was cut off before them; else they were deleted unread."""

    @property
    def lost(self) -> int:
        """So many offsets nobody has read."""
        return 0 if self.were_read else self.end - self.first

    def __str__(self) -> str:
        offsets = f"{self.partition}: offsets {self.first} to {self.end - 1}"
        if self.were_read:
            return f"{offsets} were read and are no more in the log, which was cut off there: goes on at {self.first}"
        return f"{offsets} were deleted before they were read: goes on at the log's beginning, {self.end}"


def cut_at(error: str) -> Reached | None:
    """Where the log was cut off, if this error of the client tells it: up to there it is the one that was read."""
    told = _CUT_AT.search(error)
    return Reached(int(told[1]), int(told[2])) if told else None


def go_on(
    partition: TopicPartition, position: Reached, held: OffsetRange, cut: Reached | None, beyond_end: BeyondEnd
) -> tuple[Reached | None, PassedOver | None]:
    """Where reading of the partition goes on, none if it does not; and what is passed over, none if nothing is.

    Where the log was cut off and nobody tells where, it is taken to be at its end. What it has before that is not read,
    since it may have been read before.

    Args:
        partition: which one.
        position: what was to be read next.
        held: what the log holds.
        cut: where the log was cut off, if that is known.
        beyond_end: what to do where that is before the position.
    """
    if cut is None and position.offset < held.start:
        return Reached(held.start), PassedOver(partition, position.offset, held.start, were_read=False)
    goes_on = Reached(min(position.offset, held.end)) if cut is None else cut
    if goes_on.offset >= position.offset:
        return position._replace(epoch=goes_on.epoch), None
    if beyond_end == "hold":
        return None, None
    return goes_on, PassedOver(partition, goes_on.offset, position.offset, were_read=True)
