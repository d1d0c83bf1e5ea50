"""How many consumers are planned for after one could not be created.

A quota, an image that cannot be had, or a cluster without room lets no more consumers be than there are. A plan that
asks for just as many again would promise partitions to consumers that never come, over and over. So for a while no plan
has more consumers than could be created; then one may try again.
"""

from dataclasses import dataclass
from typing import Self

from domain.assignment import ConsumerId


@dataclass(frozen=True, slots=True)
class CreationLimit:
    """What creations that failed have shown; times in seconds since the epoch."""

    most: int
    """So many consumers there were, or were still expected, when the last creation failed; may be 0."""
    failed_at: float
    consumer: ConsumerId
    """Whose creation it was."""
    until: float

    @classmethod
    def after_failure(
        cls, before: Self | None, at: float, consumer: ConsumerId, *, others: int, retry_s: float
    ) -> "CreationLimit":
        """The limit once a creation has failed.

        Args:
            before: the limit that held until now, if any.
            at: now.
            consumer: which one could not be created.
            others: how many consumers are counted on without it.
            retry_s: how long no more are tried.
        """
        most = others if before is None else min(before.most, others)
        return cls(most, at, consumer, at + retry_s)

    def why(self, at: float, planned: int) -> str:
        """The limit in words, at that moment, where `planned` consumers are what it came to."""
        return (
            f"no more than {planned} consumer{'s' * (planned != 1)}: consumer {self.consumer} could not be created "
            f"{at - self.failed_at:,.0f} s ago, and more are tried in {self.until - at:,.0f} s"
        )
