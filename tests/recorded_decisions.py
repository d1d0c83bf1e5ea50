"""Whether `kcga plan`, asked as each decision of a run was, would have told it, by what the topics hold of the run.

A decision says when its question was put, and up to where the controller had heard of either topic by then; its claims,
every two seconds, say the same of themselves. So what it knew is known exactly, and the moment at which it heard of
each message to between two of these. Because some of it depends on such moments, as which of two messages came first,
each decision is asked for several times, with other moments that are possible.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from copy import deepcopy
from enum import IntEnum
from itertools import product, starmap
from math import inf
from operator import attrgetter, itemgetter
from random import Random
from typing import NamedTuple

from app.decisions import valid
from app.settings import Settings
from app.tail import tail
from cli.live.decide.onlooker import Onlooker
from controller.decide.hearing import CLAIM_EVERY_S
from controller.settings import ControllerSettings
from domain.messages import ControllerClaim, Decision, MessageToController, WriteSpeedReport, decode_to_controller
from domain.topics import CONTROLLER_PARTITION
from solver import solve
from solver.problem import Problem
from solver.solution import Solution

Message = MessageToController | Decision | WriteSpeedReport


class Came(NamedTuple):
    """A message that a controller hears or sends."""

    at: float
    """When the brokers had it."""
    message: Message
    offset: int = 0
    """On the topic that it is of."""


TIME_LIMIT_S = 120
"""Of the solver, in a run whose decisions are asked for again: what it has when its time is up depends on what else the
machine does."""
INSTANT_S = 1e-6
RECEIVED_LATER_S = (0.0, *[0.1] * 5, *[0.4] * 10, *[1.5] * 15)
"""Each is two trials, in which every message is late by chance, and at most by so much."""
FROZEN_S = 2 * CLAIM_EVERY_S
"""A controller that said nothing for longer was frozen, or could not send: in one of the two, it heard at the end."""

TOLD = ("triggers", "grounds", "carried_out", "held_back", "capacity", "packing_capacity", "lost", "plan", "assignment")
"""The fields of a decision that are to be the same; the others are of its time, number and search."""
SEARCH = ("engine", "status", "solve_s")
"""Those that a fault says besides, where the plans differ: they tell whether a search ended at its limit."""


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


def on_topics(settings: Settings) -> list[Came]:
    """All messages that a controller hears or sends: all that its decisions rest on, also while it makes more."""
    topics, group = settings.topics, settings.kafka.group
    with tail(settings) as reader:
        decisions = list(starmap(Came, valid(reader.since(topics.decisions, 0.0), group)))  # before what they rest on
        metadata = reader.since(topics.metadata, 0.0, CONTROLLER_PARTITION)
        came = [Came(record.at, decode_to_controller(record.value), record.offset) for record in metadata]
        speeds = reader.since(topics.write_speed, 0.0)
        came += [Came(record.at, WriteSpeedReport.decode(record.value), record.offset) for record in speeds]
    return sorted([*came, *decisions], key=attrgetter("at"))


def _not_foretold_in(epoch: int, settings: ControllerSettings, came: Sequence[Came]) -> list[str]:
    heard = list(_by_its_clock(epoch, came))
    nearest: dict[int, dict[str, object]] = {}
    """In what, at the trial in which they differ least, what was told and what was decided differ; by number."""
    for trial, (most_s, freezes) in enumerate(product(RECEIVED_LATER_S, (True, False))):
        chance = Random(trial)
        late = (each.late_by(chance.uniform(0, most_s), FROZEN_S if freezes else inf) for each in heard)
        moments = sorted(late, key=itemgetter(0, 1))
        for decision, told in _told(settings, epoch, moments):
            known = nearest.get(decision.number, dict.fromkeys(TOLD))
            if known:
                nearest[decision.number] = min((known, *(_different(each, decision) for each in told)), key=len)
        if not any(nearest.values()):
            break
    return [f"decision {number} of epoch {epoch}: {differs}" for number, differs in nearest.items() if differs]


class What(IntEnum):
    HEARD = 0
    ASKED = 1
    """Before it claims, or after it: both are tried."""
    CLAIMED = 2
    DECIDED = 3


class Step(NamedTuple):
    """In which order things are done that have the same moment."""

    decisions: int
    """So many were made before it."""
    what: What


HEAR = Step(-1, What.HEARD)
Moment = tuple[float, Step, Message | int]
"""When the controller heard or said something, or asked for the decision of this number."""


class Heard(NamedTuple):
    """What the controller of an epoch heard, said or asked, by its own clock."""

    at: float
    """When the brokers had it; of what the controller did, when it did it."""
    step: Step
    message: Message | int
    earliest: float
    latest: float

    def late_by(self, seconds: float, frozen_s: float) -> Moment:
        """That much later, and at the last moment that is possible where there are more than `frozen_s` of them."""
        frozen = frozen_s < self.latest - self.earliest < inf
        then = self.latest if frozen else min(max(self.at + seconds, self.earliest), self.latest)
        return then, self.step, self.message


def _by_its_clock(epoch: int, came: Sequence[Came]) -> Iterator[Heard]:
    """Everything until the last decision of the epoch."""
    claims = [(at, said) for at, said, _ in came if isinstance(said, ControllerClaim) and said.epoch == epoch]
    decisions = {said.number: said for _, said, _ in came if isinstance(said, Decision) and said.epoch == epoch}
    known = [(claim.sent_at, claim.heard_to, claim.speeds_heard_to) for _, claim in claims]
    known += [
        (each.asked.at, each.asked.heard_to, each.asked.speeds_heard_to) for each in decisions.values() if each.asked
    ]
    metadata = sorted((heard_to or 0, at) for at, heard_to, _ in known)
    speeds = sorted((heard_to or 0, at) for at, _, heard_to in known)
    ahead_s = min(at - claim.sent_at for at, claim in claims)
    """The brokers' clock, of the controller's."""
    for _, claim in claims:
        yield _done(claim.sent_at, Step(claim.decisions or 0, What.CLAIMED), claim)
    for place, (number, decision) in enumerate(decisions.items()):
        assert decision.asked is not None
        asked_at = decision.asked.at
        made = place if asked_at == decision.decided_at else sum(d.decided_at <= asked_at for d in decisions.values())
        yield _done(asked_at, Step(made, What.ASKED), number)
        yield _done(decision.decided_at, Step(place, What.DECIDED), decision)
    last = max(decision.decided_at for decision in decisions.values())
    for at, message, offset in came:
        is_own = isinstance(message, ControllerClaim | Decision) and message.epoch == epoch
        if not is_own and at - ahead_s <= last:
            by = speeds if isinstance(message, WriteSpeedReport) else metadata
            between = (-inf, inf) if isinstance(message, Decision) else _between(offset, by)
            yield Heard(at - ahead_s, HEAR, message, *between)


def _done(at: float, step: Step, what: Message | int) -> Heard:
    """What a controller did itself: it says when."""
    return Heard(at, step, what, at, at)


def _between(offset: int, known: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """The first and the last moment at which the record at an offset can have been heard.

    Args:
        offset: on its topic.
        known: before which offset everything was heard, and when.
    """
    place = bisect_right(known, offset, key=itemgetter(0))
    earliest = known[place - 1][1] + INSTANT_S if place else -inf
    return earliest, known[place][1] if place < len(known) else inf


def _told(
    settings: ControllerSettings, epoch: int, moments: Sequence[Moment]
) -> Iterator[tuple[Decision, Iterator[Decision | None]]]:
    """Each decision of the epoch, and what is told to who asks as it was asked for."""
    claims = defaultdict[tuple[float, int], list[ControllerClaim]](list)
    for at, step, said in moments:
        if isinstance(said, ControllerClaim) and step.what is What.CLAIMED:
            claims[at, step.decisions].append(said)
    standings = (claim.standing for said_then in claims.values() for claim in said_then)
    began_at = next((standing.began_at for standing in standings if standing), -inf)
    onlooker = Onlooker(settings, epoch, began_at)
    asked: dict[int, list[tuple[float, Onlooker]]] = {}
    """Of each decision, by its number."""
    meanwhile: list[tuple[float, Message]] = []
    """What was heard and said since the newest question."""
    for at, step, message in moments:
        if isinstance(message, int):
            asked[message], meanwhile = [(at, deepcopy(onlooker))], []
            for claim in claims[at, step.decisions]:
                _, told = deepcopy(asked[message][-1])
                told.take(at, claim)
                asked[message].append((at, told))
            continue
        if isinstance(message, Decision) and message.epoch == epoch:
            yield message, _answers(asked.pop(message.number), meanwhile)
        meanwhile.append((at, message))
        onlooker.take(at, message)


def _answers(
    asked: Sequence[tuple[float, Onlooker]], meanwhile: Sequence[tuple[float, Message]]
) -> Iterator[Decision | None]:
    """What each of them is told; as it is asked, and as it is where all this comes before the solver's answer."""
    for at, onlooker in asked:
        yield deepcopy(onlooker).decide(at, solve)
        yield _answer_after(at, deepcopy(onlooker), meanwhile)


def _answer_after(at: float, onlooker: Onlooker, meanwhile: Sequence[tuple[float, Message]]) -> Decision | None:
    def solve_meanwhile(problem: Problem, engine: str) -> Solution:
        for came_at, message in meanwhile:
            onlooker.take(came_at, message)
        return solve(problem, engine)

    return onlooker.decide(at, solve_meanwhile)


def _different(told: Decision | None, made: Decision) -> dict[str, object]:
    if told is None:
        return dict.fromkeys(TOLD)
    differs = [name for name in TOLD if getattr(told, name) != getattr(made, name)]
    shown = (*SEARCH, *differs) if "plan" in differs or "assignment" in differs else differs
    return {name: (getattr(told, name), getattr(made, name)) for name in shown}
