"""The controller at work: receive, handle, perform."""

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

import structlog
from confluent_kafka import KafkaException

from brokers.errors import in_one_line
from controller.decide.commands import Claim, Command, CreateConsumer, DeleteConsumer, Publish, Send, Solve
from controller.decide.events import (
    ClaimHeard,
    ConsumerGone,
    ConsumerReported,
    CreationFailed,
    Event,
    OperatorAsked,
    RevisionsSeen,
    Solved,
    SolveFailed,
    SpeedsMeasured,
    Started,
    Ticked,
)
from controller.decide.history import Beginning
from controller.decide.machine import Controller, State
from controller.fleet import ConsumerFleet, FleetError, Revisions
from controller.kafka import Received, Sent
from controller.settings import ControllerSettings
from domain.assignment import ConsumerId
from domain.messages import (
    Asked,
    ConsumerReport,
    ControllerClaim,
    ControlRequest,
    Decision,
    ParkedTopic,
    Standing,
    WriteSpeedReport,
)
from solver.problem import Problem
from solver.solution import Solution

log = structlog.get_logger()

RECEIVE_TIMEOUT_S = 0.1
REVISIONS_EVERY_S = 1.0
"""So often it is looked at what consumers begin with."""


class Link(Protocol):
    """How the controller hears and speaks; see `controller.kafka.KafkaLink`."""

    def begin(self) -> Beginning: ...

    def decided_since(self, moment: float) -> list[Decision]: ...

    def receive(self, timeout_s: float) -> list[Received]: ...

    def claim(self, claim: Claim, at: float) -> ControllerClaim: ...

    def heard(self, at: float) -> Asked: ...

    def send(self, messages: list[Sent]) -> None: ...


class Audience:
    """Whoever follows what the controller does, as a status page does; this one does nothing with it.

    Calls come from the thread that controls, and have to return at once.
    """

    def stands_by(self) -> None:
        """Another controller acts, and this one waits; several times while it does."""

    def leads(self, epoch: int) -> None:
        """The controller begins to act."""

    def heard(self, message: Received) -> None:
        """A message has come in."""

    def decided(self, decision: Decision) -> None:
        """A decision was made."""

    def turned(self, at: float, state: State, *, paused: bool) -> None:
        """Everything that had happened by then (s since the epoch) is dealt with, and sent; several times a second."""


class Audiences(Audience):
    """Several as one."""

    def __init__(self, *audiences: Audience) -> None:
        self._audiences = audiences

    def stands_by(self) -> None:
        for each in self._audiences:
            each.stands_by()

    def leads(self, epoch: int) -> None:
        for each in self._audiences:
            each.leads(epoch)

    def heard(self, message: Received) -> None:
        for each in self._audiences:
            each.heard(message)

    def decided(self, decision: Decision) -> None:
        for each in self._audiences:
            each.decided(decision)

    def turned(self, at: float, state: State, *, paused: bool) -> None:
        for each in self._audiences:
            each.turned(at, state, paused=paused)


