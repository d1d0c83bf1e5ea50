"""A decision in words. Pure: the same record always gives the same lines."""

from collections.abc import Iterator
from datetime import UTC, datetime

from domain.group_view.foresight import foreseen, held
from domain.messages import Decision, DecisionKind, PlanFigures, PlannedPartition


def explain(decision: Decision, came: float | None = None) -> Iterator[str]:
    """What was decided, why it was considered, why it is as it is, and what moves; a line each.

    Args:
        decision: the record.
        came: how fast the partitions that were to grow were written in the end, in bytes/s, if that is known.
    """
    yield f"Decision {decision.number} of epoch {decision.epoch}, {_moment(decision.decided_at)}: {_outcome(decision)}."
    yield from _section("Why it was considered:", decision.triggers)
    yield _grounds(decision)
    yield from (f"  - {sentence}" for sentence in decision.not_keepable)
    yield from _backlog(decision)
    yield from _foreseen(decision, came)
    yield from _costs(decision)
    if not decision.carried_out:
        held_back = [f"{each.by.value}: {each.why}" for each in decision.held_back]
        yield from _section("Why it is not carried out:", held_back or [decision.reason])
    yield from _section("Of its consumers are:", _classes(decision))
    yield from _moves(decision)
    yield from _section("What has no reader, because its table takes nothing:", _parked(decision))
    yield from _section("What no plan can mend:", _alerts(decision))
    yield from _origin(decision)


def _outcome(decision: Decision) -> str:
    """What it comes to."""
    before, after = decision.found, decision.plan.consumers
    if not decision.carried_out:
        return "nothing is changed"
    if before == 0:
        return f"the group starts with {_plural(after, 'consumer')}"
    if after == before:
        return f"{_plural(after, 'consumer')} as before, with other partitions"
    return f"scaled {'up' if after > before else 'down'} from {before:,} to {_plural(after, 'consumer')}"


def _grounds(decision: Decision) -> str:
    match decision.grounds:
        case DecisionKind.FORCED:
            return f"It was forced: the assignment could not stay as it was, so the plan is for {_present(decision)}."
        case DecisionKind.MANUAL:
            return (
                f"An operator asked for it: the plan is for {_present(decision)}, and only missing data holds it back."
            )
        case DecisionKind.VOLUNTARY if decision.carried_out and decision.plan.consumers == 0:
            return "Nothing forced it: there is nothing to read, and the settings let nobody read then."
        case DecisionKind.VOLUNTARY:
            window = f" of the last {decision.window_s:g} s" if decision.window_s else ""
            return f"Nothing forced it: a cheaper assignment was looked for that fits the highest speeds{window}."
        case None:
            return "Its record does not say whether it was forced."


def _backlog(decision: Decision) -> Iterator[str]:
    """What of the load is to catch up; nothing where that is nothing."""
    backlog = sum(entry.backlog for entry in decision.assignment)
    if backlog >= 1 and decision.recovery_time_s is not None:
        load = sum(entry.speed for entry in decision.assignment)
        yield (
            f"Of the {load:,.0f} bytes/s that were planned with, {backlog:,.0f} are to drain within "
            f"{decision.recovery_time_s:g} s what the group is behind."
        )


def _present(decision: Decision) -> str:
    return "the present speeds and what is foreseen" if foreseen(decision) else "the present speeds"


def _foreseen(decision: Decision, came: float | None) -> Iterator[str]:
    """What of the load is not there yet, and what of it came."""
    growing, foresight = foreseen(decision), decision.foresight
    if foresight is None:
        return
    if growing:
        growth = sum(entry.foreseen for entry in growing)
        then = sum(entry.speed - entry.backlog for entry in growing)
        those = "one partition is" if len(growing) == 1 else f"{len(growing):,} partitions are"
        yield (
            f"Within {foresight.horizon_s:g} s {those} to grow by up to {growth:,.0f} bytes/s, to {then:,.0f}: "
            f"{held(foresight)}."
        )
        if came is not None:
            yield f"It came to {came:,.0f} bytes/s, which is {'no more' if came <= then else 'more'} than foreseen."


