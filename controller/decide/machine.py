"""The controller's state machine: events in, commands out. It has no clock, no client and no log of its own.

Once all consumers that it found obey it (Synchronize), it does at every turn: it gives up who does not go on, gives
what nobody reads to somebody, takes the steps towards the plan that are safe now, and considers the assignment. Only
the last is gated, by what was heard lately, a back-off and a least interval. What an operator sees of it are the
paper's states: Reassign while the solver is asked, Manage while steps are due, Sentinel otherwise.
"""

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from controller.decide.backoff import Backoff
from controller.decide.commands import Claim, Command, CreateConsumer, DeleteConsumer, Publish, Send, Solve
from controller.decide.creation_limit import after_failure
from controller.decide.decider import Decider
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
from controller.decide.group import Member
from controller.decide.handover import next_steps
from controller.decide.hearing import CLAIM_EVERY_S, Hearing
from controller.decide.question import Question
from controller.decide.sizes import Size
from controller.decide.triggers import Cause, interval_over
from controller.settings import ControllerSettings
from domain.assignment import Assignment, ConsumerId
from domain.consumer_class import by_class
from domain.messages import (
    Action,
    ConsumerReport,
    ConsumerState,
    ControlAction,
    CreationLimit,
    Decision,
    Order,
    Standing,
)
from domain.partitions import TopicPartition
from solver.solution import Solution

SYNCHRONIZE_RESEND_S = 1.0


class State(StrEnum):
    SYNCHRONIZE = "synchronize"
    """Learning what the consumers that exist are doing, and having them obey this controller alone."""
    SENTINEL = "sentinel"
    """Watching for a reason to change the assignment."""
    REASSIGN = "reassign"
    """Waiting for the solver's answer."""
    MANAGE = "manage"
    """Carrying a plan out."""


