"""Finds a decision on `controller.decisions`, from its end backwards: the topic may hold a month of them."""

from collections.abc import Iterable, Iterator
from itertools import islice

from app.errors import KcgaError
from app.settings import Settings
from app.tail import Arrived, tail
from domain.group_view.foresight import came, due_at
from domain.messages import Decision, MessageError, WriteSpeedReport


def find_decision(settings: Settings, number: int | None = None, epoch: int | None = None) -> Decision:
    """The decision of that number that the controller of that epoch made; the newest where they are None.

    Raises:
        KcgaError: the cluster does not answer, or there is no such decision.
    """
    topic = settings.topics.decisions
    with tail(settings) as reader:
        found = pick(_of_group(settings, reader.newest_first(topic)), number, epoch)
    if found is None:
        which = "no decision" if number is None else f"no decision {number}"
        of = "" if epoch is None else f" of epoch {epoch}"
        hint = "; of an earlier controller? name its --epoch" if number is not None and epoch is None else ""
        raise KcgaError(f"there is {which}{of} on {topic} at {settings.kafka.bootstrap_servers}{hint}")
    return found


def how_it_came(settings: Settings, decision: Decision) -> float | None:
    """How fast the partitions that the decision had grow were written in the end, in bytes/s, if that is told still.

    Raises:
        KcgaError: the cluster does not answer.
    """
    due = due_at(decision)
    if due is None:
        return None
    with tail(settings) as reader:
        for record in reader.since(settings.topics.write_speed, decision.decided_at):
            try:
                report = WriteSpeedReport.decode(record.value)
            except MessageError:
                continue
            if report.is_of(settings.kafka.group) and report.measured_at >= due:
                return came(decision, report)
    return None


def newest_decisions(settings: Settings, most: int) -> list[Decision]:
    """The newest decisions, the newest first; at most so many.

    Raises:
        KcgaError: the cluster does not answer.
    """
    with tail(settings) as reader:
        return list(islice(_of_group(settings, reader.newest_first(settings.topics.decisions)), most))


def _of_group(settings: Settings, records: Iterable[Arrived]) -> Iterator[Decision]:
    return (decision for _, decision in valid(records, settings.kafka.group))


def valid(records: Iterable[Arrived], group: str) -> Iterator[tuple[float, Decision]]:
    """The group's decisions among them, with when they came; what is none is left aside."""
    for record in records:
        try:
            decision = Decision.decode(record.value)
        except MessageError:
            continue
        if decision.is_of(group):
            yield record.at, decision


def pick(newest_first: Iterable[Decision], number: int | None, epoch: int | None) -> Decision | None:
    """The decision that `find_decision` is to find, looking no further than needed.

    Args:
        newest_first: the decisions in descending order of epoch and number; one may come twice.
        number: of the decision; None for the highest.
        epoch: of its controller; None for the highest.
    """
    for decision in newest_first:
        if epoch is None:
            epoch = decision.epoch
        if decision.epoch > epoch:
            continue
        if decision.epoch < epoch or (number is not None and decision.number < number):
            return None
        if number is None or decision.number == number:
            return decision
    return None