def _costs(decision: Decision) -> Iterator[str]:
    weight = "" if decision.migration_weight is None else f", at lambda {decision.migration_weight:g}"
    yield f"The plan costs {_cost(decision.plan)}{weight}."
    if decision.keeping is not None:
        yield f"Keeping everything would have cost {_cost(decision.keeping)}."
    else:
        yield "Keeping everything was no choice."


def _cost(figures: PlanFigures) -> str:
    price = "" if figures.price is None else f" at a price of {figures.price:.2f}"
    return f"{figures.objective:.2f} ({_plural(figures.consumers, 'consumer')}{price}, Rscore {figures.rscore:.2f})"


def _classes(decision: Decision) -> Iterator[str]:
    """Who is not ordinary."""
    for name, consumers in decision.classes.items():
        yield f"{name}: {', '.join(map(str, consumers))}"


def _moves(decision: Decision) -> Iterator[str]:
    """The partitions that another consumer gets, those that move first; each in ascending order."""
    moves = [entry for entry in decision.assignment if entry.previous not in (None, entry.consumer)]
    starts = [entry for entry in decision.assignment if entry.previous is None]
    would = "" if decision.carried_out else ", if it were carried out"
    yield from _section(f"What moves{would}:", [_move(entry, decision.capacity) for entry in moves])
    yield from _section(f"What gets a reader{would}:", [_move(entry, decision.capacity) for entry in starts])


def _move(entry: PlannedPartition, capacity: float | None) -> str:
    route = f"to consumer {entry.consumer}"
    if entry.previous is not None:
        route = f"from consumer {entry.previous} {route}"
    backlog = f", {entry.backlog:,.0f} of them to catch up" if entry.backlog >= 1 else ""
    backlog += f", {entry.foreseen:,.0f} of them foreseen" if entry.foreseen >= 1 else ""
    share = f", {entry.speed / capacity:.0%} of a consumer" if capacity else ""
    reason = f": {entry.reason}" if entry.reason else ""
    return f"{entry.key} {route} ({entry.speed:,.0f} bytes/s{backlog}{share}){reason}"


def _parked(decision: Decision) -> Iterator[str]:
    for topic, reason in decision.parked.items():
        yield f"{topic} is parked: {reason}; kcga unpark {topic} has it tried at once"


def _alerts(decision: Decision) -> Iterator[str]:
    for partition in decision.saturated:
        yield (
            f"{partition.key} is faster than a consumer ({partition.speed:,.0f} bytes/s): {partition.topic} would need "
            f"{_plural(partition.partitions_needed, 'partition')}"
        )
    if (shortfall := decision.shortfall) is not None:
        beyond = f"{shortfall.excess:,.0f} bytes/s above the consumers' capacities"
        if decision.capacity:
            beyond += f", {shortfall.excess / decision.capacity:.2f} consumers' worth"
        yield f"not all rules can be kept: {shortfall.reason} ({beyond})"


def _origin(decision: Decision) -> Iterator[str]:
    gap = "" if decision.gap is None else f", so it is at most {decision.gap:.2%} above the optimum"
    yield (
        f"The plan was found by {decision.engine} in {decision.solve_s:.2f} s ({decision.status}); no plan costs less "
        f"than {decision.lower_bound:.2f}{gap}."
    )
    if decision.measured_at is not None:
        yield f"The newest speeds that it rests on were measured at {_moment(decision.measured_at)}."


def _section(title: str, sentences: Iterator[str] | list[str] | tuple[str, ...]) -> Iterator[str]:
    """Nothing where there is nothing to say."""
    for place, sentence in enumerate(sentences):
        if place == 0:
            yield title
        yield f"  - {sentence}"


def _moment(at: float) -> str:
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{at:g} s after 1970 began"


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
