"""How far a partition is read, in the log that it was read from.

An offset alone does not say that: where a leader was elected that lacked the newest records, others have their offsets
by now. Every leader has an epoch, which is higher than those before it, and every record that of the leader which took
it. Of two records that were read the one with the higher epoch was read later, whichever offset is higher.
"""

from typing import NamedTuple


class Reached(NamedTuple):
    """A place in the log of a partition."""

    offset: int
    epoch: int | None = None
    """Of the leader that took the last record up to there; none if unknown."""

    @property
    def next(self) -> "Reached":
        """Where reading goes on after the record here."""
        return Reached(self.offset + 1, self.epoch)


def later(first: Reached, second: Reached) -> Reached:
    """Which of them was reached later: by the epochs, and by the offsets where these are the same or not known."""
    if first.epoch is None or second.epoch is None or first.epoch == second.epoch:
        return max(first, second, key=lambda reached: reached.offset)
    return max(first, second, key=lambda reached: reached.epoch or 0)
