"""Who may act, from what is seen of the Lease: decisions alone, without a clock or a client.

Invariant: of two candidates whose clocks run equally fast, at most one holds the Lease at a time. A holder counts its
time from the moment at which it *sent* the renewal that was accepted; a candidate counts the same time from the moment
at which it *saw* that renewal, which is later, and starts again whenever it could not look. No wall clock is compared.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Record:
    """The Lease as it was read. `version` changes with every write."""

    holder: str
    """Empty where it was given back."""
    version: str
    lease_s: float
    """What its holder counts with."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What a candidate knows of the Lease."""

    record: Record | None = None
    """As it was seen last; None before the first look, and where there is no Lease."""
    since: float | None = None
    """When this version was seen first (s, monotonic), without a failed look since; None after one."""

    def saw(self, record: Record | None, at: float) -> "Watched":
        """After a look at that moment."""
        if self.since is not None and record == self.record:
            return self
        return Watched(record, at)

    def could_not_look(self) -> "Watched":
        """After a look that failed: the holder may have been as unable to renew the Lease, and is given its time."""
        return Watched(self.record, None)

    def may_take(self, me: str, at: float) -> bool:
        """Whether the candidate `me` may write it now, on the condition that it is still this version."""
        if self.since is None:
            return False
        return self.record is None or self.record.holder in ("", me) or at - self.since >= self.record.lease_s


def holds_until(renewal_sent_at: float, lease_s: float) -> float:
    """Up to when the holder may act: the last third is left for requests of its own that are still on their way."""
    return renewal_sent_at + lease_s * 2 / 3
