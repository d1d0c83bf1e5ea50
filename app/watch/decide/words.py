"""What is to be said of a group that is watched, in sentences. Pure: the same moment gives the same sentences."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from app import figures
from app.watch.decide.saving import HOUR_S
from app.watch.decide.watcher import CapacityFrom, Moment
from domain.assignment import ConsumerId
from domain.messages import Decision, Restraint

WEEK_S = 7 * 24 * HOUR_S
SHOWN = 5
"""So many of a kind are named."""


def account(moment: Moment) -> Iterator[str]:
    """All there is to say."""
    at = f"{datetime.fromtimestamp(moment.at, UTC):%H:%M:%S} UTC"
    written, lag = figures.speed(moment.written), figures.lag(moment.lag, moment.lag_s)
    yield f"{at}  {moment.group}: {figures.plural(moment.consumers, 'consumer')}, {written} written, lag {lag}"
    yield from (
        f"  {sentence}"
        for sentence in (advice(moment), *capacity(moment), *remarks(moment), *rebalances(moment), *saving(moment))
    )


def advice(moment: Moment) -> str:
    """What kcga would do."""
    decision = moment.decision
    if decision is None:
        if moment.state is None:
            return "no advice: who is in the group is not known just now"
        if not moment.settled:
            return f"no advice while a rebalance is under way (the group is {moment.state})"
        if moment.capacity_from is CapacityFrom.UNKNOWN:
            return (
                "no advice: what a consumer reads at most is not known, since no member was seen to lag for a minute; "
                "give --capacity, or wait"
            )
        return "no advice: no write speeds are known just now, or not yet"
    consumers = figures.plural(decision.plan.consumers, "consumer")
    same = decision.plan.consumers == moment.consumers
    change = f"keep {consumers}" if same else f"go from {moment.consumers:,} to {consumers}"
    plan = f"{change}{_of_classes(decision)}, and move {figures.plural(decision.migrations, 'partition')}"
    if decision.carried_out:
        return f"kcga would now {plan}: {decision.reason}"
    if any(each.by is Restraint.NOT_BETTER for each in decision.held_back):
        return f"kcga would leave everything as it is: {decision.reason}"
    return f"kcga would {plan}, and waits: {decision.reason}"


def capacity(moment: Moment) -> Iterator[str]:
    """What advice rests on, where that was not given."""
    if moment.capacity_from is CapacityFrom.ESTIMATE:
        seen = figures.speed(moment.capacity)
        yield f"by an estimate: {seen} is the most that a member was seen to read while it lagged"


def _of_classes(decision: Decision) -> str:
    """Of which classes a plan's consumers are, and what they cost, where there are any but ordinary ones."""
    if decision.plan.price is None:
        return ""
    of = ", ".join(f"{len(consumers):,} {name}" for name, consumers in decision.classes.items())
    before = "" if decision.price_before is None else f" in place of {decision.price_before:.2f}"
    return f"{f' ({of})' if of else ''} at a price of {decision.plan.price:.2f}{before}"


def remarks(moment: Moment) -> Iterator[str]:
    """What is not as it should be, the worst first."""
    yield from moment.troubles
    shares = {member.consumer: member.share for member in moment.members}
    if moment.overloaded:
        shown = _listed([f"{shares[consumer]:.0%}" for consumer in moment.overloaded])
        idle = f", while {_named(moment.idle)} next to nothing" if moment.idle else ""
        yield f"{_named(moment.overloaded)} {shown} of a consumer's capacity to read{idle}"
    elif moment.idle and moment.settled:
        yield f"{_named(moment.idle)} next to nothing to read"
    if moment.unread and moment.settled:
        names = [f"{each.topic}-{each.partition}" for each in moment.unread]
        yield f"{figures.plural(len(names), 'partition')} without a reader: {_listed(names)}"
    for each in moment.decision.saturated if moment.decision else ():
        needed = figures.plural(each.partitions_needed, "partition")
        than = "any consumer" if moment.classes else "a consumer"
        yield f"{each.key} is faster than {than}: {each.topic} would need {needed}"
    if moment.unwatched:
        yield f"the group reads {_listed(moment.unwatched)}, too, which is not measured: begin the watch anew"


def rebalances(moment: Moment) -> Iterator[str]:
    """What rebalances there were, and what they cost."""
    if not moment.rebalances:
        return
    seen = f"{figures.plural(moment.rebalances_seen, 'rebalance')} since the watch began"
    last = moment.rebalances[-1]
    if last.ended_at is None:
        yield f"{seen}; one is under way since {moment.at - last.began_at:,.0f} s"
    else:
        moved = figures.plural(last.moved, "partition")
        yield f"{seen}; the last took {last.ended_at - last.began_at:,.0f} s, and gave {moved} to another member"
    unassigned_s = sum(each.unassigned_s for each in moment.rebalances)
    known = [each.standstill_s for each in moment.rebalances if each.standstill_s is not None]
    stood = f"; commits stood still for {sum(known):,.0f} partition-seconds longer than usual" if known else ""
    yield f"for {unassigned_s:,.0f} partition-seconds partitions had no reader{stood}"


def saving(moment: Moment) -> Iterator[str]:
    """What kcga would have saved so far, and in a week like this."""
    saved = moment.saving
    if saved is None:
        return
    by_price = " (each consumer counts as its price)" if moment.classes else ""
    own, other = saved.consumer_hours, saved.consumer_hours_with_kcga
    share = f", {1 - other / own:.0%} fewer" if own > other else f", {other / own - 1:.0%} more" if own else ""
    yield f"in {figures.clock(saved.seconds)}: {own:,.2f} consumer-hours, {other:,.2f} with kcga{share}{by_price}"
    waited = f"{saved.waited_s:,.1f} s on average, {saved.waited_s_with_kcga:,.1f} s with kcga"
    yield f"for want of capacity or of a reader records waited {waited}"
    weeks = WEEK_S / saved.seconds
    yield f"a week like this: {weeks * own:,.0f} consumer-hours, {weeks * other:,.0f} with kcga"


def _named(consumers: Sequence[ConsumerId]) -> str:
    one = len(consumers) == 1
    return f"{'consumer' if one else 'consumers'} {_listed(list(map(str, consumers)))} {'has' if one else 'have'}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"
