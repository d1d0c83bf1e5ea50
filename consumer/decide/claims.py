"""Who may still write records of a partition, and where its reading goes on.

Before a process reads a partition it claims it: it commits the position that it begins at, with its own name as the
note, and so with every commit that follows, until it releases the partition by a commit without a name. A claim thus
outlives the process, and a controller that forgot it: whoever reads the partition next finds in the commit itself who
has to be sealed first.

Every such commit is made after the rows before it were written, so it is never ahead of the lake, and the lake is ahead
of it by what the writer had not committed when it ended. A commit that is none of kcga's (set by hand, or by what read
the topic before) tells only where to begin a partition of which the lake has no row.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from consumer.decide.reached import Reached, later
from consumer.decide.spans import Span, look_backs
from domain.messages import writer as writer

_MARK = "kcga:"
"""What the notes of kcga's commits begin with."""

RELEASED = _MARK
"""The note of a position that nobody claims."""


@dataclass(frozen=True, slots=True)
class Committed:
    """What the group has committed of a partition."""

    offset: int
    """Where reading goes on."""
    note: str = RELEASED
    epoch: int | None = None
    """Of the leader that took the record before; none if unknown."""

    @property
    def reached(self) -> Reached:
        """How far the partition is read."""
        return Reached(self.offset, self.epoch)

    @property
    def own(self) -> bool:
        """Whether kcga committed it, and so after the rows before it were in the lake."""
        return self.note.startswith(_MARK)

    @property
    def claimant(self) -> str | None:
        """The writer that claims the partition."""
        return (self.note.removeprefix(_MARK) or None) if self.own else None


def claim(writer: str) -> str:
    """The note by which `writer` claims a partition."""
    return f"{_MARK}{writer}"


def to_seal(own: str, told: Iterable[str], committed: Iterable[Committed | None]) -> tuple[str, ...]:
    """The writers to seal before partitions with these commits are read, in ascending order.

    Args:
        own: who is going to read them: it need not be sealed.
        told: whom the start commands name.
        committed: of each partition; none where nothing is. Notes that are no claims are somebody else's.
    """
    claimants = {position.claimant for position in committed if position is not None and position.claimant}
    return tuple(sorted((claimants | set(told)) - {own}))


def where_to_look(committed: Committed | None, end: int) -> tuple[Span, ...]:
    """Among which offsets the lake's last row of a partition is: in the first of these spans that has any.

    Nowhere, where the partition was released, as who does that has committed all that it wrote; or where all records
    that there are lie below the commit.

    Args:
        committed: by the group, read after all former writers were sealed.
        end: of the partition in Kafka, read after that too: nothing at or above it can have been written.
    """
    if committed is None or not committed.own:
        return look_backs(end)
    if committed.claimant is None or committed.offset >= end:
        return ()
    return (Span(max(committed.offset - 1, 0), end),)


def next_position(last_in_lake: Reached | None, committed: Committed | None) -> Reached | None:
    """Where reading goes on; none for the beginning of the partition.

    Args:
        last_in_lake: the last of the rows that were looked at; none if there is none.
        committed: what told where to look for them.
    """
    if last_in_lake is None:
        return None if committed is None else committed.reached
    if committed is None or not committed.own:
        return last_in_lake.next
    return later(last_in_lake.next, committed.reached)
