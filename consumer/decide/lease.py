"""For how long a consumer may believe that it is still the reader of what it holds.

The controller gives a consumer's partitions to others when it has not heard from it for some time. The consumer knows
what the controller can know: a report that the brokers acknowledged was there no earlier than it was sent. So its lease
runs from the moment at which the newest acknowledged report was sent, and a consumer that was frozen, or cut off from
the brokers, finds out by its own clock, however long it slept.

Invariant: a lease that has run out is never renewed, also not by a report that is acknowledged afterwards.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Lease:
    """All moments are seconds on one monotonic clock."""

    length_s: float
    runs_from: float
    """When the newest report that counts was sent; at the beginning, the first one."""

    def over(self, now: float) -> bool:
        """Whether it has run out."""
        return now >= self.runs_from + self.length_s

    def renewed(self, sent_at: float, now: float) -> "Lease":
        """The lease once it is known, now, that a report which was sent at `sent_at` has been acknowledged."""
        if self.over(now) or sent_at <= self.runs_from:
            return self
        return replace(self, runs_from=sent_at)
