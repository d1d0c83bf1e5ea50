"""The controller's state machine: events in, commands out. It has no clock, no client and no log of its own.

Synchronize --all found consumers obey--> Sentinel --a trigger--> Reassign --a plan--> Manage --done--> Sentinel
                                                 ^_______________________/ nothing better      |
                                                              Reassign <--a consumer is lost---/
"""

import math
from collections.abc import Mapping, Set
from dataclasses import replace
from enum import StrEnum

from controller.commands import Claim, Command, CreateConsumer, DeleteConsumer, Publish, Send, Solve
from controller.creation_limit import after_failure
from controller.events import (
    ClaimHeard,
    ConsumerGone,
    ConsumerReported,
    CreationFailed,
    Event,
    OperatorAsked,
    Solved,
    SolveFailed,
    SpeedsMeasured,
    Started,
    Ticked,
)
from controller.group import Group, Member
from controller.handover import next_steps
from controller.numbering import avoid
from controller.plan import decide, fewer_consumers
from controller.question import Question, Situation, pose
from controller.restraint import Restraints
from controller.settings import ControllerSettings
from controller.sizes import Size, Sizes
from controller.spares import spares, taking_spares
from controller.triggers import REPLAN, Cause, Trigger, interval_over, triggers
from domain.assignment import Assignment, ConsumerId
from domain.messages import Action, ConsumerState, ControlAction, CreationLimit, Order
from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds
from solver.solution import Solution