class Controller:
    """Decides for one group under one epoch; made anew when the process begins."""

    def __init__(self, settings: ControllerSettings, epoch: int) -> None:
        self._decider = Decider(settings, epoch)
        self.group = self._decider.group
        self._settings = settings
        """Without what is learned."""
        self._epoch = epoch
        self._sequence = 0
        self._plan = 0
        self._carried = 0
        """The plan that is carried out."""
        self._made = 0
        """So many decisions."""
        self._asked = 0
        """The plan that the solver was asked for last."""
        self._now = -math.inf
        self._began_at = -math.inf
        self._barriers_sent: dict[str, float] = {}
        """When each process was last sent its barrier."""
        self._speeds_at = -math.inf
        """When the newest speeds came; those that were there when it began do not count."""
        self._considered_at = -math.inf
        self._synchronized = False
        self._done = True
        """Whether nothing is left to do of the plan."""
        self._growing_since: float | None = None
        """When a plan with more consumers was decided that is being carried out."""
        self._question: Question | None = None
        """What the solver is asked."""
        self._in_vain: frozenset[Cause] = frozenset()
        """What the last decision was about, where it changed nothing: the same need not be considered again at once."""
        self._claims = 0
        self._claimed_at = -math.inf
        self._claimed: tuple[dict[str, Any], CreationLimit | None] | None = None
        """How the group stood then, and what limited it."""
        self._hearing = Hearing()
        self._creating: set[ConsumerId] = set()
        """Those that it asked for and that were not ready yet."""
        self._backoff = Backoff()

    @property
    def state(self) -> State:
        if not self._synchronized:
            return State.SYNCHRONIZE
        if self._question is not None:
            return State.REASSIGN
        return State.SENTINEL if self._done else State.MANAGE

    @property
    def paused(self) -> bool:
        return self._decider.restraints.paused

    @property
    def desired(self) -> Assignment:
        """Who reads what once the plan is carried out."""
        return self._decider.desired

    @property
    def sizes(self) -> Mapping[TopicPartition, Size]:
        """The newest known size of each partition of interest."""
        return self._decider.sizes

    def handle(self, *events: Event) -> list[Command]:
        """Takes the events in, one after the other, and returns what is then to be done, in this order."""
        answers = [command for event in events for command in self._take(event)]
        return [*answers, *self._proceed()]

    def _take(self, event: Event) -> list[Command]:
        """What an event changes at once; what follows from how things then are comes after the last of them."""
        self._now = max(self._now, event.at)
        match event:
            case Started():
                self._begin(event)
            case SpeedsMeasured(speeds=speeds):
                self._decider.measured(self._now, speeds)
                self._speeds_at = self._now
            case ConsumerReported(report=report):
                self._hear(report)
            case RevisionsSeen(revision=revision, outdated=outdated, class_names=class_names):
                self.group.are_of(class_names)
                if revision != self._decider.rollout.revision:
                    self._in_vain = frozenset()
                self._decider.saw_revisions(revision, outdated)
            case ClaimHeard(sequence=sequence):
                self._hearing.heard(sequence)
            case ConsumerGone(consumer=consumer):
                member = self.group.remove(consumer)
                if member and not member.condemned:
                    self._fell(consumer)
                self._creating.discard(consumer)
            case CreationFailed(consumer=consumer):
                self.group.remove(consumer)
                self._fell(consumer)
            case Solved(plan=plan, solution=solution):
                if plan == self._asked and self._question is not None:
                    return self._answered(self._question, solution)
            case SolveFailed(plan=plan):
                if plan == self._asked and self._question is not None:
                    self._backoff.failed(self._now)
                    self._question, self._considered_at = None, self._now
            case OperatorAsked(action=ControlAction.REPLAN):
                self._decider.replan_asked = True
            case OperatorAsked(action=ControlAction.PAUSE_ROLLOUT):
                self._decider.rollout.paused = True
            case OperatorAsked(action=ControlAction.RESUME_ROLLOUT):
                self._decider.limit = None
                self._decider.rollout.resume()
            case OperatorAsked(action=ControlAction.UNPARK, topic=topic):
                self._decider.parking.unpark(self._now, topic)
            case OperatorAsked(action=action):
                self._decider.restraints.paused = action is ControlAction.PAUSE
                self._claimed_at = -math.inf
            case Ticked():
                pass
        return []

    def _begin(self, found: Started) -> None:
        """With what the controller before has said, and the consumers that there are."""
        beginning = found.beginning
        self._decider.restraints.paused = beginning.paused
        if beginning.rollout is not None:
            self._decider.rollout.inherit(beginning.rollout)
        self._decider.parking.inherit(beginning.parked, self._now - beginning.parked_told_at)
        self._decider.horizon.inherit(beginning.foresight)
        for decision in found.decided:
            self._decider.restraints.was_decided(decision.decided_at, decision)
        self.group.former.inherit(beginning.unsealed, beginning.settled, beginning.of_strangers)
        self._claimed_at = self._began_at = self._now
        self._hearing.begin(self._now)
        if beginning.speeds is not None:
            self._decider.recalled(beginning.speeds)
        for consumer in sorted(found.consumers):
            self.group.add(consumer, self._now, barrier=self._next_order())

    def _proceed(self) -> list[Command]:
        commands = self._turn()
        # The next controller has to know of each start: who was sent one may write.
        starts = any(isinstance(command, Send) and command.command.action is Action.START for command in commands)
        if starts or self._now - self._claimed_at >= CLAIM_EVERY_S:
            commands.append(self._claim())
        return [*commands, *self._tell()]

    def _turn(self) -> list[Command]:
        commands = self._give_up()
        if not self._synchronized:
            commands += self._synchronize()
            self._synchronized = self._began_at > -math.inf and not self._unsynchronized
            if not self._synchronized:
                return commands
            self._decider.take_as_found()
        self._decider.catch_up(self._now)
        commands += [*self._tell(), *self._give_readers(), *self._rest(), *self._renew()]
        return [*commands, *self._carry_out(), *self._watch()]

    def _tell(self) -> list[Command]:
        """Claims the group anew where it does not stand any more as was claimed: plans rest on it."""
        return [] if self._claimed == (self._stands, self._decider.limit) else [self._claim()]

    def _claim(self) -> Claim:
        former = self.group.former
        if self._synchronized:  # before, a consumer may be found to be one of them
            former.settle_everywhere_sealed({partition.topic for partition in self._decider.interest.named})
        self._claims += 1
        self._claimed_at = self._now
        self._hearing.sent(self._claims, self._now)
        members, limit, stands = self.group.counted_on, self._decider.limit_at(self._now), self._stands
        self._claimed = stands, self._decider.limit
        standing, made = Standing(began_at=self._began_at, **stands), self._made
        return Claim(self._claims, self.paused, former.unsealed, former.settled, members, limit, standing, made)

    @property
    def _stands(self) -> dict[str, Any]:
        """What a claim says of how the group stands: see `Standing`."""
        alive = self.group.alive
        return {
            "synchronized": self._synchronized,
            "counted_on": tuple(sorted(alive)),
            "hanging": tuple(sorted(self.group.taken)),
            "avoided": self._decider.avoided,
            "rollout": self._decider.rollout.standing(alive),
            "classes": by_class({consumer: self.group[consumer].class_name for consumer in alive}),
            "rests": self._decider.rests(self._now),
            "parked": self._decider.parking.standing,
            "foresight": self._decider.foresight,
        }

    # Synchronize

    def _synchronize(self) -> list[Command]:
        """Has every consumer that exists obey this controller: what the one before sent and comes late is then void."""
        due = self._now - SYNCHRONIZE_RESEND_S
        commands: list[Command] = []
        for member in self._unsynchronized:
            if member.incarnation is not None and self._barriers_sent.get(member.incarnation, -math.inf) <= due:
                self._barriers_sent[member.incarnation] = self._now
                commands.append(self._send(member.consumer, Action.STOP, (), member.barrier))
        return commands

    @property
    def _unsynchronized(self) -> list[Member]:
        return [member for member in self.group.values() if member.barrier is not None and not member.condemned]

    def _give_up(self) -> list[Command]:
        """Ends the consumers that are taken for dead: silent, not ready in time, or not doing what they are told.

        Only silence that this controller has listened to counts: it may have been frozen itself, or cut off.
        """
        settings, silence_s, commands = self._settings, self._hearing.silence_s, list[Command]()
        for consumer, member in self.group.items():
            if member.condemned:
                continue
            if not self._synchronized:
                silent = silence_s(member.heard_at) > settings.synchronize_timeout_s
                # It reports while it writes, and obeys after that: to end it would cost more than to wait.
                disobeys = silence_s(self._began_at) > settings.ready_timeout_s
                dead = member.barrier is not None and (silent or disobeys)
            elif member.state is ConsumerState.STARTING:
                dead = silence_s(max(member.since, member.began_at)) > settings.ready_timeout_s
            else:
                silent = silence_s(member.heard_at) > settings.heartbeat_timeout_s
                dead = silent or silence_s(member.unheeded_since) > settings.obey_timeout_s
            if dead:
                self.group.condemn(consumer)
                self._fell(consumer)
                commands.append(DeleteConsumer(consumer, self._carried))
        return commands

    def _hear(self, report: ConsumerReport) -> None:
        member = self._decider.heard(self._now, report)
        if member is not None and member.state is ConsumerState.READY:
            self._backoff.succeeded()
            self._ready(member)

    def _fell(self, consumer: ConsumerId) -> None:
        """A consumer ended, or could not begin, without being told to."""
        self._decider.rollout.fell(consumer, was_ready=consumer not in self._creating)
        if consumer in self._creating:
            self._creating.remove(consumer)
            self._decider.refused[consumer] += 1
            before, retry_s = self._decider.limit_at(self._now), self._settings.creation_retry_s
            others = len(self.group.alive)
            self._decider.limit = after_failure(before, self._now, consumer, others=others, retry_s=retry_s)
        self._backoff.failed(self._now)
        self._decider.fell(consumer)

    def _ready(self, member: Member) -> None:
        if member.consumer in self._creating:
            self._creating.remove(member.consumer)
            del self._decider.refused[member.consumer]
            if self._decider.limit is not None and member.since > self._decider.limit.failed_at:
                self._decider.limit = None

    # Sentinel

    def _give_readers(self) -> list[Command]:
        """What nobody reads is given to somebody at once, by rule; the solver may find something better later."""
        decision = self._decider.place(self._now, self._plan + 1)
        if decision is None:
            return []
        self._plan += 1
        self._in_vain = frozenset()
        return self._decided(decision)

    def _rest(self) -> list[Command]:
        """Where nothing was to be read for long enough, nobody reads any more, if so it may be."""
        decision = self._decider.rest(self._now, self._plan + 1) if self._question is None else None
        if decision is None:
            return []
        self._plan += 1
        return self._decided(decision)

    def _renew(self) -> list[Command]:
        """Once all is at rest, a consumer that did not begin as consumers begin now is replaced."""
        if self._question is not None or self._creating or self._holds:
            return []
        decision = self._decider.renew(self._now, self._plan + 1)
        if decision is None:
            return []
        self._plan += 1
        return self._decided(decision)

    def _watch(self) -> list[Command]:
        settings = self._settings
        fresh = self._now - self._speeds_at <= settings.speeds_timeout_s and self._hearing.hears(self._now)
        if self._question is not None or not fresh:
            return []
        early = self._now < self._considered_at + settings.least_interval_s
        too_early = early and not self._decider.jumped(self._now)
        if (too_early or self._now < self._backoff.until) and not self._decider.replan_asked:
            return []
        why = self._decider.why(self._now)
        if not self._decider.replan_asked:
            if self._now >= self._considered_at + settings.interval_s:
                rests = self._decider.rests(self._now)
                waits = not self.sizes or self._decider.rollout.retiring is not None or rests
                why = why or (() if waits else (interval_over(settings.interval_s),))
            elif frozenset[Cause]().union(*(trigger.causes for trigger in why)) <= self._in_vain:
                return []
        if not why:
            return []
        self._plan += 1
        self._asked, self._question = self._plan, self._decider.ask(self._now, why)
        return [Solve(self._plan, self._question.problem, settings.engine)]

    # Reassign

    def _answered(self, question: Question, solution: Solution) -> list[Command]:
        self._question, self._considered_at = None, self._now
        self._in_vain = frozenset[Cause]().union(*(trigger.causes for trigger in question.situation.triggers))
        told = self._tell()  # before what rests on it: what came together with the answer may have changed the group
        return [*told, *self._decided(self._decider.answered(self._now, self._asked, question, solution))]

    def _decided(self, decision: Decision) -> list[Command]:
        self._made += 1
        if decision.carried_out:
            self._in_vain, self._carried = frozenset(), decision.number
            self._growing_since = self._now if 0 < decision.found < decision.plan.consumers else None
        return [Publish(decision)]

    # Manage

    def _carry_out(self) -> list[Command]:
        due = self._now - self._settings.acknowledge_timeout_s
        spares = self._decider.spares(self._now, none_made=self._holds)
        steps = next_steps(self._decider.desired, self.group, due, spares)
        self._done = steps.done
        if self._done and self._growing_since is not None:
            self._decider.horizon.acted(self._now - self._growing_since)
            self._growing_since = None
        commands: list[Command] = []
        for consumer in () if self._holds else steps.create:
            class_name = self._decider.class_to_be(consumer)
            self.group.add(consumer, self._now, class_name=class_name)
            self._creating.add(consumer)
            commands.append(CreateConsumer(consumer, self._carried, class_name))
        for action, consumers in ((Action.STOP, steps.stop), (Action.START, steps.start)):
            for consumer, partitions in consumers.items():
                commands.append(self._send(consumer, action, partitions))
        for consumer in steps.delete:
            self.group.condemn(consumer)
            commands.append(DeleteConsumer(consumer, self._carried))
        return commands

    @property
    def _holds(self) -> bool:
        """Whether no consumers are created for a while, after failures."""
        return self._now < self._backoff.until

    def _send(
        self,
        consumer: ConsumerId,
        action: Action,
        partitions: tuple[TopicPartition, ...],
        order: Order | None = None,
    ) -> Send:
        command = self.group.command(consumer, action, partitions, order or self._next_order(), self._carried)
        self.group.sent(command, self._now)
        return Send(command)

    def _next_order(self) -> Order:
        self._sequence += 1
        return Order(self._epoch, self._sequence)
