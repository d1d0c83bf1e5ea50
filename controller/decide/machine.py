"""The controller's state machine: events in, commands out. It has no clock, no client and no log of its own.

Once all consumers that it found obey it (Synchronize), it does at every turn: it gives up who does not go on, gives
what nobody reads to somebody, takes the steps towards the plan that are safe now, and considers the assignment. Only
the last is gated, by fresh speeds, a back-off and a least interval. What an operator sees of it are the paper's states:
Reassign while the solver is asked, Manage while steps are due, Sentinel otherwise.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from enum import StrEnum
from itertools import islice

from controller.decide.commands import Claim, Command, CreateConsumer, DeleteConsumer, Publish, Send, Solve
from controller.decide.creation_limit import after_failure
from controller.decide.events import (
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
from controller.decide.group import Group, Member
from controller.decide.handover import next_steps
from controller.decide.interest import Interest
from controller.decide.mending import mended, numbered
from controller.decide.plan import decide, fewer_consumers
from controller.decide.question import Question, Situation, pose
from controller.decide.restraint import Restraints
from controller.decide.sizes import Size, Sizes
from controller.decide.spares import spares
from controller.decide.triggers import REPLAN, Cause, Trigger, interval_over, triggers
from controller.settings import ControllerSettings
from domain.assignment import Assignment, ConsumerId
from domain.messages import (
    Action,
    ConsumerReport,
    ConsumerState,
    ControlAction,
    CreationLimit,
    DecisionKind,
    Order,
)
from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds
from solver.evaluation import evaluate
from solver.solution import Solution, Status

LONGEST_BACKOFF_S = 60.0
SYNCHRONIZE_RESEND_S = 1.0
TRIES = 3
"""After so many failures in a row to create a consumer of a number, others are tried before it."""
CLAIM_EVERY_S = 2.0
"""A controller says so often, and with every start, who acts and what the next one must know. Silence is told by what
it hears of itself."""
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
        self.group = Group()
        self._settings = settings
        self._epoch = epoch
        self._sequence = 0
        self._plan = 0
        self._carried = 0
        """The plan that is carried out."""
        self._asked = 0
        """The plan that the solver was asked for last."""
        self._now = -math.inf
        self._began_at = -math.inf
        self._barriers_sent: dict[str, float] = {}
        """When each process was last sent its barrier."""
        self._sizes = Sizes(settings.recovery_time_s, settings.consumer_capacity)
        self._interest = Interest()
        self._vanished: set[TopicPartition] = set()
        """The partitions that have ceased to be of interest since the assignment was last considered."""
        self._measured_at = 0.0
        """By the monitor's clock: it is shown, and decides nothing."""
        self._speeds_at = -math.inf
        """When the newest speeds came; those that were there when it began do not count."""
        self._desired = Assignment()
        self._considered_at = -math.inf
        self._synchronized = False
        self._done = True
        """Whether nothing is left to do of the plan."""
        self._question: Question | None = None
        """What the solver is asked."""
        self._fallen: set[ConsumerId] = set()
        """Consumers that have just ceased to read what they were to."""
        self._lost: dict[TopicPartition, ConsumerId] = {}
        """What nobody read, or reads, because its consumer is gone, and which one that was; until a plan is made."""
        self._placed: tuple[Trigger, ...] = ()
        """Why partitions were placed by rule since the solver was asked last."""
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
        self._refused: Counter[ConsumerId] = Counter()
        """How often in a row each number could not be created."""
        self._failed_at = -math.inf

    @property
    def state(self) -> State:
        if not self._synchronized:
            return State.SYNCHRONIZE
        if self._question is not None:
            return State.REASSIGN
        return State.SENTINEL if self._done else State.MANAGE

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
                self.group.former.inherit(beginning.unsealed, beginning.settled, beginning.of_strangers)
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
                self._hear(report)
            case ClaimHeard(sequence=sequence):
                self._hear_claim(sequence)
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
                    self._failed()
                    self._question, self._considered_at = None, self._now
            case OperatorAsked(action=ControlAction.REPLAN):
                self._replan_asked = True
            case OperatorAsked(action=action):
                self._restraints.paused = action is ControlAction.PAUSE
                self._claimed_at = -math.inf
            case Ticked():
                pass
        return []

    def _hear_of(self, speeds: WriteSpeeds) -> None:
        self._interest.hear(speeds)
        self._measured_at = speeds.measured_at

    def _proceed(self) -> list[Command]:
        commands = self._turn()
        # The next controller has to know of each start: who was sent one may write.
        starts = any(isinstance(command, Send) and command.command.action is Action.START for command in commands)
        if starts or self._now - self._claimed_at >= CLAIM_EVERY_S:
            commands.append(self._claim())
        return commands

    def _turn(self) -> list[Command]:
        commands = self._give_up()
        if not self._synchronized:
            commands += self._synchronize()
            self._synchronized = self._began_at > -math.inf and not self._unsynchronized
            if not self._synchronized:
                return commands
            self._desired = self.group.assignment
            self._interest.add_read(self._desired.keys())
        self._drop_the_gone()
        self._leave_the_fallen()
        return [*commands, *self._give_readers(), *self._carry_out(), *self._watch()]

    def _claim(self) -> Claim:
        former = self.group.former
        if self._synchronized:  # before, a consumer may be found to be one of them
            former.settle_everywhere_sealed({partition.topic for partition in self._interest.named})
        self._claims += 1
        self._claimed_at = self._claims_on_their_way[self._claims] = self._now
        members = self.group.counted_on
        return Claim(self._claims, self.paused, former.unsealed, former.settled, members, self._creation_limit)

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

    def _give_up(self) -> list[Command]:
        """Ends the consumers that are taken for dead: silent, not ready in time, or not doing what they are told.

        Only silence that this controller has listened to counts: it may have been frozen itself, or cut off.
        """
        settings, commands = self._settings, list[Command]()
        for consumer in self.group:
            member = self.group[consumer]
            if member.condemned:
                continue
            if not self._synchronized:
                silent = self._silence_s(member.heard_at) > settings.synchronize_timeout_s
                # It reports while it writes, and obeys after that: to end it would cost more than to wait.
                disobeys = self._silence_s(self._began_at) > settings.ready_timeout_s
                dead = member.barrier is not None and (silent or disobeys)
            elif member.state is ConsumerState.STARTING:
                dead = self._silence_s(max(member.since, member.began_at)) > settings.ready_timeout_s
            else:
                silent = self._silence_s(member.heard_at) > settings.heartbeat_timeout_s
                dead = silent or self._silence_s(member.unheeded_since) > settings.obey_timeout_s
            if dead:
                self.group.condemn(consumer)
                self._fell(consumer)
                commands.append(DeleteConsumer(consumer, self._carried))
        return commands

    def _silence_s(self, since: float) -> float:
        """How long it has been listened since then."""
        return self._heard_until - max(since, self._listens_since)

    def _hear(self, report: ConsumerReport) -> None:
        member = self.group.get(report.consumer)
        before = member.incarnation if member else None
        if member is None or not self.group.receive(report, self._now):
            return
        if before not in (None, member.incarnation) or member.state is ConsumerState.LEAVING:
            self._fallen.add(member.consumer)
        if member.state is ConsumerState.READY:
            self._failures = 0
            self._ready(member)

    def _fell(self, consumer: ConsumerId) -> None:
        """A consumer ended, or could not begin, without being told to."""
        if consumer in self._creating:
            self._creating.remove(consumer)
            self._refused[consumer] += 1
            retry_s = self._settings.creation_retry_s
            others = sum(self._counted_on.values())
            self._limit = after_failure(self._creation_limit, self._now, consumer, others=others, retry_s=retry_s)
        self._failed()
        self._fallen.add(consumer)

    def _ready(self, member: Member) -> None:
        if member.consumer in self._creating:
            self._creating.remove(member.consumer)
            del self._refused[member.consumer]
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
        for partition in self._interest.gone & self.sizes.keys():
            self._sizes.forget(partition)
        vanished = self._interest.gone & self._desired.keys()
        if not vanished:
            return
        self._vanished |= vanished
        self._desired = Assignment({p: c for p, c in self._desired.items() if p not in vanished})

    def _leave_the_fallen(self) -> None:
        """What they were to read stays with who reads it still, or is lost."""
        fallen = self._fallen & self._desired.consumers
        self._fallen.clear()
        if not fallen:
            return
        readers = self.group.assignment
        held = {p: readers.get(p) if c in fallen else c for p, c in self._desired.items()}
        self._lost |= {p: self._desired[p] for p, c in held.items() if c is None}
        self._desired = Assignment({p: c for p, c in held.items() if c is not None})

    @property
    def _unread(self) -> frozenset[TopicPartition]:
        """What is to be read and belongs to nobody."""
        return (self._interest.named & (self.sizes.keys() | self._lost.keys())) - self._desired.keys()

    def _why(self) -> tuple[Trigger, ...]:
        unread = self._unread
        lost = {consumer for partition, consumer in self._lost.items() if partition in unread}
        capacity = self._settings.consumer_capacity
        return triggers(self._desired, self.sizes, capacity, unread, self._vanished, lost)

    def _give_readers(self) -> list[Command]:
        """What nobody reads is given to somebody at once, by rule; the solver may find something better later."""
        if not self._unread:
            return []
        why = self._why()
        question = pose(self._situation(why), self._settings)
        plan = self._made_possible(question, self._desired)
        if not plan.keys() - self._desired.keys():
            return []
        figures = evaluate(question.problem, plan)
        solution = Solution(
            assignment=Assignment({p: c for p, c in plan.items() if p in question.problem.speeds}),
            engine="best-fit",
            status=Status.HEURISTIC,
            consumers=figures.consumers,
            rscore=figures.rscore,
            objective=figures.objective,
            lower_bound=0.0,
            seconds=0.0,
            excess=figures.excess,
        )
        self._placed = why
        self._in_vain = frozenset()
        self._plan += 1
        return self._decide(self._plan, question, solution)

    def _watch(self) -> list[Command]:
        settings = self._settings
        if self._question is not None or self._now - self._speeds_at > settings.speeds_timeout_s:
            return []
        too_early = self._now < max(self._failed_at + self._backoff_s, self._considered_at + settings.least_interval_s)
        if too_early and not self._replan_asked:
            return []
        settings = self._learn_capacity()
        why = self._placed + self._why()
        if self._replan_asked:
            return self._ask((REPLAN, *why))
        if self._now >= self._considered_at + settings.interval_s:
            why = why or ((interval_over(settings.interval_s),) if self.sizes else ())
        elif frozenset[Cause]().union(*(trigger.causes for trigger in why)) <= self._in_vain:
            return []
        return self._ask(why) if why else []

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

    def _ask(self, why: tuple[Trigger, ...]) -> list[Command]:
        self._plan += 1
        self._asked = self._plan
        self._question = pose(self._situation(why), self._settings, forced=bool(self._placed))
        self._placed = ()
        return [Solve(self._plan, self._question.problem, self._settings.engine)]

    def _situation(self, why: tuple[Trigger, ...]) -> Situation:
        readers = self.group.assignment
        unweighed = self._lost.keys() & self._interest.named - self.sizes.keys()
        sizes = {**dict.fromkeys(unweighed, self._mean_size), **self.sizes}
        current = Assignment({p: c for p, c in self._desired.items() if p in readers})
        return Situation(
            triggers=why,
            sizes=sizes,
            highest=self._restraints.highest.over(sizes),
            measured_at=self._measured_at,
            current=current,
            gone={p: c for p, c in self._lost.items() if p not in current},
            named=self._interest.named,
            missing=self._interest.named - self._sizes.fresh,
            paused=self.paused,
            manual=REPLAN in why,
            limit=self._creation_limit,
            planned=self._desired,
            taken=self._taken,
            unweighed=frozenset(c for p, c in self._desired.items() if p not in sizes),
        )

    @property
    def _mean_size(self) -> Size:
        """What a partition of unknown size is taken for; where none is known, all are equal, and consumers full."""
        if self.sizes:
            return Size(math.fsum(size.total for size in self.sizes.values()) / len(self.sizes))
        return Size(self._settings.packing * max(1, len(self._desired.consumers)) / max(1, len(self._interest.named)))

    def _answered(self, question: Question, solution: Solution) -> list[Command]:
        """Mends the answer where the group has changed meanwhile, and judges it by how things are now."""
        self._question, self._considered_at = None, self._now
        then, now = question.situation, self._situation(question.situation.triggers)
        changed = (then.planned, then.taken, then.sizes.keys()) != (now.planned, now.taken, now.sizes.keys())
        if changed:
            sizes = {partition: then.sizes.get(partition, size) for partition, size in now.sizes.items()}
            highest = {partition: then.highest.get(partition, size) for partition, size in now.highest.items()}
            forced = question.grounds is DecisionKind.FORCED
            question = pose(replace(now, sizes=sizes, highest=highest), self._settings, forced=forced)
            solution = replace(solution, status=Status.FEASIBLE, lower_bound=0.0)
        plan = self._made_possible(question, self._with_unmeasured(solution.assignment))
        plan = Assignment({p: c for p, c in plan.items() if p in question.problem.speeds})
        self._replan_asked = self._replan_asked and not now.manual
        self._in_vain = frozenset[Cause]().union(*(trigger.causes for trigger in then.triggers))
        self._vanished.clear()
        commands = self._decide(self._asked, question, replace(solution, assignment=plan))
        self._lost.clear()
        return commands

    def _made_possible(self, question: Question, plan: Assignment) -> Assignment:
        """The plan with numbers that consumers can have, and a consumer for each partition that is to be read."""
        problem, desired, alive = question.problem, self._desired.consumers, self._alive
        reserved = set(self._settings.pins.values()) - self._taken
        idle = sorted(alive - desired - reserved)
        plan = numbered(plan, alive | desired | reserved, idle, self._free)
        at_once = {consumer for consumer in alive if self.group[consumer].accepts_partitions}
        unread = problem.speeds.keys() - plan.keys()
        begin = alive | desired | plan.consumers
        if question.situation.limit is None:
            begin |= {problem.pinned[partition] for partition in unread & problem.pinned.keys()}
        most = problem.max_consumers or self._settings.max_consumers
        free = (number for number in self._free if number not in begin)
        new = islice(free, max(0, most - len(plan.consumers)))
        able = (at_once, begin - at_once)
        return mended(plan, unread, problem.speeds, self._settings.packing, able, new, problem.pinned)

    def _decide(self, number: int, question: Question, solution: Solution) -> list[Command]:
        """Records the plan, and whether it is carried out or let be."""
        record = decide(
            number=number,
            epoch=self._epoch,
            at=self._now,
            question=question,
            solution=solution,
            restraints=self._restraints,
        )
        if record.carried_out:
            self._in_vain, self._carried = frozenset(), number
            self._desired = self._with_unmeasured(solution.assignment)
            shrinks = fewer_consumers(question, solution.assignment)
            self._restraints.carried_out(self._now, record.plan.rscore, fewer_consumers=shrinks)
        return [Publish(record)]

    def _with_unmeasured(self, plan: Assignment) -> Assignment:
        """The plan, and the partitions that have no speed yet where they are: what is not known is not moved."""
        unmeasured = {p: c for p, c in self._desired.items() if p in self._interest.named and p not in plan}
        return Assignment({**unmeasured, **plan})

    # Manage

    def _carry_out(self) -> list[Command]:
        due = self._now - self._settings.acknowledge_timeout_s
        steps = next_steps(self._desired, self.group, due, self._spares)
        self._done = steps.done
        commands: list[Command] = []
        for consumer in () if self._holds else steps.create:
            self.group.add(consumer, self._now)
            self._creating.add(consumer)
            commands.append(CreateConsumer(consumer, self._carried))
        for action, consumers in ((Action.STOP, steps.stop), (Action.START, steps.start)):
            for consumer, partitions in consumers.items():
                commands.append(self._send(consumer, action, partitions))
        for consumer in steps.delete:
            self.group.condemn(consumer)
            commands.append(DeleteConsumer(consumer, self._carried))
        return commands

    @property
    def _counted_on(self) -> dict[ConsumerId, bool]:
        """All consumers that are not gone, and whether each is counted on."""
        return {consumer: not self.group[consumer].condemned for consumer in self.group}

    @property
    def _alive(self) -> Set[ConsumerId]:
        """The consumers that are counted on."""
        return {consumer for consumer, counted_on in self._counted_on.items() if counted_on}

    @property
    def _taken(self) -> Set[ConsumerId]:
        """Numbers of consumers that are not counted on and not gone: a node that hangs may never let go of its own."""
        return {consumer for consumer, counted_on in self._counted_on.items() if not counted_on}

    @property
    def _free(self) -> Iterator[ConsumerId]:
        """Numbers that new consumers may have: the lowest, but those that could not be created come last. Costs nothing
        until the first is taken."""
        taken = self.group.keys() | self._desired.consumers | set(self._settings.pins.values())
        numbers = (number for number in range(1, self._settings.highest_consumer + 1) if number not in taken)
        yield from sorted(numbers, key=lambda number: (self._refused[number] // TRIES, number))

    @property
    def _holds(self) -> bool:
        """Whether no consumers are created for a while, after failures."""
        return self._now < self._failed_at + self._backoff_s

    @property
    def _spares(self) -> Set[ConsumerId]:
        """The consumers without a partition that shall exist; no new ones for a while after a failure."""
        needed = self._desired.consumers | (set(self._settings.pins.values()) - self._taken)
        limit = self._creation_limit
        most = self._settings.max_consumers if limit is None else min(self._settings.max_consumers, limit.most)
        most = 0 if self._holds else most
        return spares(self._settings.spare_consumers, needed, self._counted_on, most, self._free)

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
