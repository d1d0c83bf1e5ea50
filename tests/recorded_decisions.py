"""Whether `kcga plan`, asked just before each decision of a run that the topics hold, would have told it.

When the controller received a message, and when it put its question to the solver, no topic says to the moment. A claim
says up to where it had heard when it was sent, and a decision which speeds were the newest when the question was put:
a controller that was frozen hears much later, and in another order than the brokers had the messages. All moments
between are asked at; and because it depends on moments, too, what has left a window of the highest speeds, it is tried
again as if each message had been received a little later.
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from copy import deepcopy
from itertools import starmap
from math import inf
from operator import attrgetter, itemgetter
from random import Random
from typing import NamedTuple

from app.decisions import valid
from app.settings import Settings
from app.tail import tail
from cli.live.decide.onlooker import Onlooker
from controller.settings import ControllerSettings
from domain.assignment import ConsumerId
from domain.messages import ControllerClaim, Decision, MessageToController, WriteSpeedReport, decode_to_controller
from domain.topics import CONTROLLER_PARTITION
from solver import solve

Message = MessageToController | Decision | WriteSpeedReport


class Came(NamedTuple):
    """A message that a controller hears or sends."""

    at: float
    """When the brokers had it."""
    message: Message
    offset: int = 0
    """On the topic that it is of."""


JUST_BEFORE_S = 5.0
INSTANT_S = 1e-6
RECEIVED_LATER_S = (0.0, *[0.1] * 5, *[0.4] * 10, *[1.5] * 15)
"""Each is a trial, in which every message is late by chance, and at most by so much."""

TOLD = ("triggers", "grounds", "carried_out", "held_back", "capacity", "packing_capacity", "lost", "plan", "assignment")
"""The fields of a decision that are to be the same; the others are of its time, number and search."""


def not_foretold(settings: Settings) -> list[str]:
    """The decisions of all controllers that nobody could have been told before, and what else was told.

    Raises:
        KcgaError: the cluster does not answer.
    """
    return not_foretold_of(settings.of_controller, on_topics(settings))


def not_foretold_of(settings: ControllerSettings, came: Sequence[Came]) -> list[str]:
    """The same of messages."""
    epochs = sorted({each.message.epoch for each in came if isinstance(each.message, Decision)})
    return [fault for epoch in epochs for fault in _not_foretold_in(epoch, settings, came)]


def _not_foretold_in(epoch: int, settings: ControllerSettings, came: Sequence[Came]) -> list[str]:
    last = max(each.at for each in came if isinstance(each.message, Decision) and each.message.epoch == epoch)
    came = [each for each in came if each.at <= last]
    between = _heard_between(epoch, came)
    nearest: dict[int, dict[str, object]] = {}
    """Where, in the last trial, what was told and what was decided differ least; by the numbers of the decisions."""
    for trial, most_s in enumerate(RECEIVED_LATER_S):
        chance = Random(trial)
        late = (each.at + chance.uniform(0, most_s) for each in came)
        heard = [
            (min(max(at, earliest), max(latest, each.at)), each.message)
            for at, each, (earliest, latest) in zip(late, came, between, strict=True)
        ]
        for decision, moments in _moments(settings, epoch, sorted(heard, key=itemgetter(0))):
            if nearest.get(decision.number) != {}:
                told = (deepcopy(onlooker).decide(at, solve) for at, onlooker in moments)
                known = nearest.get(decision.number, {"decision": "none was told"})
                nearest[decision.number] = min((_different(each, decision) for each in told), key=len, default=known)
        if not any(nearest.values()):
            break
    return [f"decision {number} of epoch {epoch}: {differs}" for number, differs in nearest.items() if differs]


def _heard_between(epoch: int, came: Sequence[Came]) -> list[tuple[float, float]]:
    """The first and the last moment at which the controller of the epoch can have heard each of them.

    Decisions, and what the controller says of itself, it knew when it said it.
    """
    sent: dict[int, tuple[int, float]] = {}
    asked: dict[int, tuple[float, float]] = {}
    ahead = inf
    """The brokers' clock, of the controller's."""
    for at, message, _ in came:
        match message:
            case ControllerClaim(epoch=of, heard_to=int(heard_to)) if of == epoch:
                sent[message.sequence] = heard_to, message.sent_at
                ahead = min(ahead, at - message.sent_at)
            case Decision(epoch=of, measured_at=float(measured_at)) if of == epoch:
                asked[message.number] = measured_at, message.decided_at - message.solve_s
            case _:
                pass
    claims = [(heard_to, at + ahead) for _, (heard_to, at) in sorted(sent.items())]
    questions = [(measured_at, at + ahead) for _, (measured_at, at) in sorted(asked.items())]
    return [_between(each, epoch, claims, questions) for each in came]


def _between(
    each: Came, epoch: int, claims: Sequence[tuple[int, float]], questions: Sequence[tuple[float, float]]
) -> tuple[float, float]:
    """
    Args:
        each: what was heard.
        epoch: of the controller.
        claims: before which offset it had heard everything, and when it said so.
        questions: of when the newest speeds were that it knew, and when it asked.
    """
    match each.message:
        case Decision():
            return each.at, each.at
        case ControllerClaim(epoch=of) if of == epoch:
            return each.at, each.at
        case WriteSpeedReport(measured_at=measured_at):
            place = bisect_left(questions, measured_at, key=itemgetter(0))
            known: Sequence[tuple[float, float]] = questions
        case _:
            place, known = bisect_right(claims, each.offset, key=itemgetter(0)), claims
    earliest = known[place - 1][1] + INSTANT_S if place else -inf
    latest = known[place][1] - INSTANT_S if place < len(known) else inf
    return earliest, latest


def on_topics(settings: Settings) -> list[Came]:
    """All messages that a controller hears or sends."""
    topics, group = settings.topics, settings.kafka.group
    with tail(settings) as reader:
        metadata = reader.since(topics.metadata, 0.0, CONTROLLER_PARTITION)
        came = [Came(record.at, decode_to_controller(record.value), record.offset) for record in metadata]
        speeds = reader.since(topics.write_speed, 0.0)
        came += [Came(record.at, WriteSpeedReport.decode(record.value), record.offset) for record in speeds]
        came += starmap(Came, valid(reader.since(topics.decisions, 0.0), group))
    return sorted(came, key=attrgetter("at"))


def _moments(
    settings: ControllerSettings, epoch: int, heard: Sequence[tuple[float, Message]]
) -> Iterator[tuple[Decision, Sequence[tuple[float, Onlooker]]]]:
    """Each decision of the epoch, and who could have been asked just before it.

    A process that ends the controller sees before it says so, in the decision itself: somebody is told of it.
    """
    claims = ((at, said) for at, said in heard if isinstance(said, ControllerClaim) and said.epoch == epoch)
    began_at = min((said.standing.began_at + at - said.sent_at for at, said in claims if said.standing), default=-inf)
    onlooker = Onlooker(settings, epoch, began_at)
    recent: deque[tuple[float, Onlooker]] = deque()
    newest: ControllerClaim | None = None
    for at, message in heard:
        recent.append((at, deepcopy(onlooker)))
        if (
            isinstance(message, ControllerClaim)
            and message.epoch == epoch
            and (newest is None or message.sequence > newest.sequence)
        ):
            newest = message
        if isinstance(message, Decision) and message.epoch == epoch:
            if newest is not None and message.lost:
                told = deepcopy(onlooker)
                told.take(at, _without(newest, at, message.lost))
                recent.append((at, told))
            asked_from = at - message.solve_s - JUST_BEFORE_S
            yield message, [moment for moment in recent if moment[0] >= asked_from]
        while recent[0][0] < at - settings.time_limit_s - JUST_BEFORE_S:
            recent.popleft()
        onlooker.take(at, message)


def _without(claim: ControllerClaim, at: float, lost: Collection[ConsumerId]) -> ControllerClaim:
    """What the controller would have claimed then, had it said that these consumers are gone."""
    standing = claim.standing
    if standing is not None:
        left = tuple(consumer for consumer in standing.counted_on if consumer not in lost)
        standing = standing.model_copy(update={"counted_on": left})
    said_next = {"sequence": claim.sequence + 1, "sent_at": at, "standing": standing, "creation_limit": None}
    return claim.model_copy(update=said_next)


def _different(told: Decision | None, made: Decision) -> dict[str, object]:
    if told is None:
        return dict.fromkeys(TOLD)
    return {
        name: (getattr(told, name), getattr(made, name)) for name in TOLD if getattr(told, name) != getattr(made, name)
    }