class SteadyClock:
    """Seconds since the epoch as they were when it was made, and from then on by the monotonic clock."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def __call__(self) -> float:
        return self._offset + time.monotonic()


def run(
    settings: ControllerSettings,
    link: Link,
    fleet: ConsumerFleet,
    solve: Callable[[Problem, str], Solution],
    stop: threading.Event,
    clock: Callable[[], float] | None = None,
    audience: Audience | None = None,
) -> None:
    """Controls the group until `stop` is set. The consumers go on: they are the next controller's.

    Raises:
        DeposedError: another controller of the group has begun.
        KafkaException: the cluster did not answer at the beginning, or the client can do nothing more.
    """
    _Runner(settings, link, fleet, solve, clock or SteadyClock(), audience or Audience()).run(stop)


@dataclass(slots=True)
class _Runner:
    settings: ControllerSettings
    link: Link
    fleet: ConsumerFleet
    solve: Callable[[Problem, str], Solution]
    clock: Callable[[], float]
    audience: Audience
    known: frozenset[ConsumerId] = frozenset()
    """The consumers that the machine believes to exist."""
    at: float = -math.inf
    """What the machine takes for now."""
    asked: tuple[int, Asked] | None = None
    """The plan that the solver was asked for last, and when."""
    answer: tuple[int, Future[Solution]] | None = None
    unsent: list[Sent] = field(default_factory=list)
    noticed: list[Event] = field(default_factory=list)
    """What came of commands at once."""
    revisions: Revisions | None = None
    """As they were seen last."""
    revisions_at: float = -math.inf
    paused: bool = False
    parked: Mapping[str, ParkedTopic] = field(default_factory=dict)
    """That the newest claim tells of, also on trial."""

    def run(self, stop: threading.Event) -> None:
        beginning = self.link.begin()
        self.paused = beginning.paused
        machine = Controller(self.settings, beginning.epoch)
        log.info(
            "the controller begins", epoch=beginning.epoch, paused=beginning.paused, heard_of=len(beginning.unsealed)
        )
        self.audience.leads(beginning.epoch)
        state = machine.state
        with (
            ThreadPoolExecutor(1, thread_name_prefix="solver") as pool,
            structlog.contextvars.bound_contextvars(epoch=beginning.epoch),
        ):
            self.known = self.fleet.consumers()
            self.at = self.clock()
            started = Started(self.at, self.known, beginning, self._decided_lately())
            events: list[Event] = [started, *self._revisions(started.at)]
            while not stop.is_set():
                self._perform(machine.handle(*events), pool)
                if self._send():
                    self.audience.turned(self.clock(), machine.state, paused=machine.paused)
                if machine.state is not state:
                    state = machine.state
                    log.info("the controller's state changed", state=state.value, consumers=len(machine.group))
                events = self._receive()

    def _decided_lately(self) -> tuple[Decision, ...]:
        """What counts for the migration budget, where there is one."""
        if math.isinf(self.settings.budget):
            return ()
        return tuple(self.link.decided_since(self.clock() - self.settings.migration_window_s))

    def _receive(self) -> list[Event]:
        """What has happened since; a tick at least."""
        messages = self.link.receive(RECEIVE_TIMEOUT_S)
        for message in messages:
            self.audience.heard(message)
        self.at = at = self.clock()
        events: list[Event] = [_event(at, message) for message in messages]
        exist = self.fleet.consumers()
        events += [ConsumerGone(at, consumer) for consumer in sorted(self.known - exist)]
        self.known = exist
        events += self._revisions(at)
        if self.answer and self.answer[1].done():
            events.append(_answered(at, *self.answer))
            self.answer = None
        noticed, self.noticed = self.noticed, []
        return [*noticed, *events, Ticked(at)]

    def _revisions(self, at: float) -> Iterator[Event]:
        """What has changed of them."""
        if at - self.revisions_at < REVISIONS_EVERY_S:
            return
        self.revisions_at, before = at, self.revisions
        self.revisions = self.fleet.revisions()
        if self.revisions != before:
            yield RevisionsSeen(at, self.revisions.wanted, self.revisions.outdated, self.revisions.class_names)

    def _perform(self, commands: list[Command], pool: ThreadPoolExecutor) -> None:
        for command in commands:
            match command:
                case CreateConsumer():
                    self._create(command)
                case DeleteConsumer(consumer=consumer, plan=plan):
                    log.info("a consumer is ended", consumer=consumer, plan=plan)
                    self.fleet.delete(consumer)
                case Send(command=message):
                    log.info(
                        "a command is sent",
                        consumer=message.consumer,
                        action=message.action.value,
                        partitions=[str(partition.key) for partition in message.partitions],
                        plan=message.plan,
                        seal=message.seal,
                    )
                    self.unsent.append(message)
                case Publish(decision=decision):
                    decision = self._with_what_it_rests_on(decision)
                    _log_decision(decision)
                    self.audience.decided(decision)
                    self.unsent.append(decision)
                case Claim():
                    self._claim(command)
                case Solve(plan=plan, problem=problem, engine=engine):
                    self.asked = (plan, self.link.heard(self.at))
                    self.answer = (plan, pool.submit(self.solve, problem, engine))

    def _with_what_it_rests_on(self, decision: Decision) -> Decision:
        """Nobody was asked for what was decided by rule: it rests on what is known now."""
        plan, asked = self.asked or (0, None)
        rests_on = asked if decision.number == plan else self.link.heard(self.at)
        return decision.model_copy(update={"asked": rests_on})

    def _create(self, asked: CreateConsumer) -> None:
        of = {"consumer": asked.consumer, "of_class": asked.class_name, "plan": asked.plan}
        log.info("a consumer is created", **of)
        try:
            self.fleet.create(asked.consumer, asked.class_name)
        except FleetError as error:
            log.error("a consumer could not be created", **of, reason=str(error))
            self.noticed.append(CreationFailed(self.clock(), asked.consumer, str(error)))
        else:
            self.known |= {asked.consumer}

    def _claim(self, claim: Claim) -> None:
        if claim.paused is not self.paused:
            self.paused = claim.paused
            log.info("the controller is paused" if claim.paused else "the controller goes on")
        self._tell_of_parked(claim.standing)
        # It says all that one before says which is not sent yet, unless a decision rests on that one.
        decided = max((n for n, each in enumerate(self.unsent, 1) if isinstance(each, Decision)), default=0)
        since = [each for each in self.unsent[decided:] if not isinstance(each, ControllerClaim)]
        self.unsent = [*self.unsent[:decided], *since, self.link.claim(claim, self.at)]

    def _tell_of_parked(self, standing: Standing | None) -> None:
        if standing is None:
            return
        before, self.parked = self.parked, {each.topic: each for each in standing.parked}
        for topic, parked in self.parked.items():
            if parked != before.get(topic):
                log.warning("a topic is parked", **parked.model_dump(include={"topic", "reason", "until", "times"}))
        for topic in sorted(before.keys() - self.parked.keys()):
            log.info("a topic is parked no more", topic=topic)

    def _send(self) -> bool:
        """Sends what is due, all or nothing; False where it could not be, and is tried again: it may arrive twice."""
        try:
            self.link.send(self.unsent)
        except KafkaException as error:
            if error.args[0].fatal():
                raise
            log.warning("messages cannot be sent just now", reason=in_one_line(error), waiting=len(self.unsent))
            return False
        self.unsent.clear()
        return True


def _answered(at: float, plan: int, answer: Future[Solution]) -> Event:
    if (error := answer.exception()) is not None:
        log.error("the solver failed", plan=plan, reason=str(error))
        return SolveFailed(at, plan, str(error))
    return Solved(at, plan, answer.result())


def _event(at: float, message: Received) -> Event:
    match message:
        case ControllerClaim(sequence=sequence):
            return ClaimHeard(at, sequence)
        case ConsumerReport():
            return ConsumerReported(at, message)
        case ControlRequest(action=action, topic=topic):
            return OperatorAsked(at, action, topic)
        case WriteSpeedReport():
            return SpeedsMeasured(at, message.speeds)


def _log_decision(decision: Decision) -> None:
    """The record in one line, but for the partitions that stay where they are: `controller.decisions` has them all."""
    record = decision.model_dump(mode="json", exclude={"version", "group", "kind", "assignment"})
    moves = [
        {"partition": str(entry.key), "from": entry.previous, "to": entry.consumer, "reason": entry.reason}
        for entry in decision.assignment
        if entry.previous != entry.consumer
    ]
    log.info("a decision was made", **record, moves=moves)
    for partition in decision.saturated:
        log.error(
            "a partition is faster than a consumer",
            partition=str(partition.key),
            speed=partition.speed,
            capacity=decision.capacity,
            partitions_needed=partition.partitions_needed,
        )
    if decision.shortfall is not None:
        log.error("the rules cannot all be kept", excess=decision.shortfall.excess, reason=decision.shortfall.reason)
