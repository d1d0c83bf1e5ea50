"""What a group's controller would decide now, by who only hears what is said on the topics."""

import math
from collections import Counter

from controller.decide.creation_limit import told_later
from controller.decide.decider import TRIES, Decider
from controller.decide.group import Pending
from controller.decide.history import named
from controller.decide.question import Solve
from controller.decide.triggers import interval_over
from controller.settings import ControllerSettings
from domain.consumer_class import ORDINARY, class_names
from domain.messages import (
    Action,
    ConsumerReport,
    ConsumerState,
    ControlAction,
    ControllerClaim,
    ControlRequest,
    Decision,
    MessageToController,
    Order,
    RolloutStanding,
    Standing,
    WriteSpeedReport,
    writer,
)
from domain.speeds import WriteSpeeds

HIGHEST_ORDER = 2**63 - 1
"""When a start was ordered is not known: it counts until the partition is held, or the controller says otherwise."""


class Onlooker:
    """Follows one controller.

    Args:
        settings: of the controller.
        epoch: of the controller; decisions of those before it have cost what they cost, and nothing else of them holds.
        began_at: when the controller began; of what was measured before, only the last is known to it.
    """

    def __init__(self, settings: ControllerSettings, epoch: int, began_at: float = -math.inf) -> None:
        self._decider = Decider(settings, epoch)
        self._began_at = began_at
        self._last_before: WriteSpeeds | None = None
        """The last that was measured before it began, until it has."""
        self._claim = -1
        """The sequence of the controller's newest claim: one that comes again, late, says what was."""
        self._heard_it_begin = False
        """Whether all was heard that consumers and the controller said since."""
        self._newest = 0
        """The decision with the highest number."""
        self._knows_plan = False
        """What is to be read by whom is known: it has carried a plan out, or was heard when it took that as found."""
        self._is_told_who_exists = False
        self._speeds_at = self._now = -math.inf

    def take(self, at: float, message: MessageToController | Decision | WriteSpeedReport) -> None:
        """A message came, at `at`, or when the one before it did."""
        if at < self._began_at:
            self._take_early(at, message)
            return
        # Reports that come at once the controller takes together.
        if at > self._now or not isinstance(message, ConsumerReport):
            self._decider.catch_up(at)
        self._now = at = max(self._now, at)
        self._recall()
        match message:
            case WriteSpeedReport():
                self._decider.measured(at, message.speeds)
                self._speeds_at = at
            case ConsumerReport():
                self._hear(at, message)
            case ControllerClaim(epoch=self._decider.epoch) if message.sequence > self._claim:
                self._follow(at, message)
            case ControlRequest(action=ControlAction.REPLAN):
                self._decider.replan_asked = True
            case ControlRequest(action=ControlAction.UNPARK, topic=topic):
                self._decider.parking.unpark(at, topic)
            case ControlRequest(action=ControlAction.PAUSE | ControlAction.RESUME as action):
                self._decider.restraints.paused = action is ControlAction.PAUSE
            case Decision(epoch=epoch) if epoch < self._decider.epoch:
                self._decider.restraints.was_decided(at, message)
            case Decision(epoch=self._decider.epoch):
                self._take_decision(at, message)
            case _:
                pass

    def _take_early(self, at: float, message: MessageToController | Decision | WriteSpeedReport) -> None:
        """What is told of the time before the controller began: consumers tell it all else anew."""
        self._heard_it_begin |= isinstance(message, ConsumerReport | ControllerClaim)
        match message:
            case WriteSpeedReport():
                self._last_before = message.speeds
            case Decision():
                self._decider.restraints.was_decided(at, message)
            case ControlRequest(action=ControlAction.PAUSE | ControlAction.RESUME as action):
                self._decider.restraints.paused = action is ControlAction.PAUSE
            case ControllerClaim():
                self._decider.restraints.paused = message.paused
            case _:
                pass

    def decide(self, at: float, solve: Solve) -> Decision | None:
        """The controller's next decision, if it is made now; None without fresh speeds, unless something is unread."""
        decider, settings, at = self._decider, self._decider.settings, max(self._now, at)
        self._recall()
        self._begin()
        if not self._is_told_who_exists:
            for consumer in decider.desired.consumers - decider.group.keys():
                decider.fell(consumer)
        decider.interest.add_read(decider.desired.keys())
        decider.catch_up(at)
        number = self._newest + 1
        if (decision := decider.place(at, number)) is not None:
            return decision
        if (decision := decider.rest(at, number) or decider.renew(at, number)) is not None:
            return decision
        if at - self._speeds_at > settings.speeds_timeout_s:
            return None
        question = decider.ask(at, decider.why(at) or (interval_over(settings.interval_s),))
        solution = solve(question.problem, settings.engine)
        return decider.answered(max(at, self._now), number, question, solution)  # it may hear more meanwhile

    def _recall(self) -> None:
        if self._last_before is not None:
            self._decider.recalled(self._last_before)
            self._last_before = None

    def _begin(self) -> None:
        """Until the controller has carried a plan out, who reads what is as it is to be."""
        if not self._knows_plan:
            self._decider.take_as_found()

    def _hear(self, at: float, report: ConsumerReport) -> None:
        group, told = self._decider.group, self._is_told_who_exists
        if not told and report.consumer not in group:
            group.add(report.consumer, at, class_name=self._decider.class_of(report.consumer).name)
        member = self._decider.heard(at, report)
        if member is None:
            return
        for partition in member.held:
            member.pending.pop(partition, None)
        if not told and report.state is ConsumerState.LEAVING:
            group.remove(report.consumer)

    def _follow(self, at: float, claim: ControllerClaim) -> None:
        """What the controller says of itself, by its own clock, and of the group."""
        limit, decider = claim.creation_limit, self._decider
        self._claim = claim.sequence
        decider.restraints.paused = claim.paused
        may_read = {name: named(read) for name, read in (claim.may_read or {}).items()}
        if claim.standing is not None:
            self._is_told_who_exists = True
            self._take_standing(at, claim.standing)
            decider.parking.inherit(claim.parked_or_on_trial, at - claim.sent_at)
            # What still comes of processes that are not counted on any more is late.
            unsealed = {name: may_read.get(name) for name in claim.unsealed}
            decider.group.former.inherit(unsealed, claim.settled, frozenset())
        decider.limit = None if limit is None else told_later(limit, at - claim.sent_at)
        for member in decider.group.values():
            read = may_read.get(writer(member.consumer, member.incarnation or "-"))
            if read is not None:  # what is not held was started, and is not heard of yet
                late = Pending(Action.START, Order(claim.epoch, HIGHEST_ORDER), at, at)
                member.pending = dict.fromkeys(read - member.held, late)
        if claim.standing is not None and claim.standing.synchronized and self._heard_it_begin:
            self._begin()
            self._knows_plan = True

    def _take_standing(self, at: float, standing: Standing) -> None:
        decider, group = self._decider, self._decider.group
        for consumer in group.keys() - {*standing.counted_on, *standing.hanging}:
            member = group.remove(consumer)
            if member and not member.condemned:
                decider.fell(consumer)
        barrier = None if standing.synchronized else Order(decider.epoch, 0)
        for consumer in {*standing.counted_on, *standing.hanging} - group.keys():
            group.add(consumer, at, barrier)
        named = class_names(standing.classes)
        group.are_of({consumer: named.get(consumer, ORDINARY) for consumer in standing.counted_on})
        for consumer in standing.hanging:
            if not group[consumer].condemned:
                group.condemn(consumer)
                decider.fell(consumer)
        self._take_rollout(standing.rollout or RolloutStanding())
        decider.horizon.inherit(standing.foresight)
        decider.refused = Counter({number: TRIES * n for n, number in enumerate(standing.avoided, 1)})

    def _take_rollout(self, standing: RolloutStanding) -> None:
        rollout = self._decider.rollout
        rollout.paused, rollout.failed, rollout.retiring = False, None, standing.retiring
        rollout.inherit(standing)
        self._decider.saw_revisions(standing.revision, frozenset(standing.outdated))

    def _take_decision(self, at: float, decision: Decision) -> None:
        self._begin()
        decider, group = self._decider, self._decider.group
        ended = [consumer for consumer in decision.lost if consumer not in decider.lost]
        for consumer in ended:  # the controller sees it before it says it
            group.remove(consumer)
            decider.fell(consumer)
        decider.catch_up(at)
        if all(member.throughput is None for member in decider.group.values()):
            decider.learned(decider.settings.as_decided(decision))
        decider.decided(at, decision)
        for consumer in decider.desired.consumers.intersection(ended):
            group.add(consumer, at, class_name=decider.class_of(consumer).name)
        self._newest = max(self._newest, decision.number)
        self._knows_plan |= decision.carried_out
