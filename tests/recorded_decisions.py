"""Whether `kcga plan`, asked just before each decision of a run that the topics hold, would have told it.

When the controller received a message, and when it put its question to the solver, no topic says: it was within moments
of when the brokers had the message, and of when the decision was published less the solver's time. So all these moments
are asked at; and because it depends on moments, too, what has left a window of the highest speeds, it is tried again as
if each message had been received a little later than the brokers had it.
"""

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from copy import deepcopy
from math import inf
from operator import itemgetter
from random import Random

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

JUST_BEFORE_S = 5.0
RECEIVED_LATER_S = (0.0, *[0.1] * 5, *[0.4] * 10, *[1.5] * 15)
"""Each is a trial, in which every message is late by chance, and at most by so much."""

TOLD = ("triggers", "grounds", "carried_out", "held_back", "capacity", "packing_capacity", "lost", "plan", "assignment")
"""The fields of a decision that are to be the same; the others are of its time, number and search."""


def not_foretold(settings: Settings) -> list[str]:
    """The decisions of all controllers that nobody could have been told before, and what else was told.

    Raises:
        KcgaError: the cluster does not answer.
    """
    return not_foretold_of(settings.controller, on_topics(settings))


def not_foretold_of(settings: ControllerSettings, came: Sequence[tuple[float, Message]]) -> list[str]:
    """The same of messages, each with when the brokers had it."""
    epochs = sorted({message.epoch for _, message in came if isinstance(message, Decision)})
    return [fault for epoch in epochs for fault in _not_foretold_in(epoch, settings, came)]


def _not_foretold_in(epoch: int, settings: ControllerSettings, came: Sequence[tuple[float, Message]]) -> list[str]:
    last = max(at for at, message in came if isinstance(message, Decision) and message.epoch == epoch)
    came = [each for each in came if each[0] <= last]
    nearest: dict[int, dict[str, object]] = {}
    """Where, in the last trial, what was told and what was decided differ least; by the numbers of the decisions."""
    for trial, most_s in enumerate(RECEIVED_LATER_S):
        chance = Random(trial)
        heard = [(at + (0.0 if isinstance(said, Decision) else chance.uniform(0, most_s)), said) for at, said in came]
        for decision, moments in _moments(settings, epoch, heard):
            if nearest.get(decision.number) != {}:
                told = (deepcopy(onlooker).decide(at, solve) for at, onlooker in moments)
                known = nearest.get(decision.number, {"decision": "none was told"})
                nearest[decision.number] = min((_different(each, decision) for each in told), key=len, default=known)
        if not any(nearest.values()):
            break
    return [f"decision {number} of epoch {epoch}: {differs}" for number, differs in nearest.items() if differs]


def on_topics(settings: Settings) -> list[tuple[float, Message]]:
    """All messages that a controller hears or sends, with when the brokers had them."""
    topics, group = settings.topics, settings.kafka.group
    with tail(settings) as reader:
        metadata = reader.since(topics.metadata, 0.0, CONTROLLER_PARTITION)
        came: list[tuple[float, Message]] = [(record.at, decode_to_controller(record.value)) for record in metadata]
        came += [(record.at, WriteSpeedReport.decode(record.value)) for record in reader.since(topics.write_speed, 0.0)]
        came += valid(reader.since(topics.decisions, 0.0), group)
    return sorted(came, key=itemgetter(0))


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
