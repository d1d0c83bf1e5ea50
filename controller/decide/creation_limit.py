"""How many consumers are planned for after one could not be created.

A quota, an image that cannot be had, or a cluster without room lets no more consumers be than there are. A plan that
asks for just as many again would promise partitions to consumers that never come, over and over. So for a while no plan
has more consumers than could be created; then one may try again.
"""

from domain.assignment import ConsumerId
from domain.messages import CreationLimit


def after_failure(
    before: CreationLimit | None, at: float, consumer: ConsumerId, *, others: int, retry_s: float
) -> CreationLimit:
    """The limit once a creation has failed.

    Args:
        before: the limit that held until now, if any.
        at: now, in seconds since the epoch.
        consumer: which one could not be created.
        others: how many consumers are counted on without it; may be 0.
        retry_s: how long no more are tried.
    """
    most = others if before is None else min(before.most, others)
    return CreationLimit(most=most, failed_at=at, consumer=consumer, until=at + retry_s)


def told_later(limit: CreationLimit, seconds: float) -> CreationLimit:
    """The same by a clock that is so far ahead of the one that it was told by."""
    return limit.model_copy(update={"failed_at": limit.failed_at + seconds, "until": limit.until + seconds})


def limit_sentence(limit: CreationLimit, at: float) -> str:
    """Why there is a limit at that moment, and for how long, in words."""
    return (
        f"consumer {limit.consumer} could not be created {at - limit.failed_at:,.0f} s ago, and more are tried in "
        f"{limit.until - at:,.0f} s"
    )
