"""When what is left of a load that has ended is read, or nobody reads it any more."""

from collections.abc import Hashable, Iterable

NO_PROGRESS_S = 120.0
"""After a fault a group begins to read again well within it, on a busy machine too."""
LAG_SETTLES_S = 2.5
"""What the monitor tells so long after the last record counts that record in."""


class Drain:
    """Follows the lag of a group from the end of its load on.

    Args:
        ended_at: when that was, in seconds since the epoch.
    """

    def __init__(self, ended_at: float) -> None:
        self._ended_at = self._changed_at = ended_at
        self._lag: int | None = None
        self._came: set[Hashable] = set()

    def is_over(
        self, at: float, lag: int | None, told_at: float | None, came: Iterable[Hashable] = frozenset()
    ) -> bool:
        """Whether nothing is left, or nothing has come of it for `NO_PROGRESS_S`.

        The lag grows, too, while a group comes back after a fault: of a partition it is known once that has a reader.
        And a group that has only begun has no lag before its first reader has come, and has written something.

        Args:
            at: now, in seconds since the epoch.
            lag: in records, of the partitions of which it is known; None where of none.
            told_at: when the newest lag was told; None where none was.
            came: consumers, and partitions that they read: one that was not seen before is progress, as often as there
                are of them.
        """
        if lag is not None and lag != self._lag:
            self._lag, self._changed_at = lag, at
        if new := set(came) - self._came:
            self._came |= new
            self._changed_at = at
        settled = lag == 0 and told_at is not None and told_at > self._ended_at + LAG_SETTLES_S
        return settled or at >= self._changed_at + NO_PROGRESS_S