LONGEST_BACKOFF_S = 60.0
SYNCHRONIZE_RESEND_S = 1.0
CLAIM_EVERY_S = 2.0
"""A controller says so often who acts and what the next one must know. Silence is told by what it hears of itself."""
LONGEST_GAP_S = 4 * CLAIM_EVERY_S
"""Where less of its own claims comes back, it could hear nothing: silence is counted anew, since it takes consumers a
moment to be heard again."""


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
        self.state = State.SYNCHRONIZE
        self.group = Group()
        self._settings = settings
        self._epoch = epoch
        self._sequence = 0
        self._plan = 0
        self._now = -math.inf
        self._began_at = -math.inf
        self._barriers_sent: dict[str, float] = {}
        """When each process was last sent its barrier."""
        self._sizes = Sizes(settings.recovery_time_s, settings.consumer_capacity)
        self._named: frozenset[TopicPartition] = frozenset()
        """The partitions of interest: those that were ever named, or read, and not said to be gone since."""
        self._gone: frozenset[TopicPartition] = frozenset()
        self._vanished: set[TopicPartition] = set()
        """The partitions that have ceased to be of interest since the assignment was last considered."""
        self._measured_at = 0.0
        """By the monitor's clock: it is shown, and decides nothing."""
        self._speeds_at = -math.inf
        """When the newest speeds came; those that were there when it began do not count."""
        self._desired = Assignment()
        self._considered_at = -math.inf
        self._broken = False
        """The plan rests on a consumer that was lost since: it goes on as far as it can, until there is a new one."""
        self._question: Question | None = None
        """What the solver was asked last."""
        self._in_vain: frozenset[Cause] = frozenset()
        """What the last decision was about, where it changed nothing: the same need not be considered again at once."""
        self._restraints = Restraints(settings)
        self._replan_asked = False
        self._claims = 0
        self._claimed_at = -math.inf
        self._claims_on_their_way: dict[int, float] = {}
        """When each was sent."""
        self._heard_until = -math.inf
        """Whatever was reported before this moment has been taken in."""
        self._listens_since = -math.inf
        """From this moment to that one claims have come back without a gap."""
        self._creating: set[ConsumerId] = set()
        """Those that it asked for and that were not ready yet."""
        self._limit: CreationLimit | None = None
        self._failures = 0
        """Consumers lost or not created since one became ready."""
        self._failed_at = -math.inf

    @property
    def paused(self) -> bool:
        return self._restraints.paused

    @property
    def sizes(self) -> Mapping[TopicPartition, Size]:
        """The newest known size of each partition of interest."""
        return self._sizes.present

    def handle(self, *events: Event) -> list[Command]:
        """Takes the events in, one after the other, and returns what is then to be done, in this order."""
        answers = [command for event in events for command in self._take(event)]
        return [*answers, *self._proceed()]

    def _take(self, event: Event) -> list[Command]:
        """What an event changes at once; what follows from how things then are comes after the last of them."""
        self._now = max(self._now, event.at)
        match event:
            case Started(consumers=consumers, beginning=beginning, decided=decided):
                self._restraints.paused = beginning.paused
                for decision in decided:
                    self._restraints.was_decided(decision)
                self.group.former.inherit(beginning.unsealed, beginning.settled)
                self._claimed_at = self._now
                self._began_at = self._heard_until = self._listens_since = self._now
                if beginning.speeds is not None:
                    self._hear_of(beginning.speeds)
                    self._sizes.recalled(self._now, beginning.speeds)
                for consumer in sorted(consumers):
                    self.group.add(consumer, self._now, barrier=self._next_order())
            case SpeedsMeasured(speeds=speeds):
                self._hear_of(speeds)
                self._sizes.measured(self._now, speeds)
                self._speeds_at = self._now
                self._restraints.highest.record(self._now, self.sizes)
            case ConsumerReported(report=report):
                if self.group.receive(report, self._now) and report.state is ConsumerState.READY:
                    self._failures = 0
                    self._ready(self.group[report.consumer])
            case ClaimHeard(sequence=sequence):
                self._hear_claim(sequence)
            case ConsumerGone(consumer=consumer):
                member = self.group.remove(consumer)
                if member and not member.condemned:
                    self._lost(consumer)
                self._creating.discard(consumer)
            case CreationFailed(consumer=consumer):
                self.group.remove(consumer)
                self._lost(consumer)
            case Solved(plan=plan, solution=solution):
                if self.state is State.REASSIGN and plan == self._plan and self._question is not None:
                    return self._decide(self._question, solution)
            case SolveFailed(plan=plan):
                if self.state is State.REASSIGN and plan == self._plan:
                    self._failed()
                    self._enter_sentinel()
            case OperatorAsked(action=ControlAction.REPLAN):
                self._replan_asked = True
            case OperatorAsked(action=action):
                self._restraints.paused = action is ControlAction.PAUSE
                self._claimed_at = -math.inf
            case Ticked():
                pass
        return []

    def _hear_of(self, speeds: WriteSpeeds) -> None:
        named = speeds.bytes_per_s.keys() | speeds.unknown
        self._named = (self._named | named) - speeds.gone
        self._gone = (self._gone - named) | speeds.gone
        self._measured_at = speeds.measured_at

    def _proceed(self) -> list[Command]:
        commands = [*self._claim(), *self._condemn_the_silent()]
        if self.state is State.SYNCHRONIZE:
            commands += self._synchronize()
        if self.state is State.SYNCHRONIZE and self._synchronized:
            self._desired = self.group.assignment
            self._named |= self._desired.keys() - self._gone
            self.state = State.SENTINEL
        self._drop_the_gone()
        if self.state is State.SENTINEL and not self._spares <= self.group.keys():
            self.state = State.MANAGE
        if self.state is State.MANAGE:
            commands += self._manage()
        if self.state is State.SENTINEL or (self.state is State.MANAGE and self._broken):
            commands += self._watch()
        return commands

    def _claim(self) -> list[Command]:
        if self._now - self._claimed_at < CLAIM_EVERY_S:
            return []
        former = self.group.former
        former.settle_everywhere_sealed({partition.topic for partition in self._named})
        self._claims += 1
        self._claimed_at = self._claims_on_their_way[self._claims] = self._now
        members = self.group.counted_on
        return [Claim(self._claims, self.paused, former.unsealed, former.settled, members, self._creation_limit)]

    def _hear_claim(self, sequence: int) -> None:
        sent_at = self._claims_on_their_way.get(sequence)
        if sent_at is None:
            return
        self._claims_on_their_way = {n: at for n, at in self._claims_on_their_way.items() if n > sequence}
        if sent_at - self._heard_until > LONGEST_GAP_S:
            self._listens_since = sent_at
        self._heard_until = sent_at

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

    @property
    def _synchronized(self) -> bool:
        return self._began_at > -math.inf and not self._unsynchronized

    def _condemn_the_silent(self) -> list[Command]:
        """Ends the consumers that are taken for dead: silent, or not ready in time.

        Only silence that this controller has listened to counts: it may have been frozen itself, or cut off.
        """
        settings, commands = self._settings, list[Command]()
        for consumer in self.group:
            member = self.group[consumer]
            if member.condemned:
                continue
            if self.state is State.SYNCHRONIZE:
                silent = self._silence_s(member.heard_at) > settings.synchronize_timeout_s
                # It reports while it writes, and obeys after that: to end it would cost more than to wait.
                disobeys = self._silence_s(self._began_at) > settings.ready_timeout_s
                dead = member.barrier is not None and (silent or disobeys)
            elif member.state is ConsumerState.STARTING:
                dead = self._silence_s(member.since) > settings.ready_timeout_s
            else:
                dead = self._silence_s(member.heard_at) > settings.heartbeat_timeout_s
            if dead:
                self.group.condemn(consumer)
                self._lost(consumer)
                commands.append(DeleteConsumer(consumer, self._plan))
        return commands

    def _silence_s(self, since: float) -> float:
        """How long it has been listened since then."""
        return self._heard_until - max(since, self._listens_since)

    def _lost(self, consumer: ConsumerId) -> None:
        """A consumer ended, or could not begin, without being told to."""
        if consumer in self._creating:
            self._creating.remove(consumer)
            retry_s = self._settings.creation_retry_s
            others = sum(self._counted_on.values())
            self._limit = after_failure(self._creation_limit, self._now, consumer, others=others, retry_s=retry_s)
        self._failed()
        self._broken |= consumer in self._desired.consumers

    def _ready(self, member: Member) -> None:
        if member.consumer in self._creating:
            self._creating.remove(member.consumer)
            if self._limit is not None and member.since > self._limit.failed_at:
                self._limit = None

    @property
    def _creation_limit(self) -> CreationLimit | None:
        """What holds now."""
        return self._limit if self._limit is not None and self._now < self._limit.until else None

    def _failed(self) -> None:
        self._failures += 1
        self._failed_at = self._now

    # Sentinel

    def _drop_the_gone(self) -> None:
        """What the monitor says is gone is to be read by nobody; what it only names no more goes on."""
        for partition in self._gone & self.sizes.keys():
            self._sizes.forget(partition)
        vanished = self._gone & self._desired.keys()
        if not vanished:
            return
        self._vanished |= vanished
        if self.state is State.SENTINEL:
            self.state = State.MANAGE
        self._desired = Assignment({p: c for p, c in self._desired.items() if p not in vanished})

    def _enter_sentinel(self) -> None:
        self.state = State.SENTINEL
        self._considered_at = self._now

    def _watch(self) -> list[Command]:
        settings = self._settings
        if self._now - self._speeds_at > settings.speeds_timeout_s:
            return []
        too_early = self._now < max(self._failed_at + self._backoff_s, self._considered_at + settings.least_interval_s)
        if too_early and not self._replan_asked:
            return []
        settings = self._learn_capacity()
        why = triggers(self.group, self._desired, self.sizes, settings.consumer_capacity, self._vanished)
        if self._replan_asked:
            return self._reassign((REPLAN, *why))
        if self._now >= self._considered_at + settings.interval_s:
            why = why or ((interval_over(settings.interval_s),) if self.sizes else ())
        elif frozenset[Cause]().union(*(trigger.causes for trigger in why)) <= self._in_vain:
            return []
        return self._reassign(why) if why else []

    def _learn_capacity(self) -> ControllerSettings:
        """Decides from now on by what the consumers tell of themselves, if it is to."""
        told = [member.throughput for member in self.group.values() if member.throughput is not None]
        self._settings = self._restraints.settings = self._settings.having_learned(told)
        self._sizes.capacity = self._settings.consumer_capacity
        return self._settings

    @property
    def _backoff_s(self) -> float:
        """Grows with each failure, so that consumers which cannot start are not created over and over."""
        return min(LONGEST_BACKOFF_S, 2.0**self._failures) if self._failures > 1 else 0.0

    # Reassign

    def _reassign(self, why: tuple[Trigger, ...]) -> list[Command]:
        self.state = State.REASSIGN
        self._plan += 1
        alive = {consumer for consumer in self.group if not self.group[consumer].condemned}
        current = self.group.assignment
        situation = Situation(
            triggers=why,
            sizes=dict(self.sizes),
            highest=self._restraints.highest.over(self.sizes),
            measured_at=self._measured_at,
            current=current,
            gone={p: c for p, c in self._desired.items() if c not in alive and p not in current},
            named=self._named,
            missing=self._named - self._sizes.fresh,
            paused=self.paused,
            manual=REPLAN in why,
            limit=self._creation_limit,
        )
        self._question = pose(situation, self._settings)
        return [Solve(self._plan, self._question.problem, self._settings.engine)]

    def _decide(self, question: Question, solution: Solution) -> list[Command]:
        """Validates the answer against the present, then records it and carries it out, or lets it be."""
        situation = question.situation
        if self.group.assignment != situation.current:
            return self._reassign(situation.triggers)
        taken = {consumer for consumer in self.group if self.group[consumer].condemned}
        reserved = frozenset(self._settings.pins.values())
        plan = avoid(taking_spares(solution.assignment, self._counted_on, reserved), taken, reserved)
        solution = replace(solution, assignment=plan)
        record = decide(
            number=self._plan,
            epoch=self._epoch,
            at=self._now,
            question=question,
            solution=solution,
            restraints=self._restraints,
        )
        self._enter_sentinel()
        self._replan_asked = self._replan_asked and not situation.manual
        self._vanished.clear()
        self._in_vain = frozenset[Cause]().union(*(trigger.causes for trigger in situation.triggers))
        if record.carried_out:
            self.state = State.MANAGE
            self._broken = False
            self._in_vain = frozenset()
            self._desired = self._with_unmeasured(solution.assignment)
            shrinks = fewer_consumers(question, solution.assignment)
            self._restraints.carried_out(self._now, record.plan.rscore, fewer_consumers=shrinks)
        return [Publish(record)]

    def _with_unmeasured(self, plan: Assignment) -> Assignment:
        """The plan, and the partitions that have no speed yet where they are: what is not known is not moved."""
        unmeasured = {p: c for p, c in self.group.assignment.items() if p in self._named and p not in plan}
        return Assignment({**unmeasured, **plan})

    # Manage

    def _manage(self) -> list[Command]:
        due = self._now - self._settings.acknowledge_timeout_s
        steps = next_steps(self._desired, self.group, due, self._spares)
        if steps.done:
            self._enter_sentinel()
            return []
        commands: list[Command] = []
        for consumer in () if self._broken else steps.create:
            self.group.add(consumer, self._now)
            self._creating.add(consumer)
            commands.append(CreateConsumer(consumer, self._plan))
        for action, consumers in ((Action.STOP, steps.stop), (Action.START, steps.start)):
            for consumer, partitions in consumers.items():
                commands.append(self._send(consumer, action, partitions))
        for consumer in steps.delete:
            self.group.condemn(consumer)
            commands.append(DeleteConsumer(consumer, self._plan))
        return commands

    @property
    def _counted_on(self) -> dict[ConsumerId, bool]:
        """All consumers that are not gone, and whether each is counted on."""
        return {consumer: not self.group[consumer].condemned for consumer in self.group}

    @property
    def _spares(self) -> Set[ConsumerId]:
        """The consumers without a partition that shall exist; no new ones for a while after a failure."""
        needed = self._desired.consumers | set(self._settings.pins.values())
        hold = self._now < self._failed_at + self._backoff_s
        limit = self._creation_limit
        most = self._settings.max_consumers if limit is None else min(self._settings.max_consumers, limit.most)
        most = 0 if hold else most
        return spares(self._settings.spare_consumers, needed, self._counted_on, most)

    def _send(
        self,
        consumer: ConsumerId,
        action: Action,
        partitions: tuple[TopicPartition, ...],
        order: Order | None = None,
    ) -> Send:
        command = self.group.command(consumer, action, partitions, order or self._next_order(), self._plan)
        self.group.sent(command, self._now)
        return Send(command)

    def _next_order(self) -> Order:
        self._sequence += 1
        return Order(self._epoch, self._sequence)
