"""From what is known of a group to a decision: capacity, limits, question, answer, numbers, spares, restraints, record.

The machine asks for a decision when one is due, and whoever looks on at any moment, with what the topics tell (`kcga
plan`). There is no other way to one.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from itertools import chain
from operator import attrgetter

from controller.decide.climb import Climb
from controller.decide.forecast import QUANTILE, Forecast
from controller.decide.group import Group, Member
from controller.decide.horizon import Horizon
from controller.decide.idleness import Idleness
from controller.decide.interest import Interest
from controller.decide.mending import class_for, mended, numbered
from controller.decide.parking import Parking
from controller.decide.periods import scheduled
from controller.decide.plan import decide
from controller.decide.question import Question, Situation, pose, with_room
from controller.decide.restraint import Restraints
from controller.decide.rollout import Rollout
from controller.decide.sizes import Size, Sizes
from controller.decide.spares import spares
from controller.decide.triggers import (
    REPLAN,
    Trigger,
    foreseen,
    nothing_to_read,
    outdated,
    placed,
    something_to_read,
    triggers,
)
from controller.settings import ControllerSettings
from domain.assignment import Assignment, ConsumerId
from domain.consumer_class import ORDINARY, ConsumerClass, class_names
from domain.messages import ConsumerReport, ConsumerState, CreationLimit, Decision, DecisionKind, Foresight
from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds
from solver.evaluation import Evaluation, evaluate
from solver.solution import Solution, Status

BY_RULE = "best-fit"
"""The engine that a decision names where partitions were given to consumers at once."""
ROLLOUT = "rollout"
"""The engine that a decision names where a consumer is replaced by another with all that it has."""
ZERO = "scale-to-zero"
"""The engine that a decision names where nobody reads any more, for there is nothing to read."""
OUTGROWN = 1.25
"""Where partitions together have become so many times what the solver's newest decision rests on, it is asked again at
once: that was a jump, and half known by then."""
TRIES = 3
"""After so many failures in a row to create a consumer of a number, others are tried before it."""


class Decider:
    """What a decision rests on. Times are in seconds since the epoch, and never go back."""

    def __init__(self, settings: ControllerSettings, epoch: int) -> None:
        self.group = Group()
        self.epoch = epoch
        self.settings = settings
        """With the capacity that is learned."""
        self.restraints = Restraints(settings)
        self.interest = Interest()
        self.parking = Parking(settings.park_after_s)
        self.desired = Assignment()
        """Who reads what once the plan is carried out."""
        self.rollout = Rollout()
        self.replan_asked = False
        self.limit: CreationLimit | None = None
        """The newest; it may be over."""
        self.refused: Counter[ConsumerId] = Counter()
        """How often in a row each number could not be created."""
        self._sizes = Sizes(settings.recovery_time_s, settings.consumer_capacity, settings.classes)
        self._idleness = Idleness(settings.speeds_timeout_s)
        self._forecast = Forecast() if settings.forecast else None
        self._climb = Climb() if settings.forecast else None
        self.horizon = Horizon()
        self._planned_classes: dict[ConsumerId, str] = {}
        """Of those that plans have named: one that is not made yet, or is gone, is of the class that was planned."""
        self._measured_at = 0.0
        """By the monitor's clock."""
        self._vanished: set[TopicPartition] = set()
        """The partitions that have ceased to be of interest since the assignment was last considered."""
        self._fallen: set[ConsumerId] = set()
        """Consumers that have just ceased to read what they were to."""
        self._lost: dict[TopicPartition, ConsumerId] = {}
        """What nobody read, or reads, because its consumer is gone, and which one that was; until a plan is made."""
        self._stuck = False
        """The newest plan of the solver was held back: what asks for one may stay as it is."""
        self._solved_at = -math.inf
        """When the solver's newest decision was made."""
        self._planned_for: Mapping[TopicPartition, float] = {}
        """What it rests on: the speed of each partition, in bytes/s."""
        self._outgrown = False
        """All of these together are `OUTGROWN` times as much by the newest speeds, or more."""
        self._placed: tuple[int, tuple[str, ...]] = (0, ())
        """The decision that gave partitions to consumers by rule and was not looked at again since, and its reasons."""

    # What is known

    @property
    def sizes(self) -> Mapping[TopicPartition, Size]:
        """The newest known size of each partition of interest, but for what is parked; on trial one weighs nothing."""
        present, parked, on_trial = self._sizes.present, self.parking.parked, self.parking.on_trial
        if not (parked or on_trial):
            return present
        weighed = {p: Size(0.0) if p.topic in on_trial else size for p, size in present.items()}
        return {p: size for p, size in weighed.items() if p.topic not in parked}

    def _has_outgrown(self) -> bool:
        sizes, planned_for = self.sizes, self._planned_for
        present = math.fsum(sizes[partition].total for partition in planned_for if partition in sizes)
        return present >= OUTGROWN * math.fsum(planned_for.values()) > 0

    @property
    def _wanted(self) -> frozenset[TopicPartition]:
        """The partitions of interest, but for what is parked."""
        named, parked = self.interest.named, self.parking.parked
        return frozenset(p for p in named if p.topic not in parked) if parked else named

    def measured(self, at: float, speeds: WriteSpeeds) -> None:
        """Speeds came. From then on it decides by what consumers have told of themselves, if it is to."""
        self._hear_of(speeds)
        self._sizes.measured(speeds)
        self._outgrown = self._has_outgrown()
        self._idleness.measured(at, speeds, self._wanted)
        self.restraints.highest.record(at, speeds.measured_at, self.sizes)
        self.horizon.measured(speeds.window_s)
        if self._forecast is not None:
            self._forecast.measured(speeds.measured_at, speeds.bytes_per_s)
        if self._climb is not None:
            self._climb.measured(speeds.measured_at, speeds.bytes_per_s)

    def recalled(self, speeds: WriteSpeeds) -> None:
        """The last known speeds, of any age."""
        self._hear_of(speeds)
        self._sizes.recalled(speeds)
        self._idleness.recalled(speeds)

    def _hear_of(self, speeds: WriteSpeeds) -> None:
        self.interest.hear(speeds)
        self._measured_at = speeds.measured_at
        told = [member.throughput for member in self.group.values() if member.throughput is not None]
        self.learned(self.settings.having_learned(told))

    def learned(self, settings: ControllerSettings) -> None:
        """The same settings, with another capacity."""
        self.settings = self.restraints.settings = settings
        self._sizes.capacity = settings.consumer_capacity

    def heard(self, at: float, report: ConsumerReport) -> Member | None:
        """The consumer that reported; None where that says nothing new."""
        member = self.group.get(report.consumer)
        before = member.incarnation if member else None
        if member is None or not self.group.receive(report, at):
            return None
        self.parking.heard(at, report)
        if before not in (None, member.incarnation) or member.state is ConsumerState.LEAVING:
            self._fallen.add(member.consumer)
        return member

    def fell(self, consumer: ConsumerId) -> None:
        """It reads nothing any more, or is not counted on, and was not told to end."""
        self._fallen.add(consumer)

    def class_of(self, consumer: ConsumerId) -> ConsumerClass:
        """Of a consumer that there is, or that a plan has named."""
        member = self.group.get(consumer)
        name = self._planned_classes.get(consumer, ORDINARY) if member is None else member.class_name
        return self.settings.class_named(name)

    def class_to_be(self, consumer: ConsumerId) -> str:
        """Of which class a consumer is to be created: one without a partition by the plan is ordinary."""
        return self.class_of(consumer).name if consumer in self.desired.consumers else ORDINARY

    @property
    def lost(self) -> frozenset[ConsumerId]:
        """Who is gone of what is to be read; until a plan is made."""
        return frozenset(self._lost.values())

    def saw_revisions(self, revision: str | None, outdated: frozenset[ConsumerId]) -> None:
        """What consumers begin with now, and who began with another. What could not be created before may be now."""
        if revision != self.rollout.revision:
            self.limit, self._stuck = None, False
        self.rollout.seen(revision, outdated)

    def take_as_found(self) -> None:
        """Nothing was decided yet: who reads what is as it is to be."""
        self.desired = self.group.assignment
        self.interest.add_read(self.desired.keys())

    def catch_up(self, at: float) -> None:
        """What is gone or parked is to be read by nobody; what a consumer that fell was to read stays with who reads it
        still."""
        if gone := self.interest.gone:
            for partition in gone & self._sizes.present.keys():
                self._sizes.forget(partition)
            self.parking.forget({p.topic for p in gone} - {p.topic for p in self.interest.named})
        self.parking.pass_time(at)
        if parked := self.parking.parked:
            self.desired = Assignment({p: c for p, c in self.desired.items() if p.topic not in parked})
            self._lost = {p: c for p, c in self._lost.items() if p.topic not in parked}
        vanished = self.interest.gone & self.desired.keys()
        if vanished:
            self._vanished |= vanished
            self.desired = Assignment({p: c for p, c in self.desired.items() if p not in vanished})
        fallen = self._fallen & self.desired.consumers
        self._fallen.clear()
        if fallen:
            readers = self.group.assignment
            held = {p: readers.get(p) if c in fallen else c for p, c in self.desired.items()}
            self._lost |= {p: self.desired[p] for p, c in held.items() if c is None}
            self.desired = Assignment({p: c for p, c in held.items() if c is not None})

    def _unread(self, at: float) -> frozenset[TopicPartition]:
        """What is to be read and belongs to nobody."""
        return frozenset() if self.rests(at) else self._known - self.desired.keys()

    @property
    def _known(self) -> frozenset[TopicPartition]:
        """What is to be read, once it was measured."""
        return self._wanted & (self.sizes.keys() | self._lost.keys())

    @property
    def _can_rest(self) -> bool:
        return self.settings.min_consumers == 0 and not self.desired and not self._lost

    def rests(self, at: float) -> bool:
        """Whether nobody reads, and nobody has to: there is nothing to read, and no schedule wants a consumer."""
        return (
            self._can_rest
            and bool(self._known)
            and self._known <= self._idleness.quiet
            and not scheduled(self.settings.schedules, at)
        )

    def why(self, at: float) -> tuple[Trigger, ...]:
        """Why the assignment has to be considered; empty where nothing but the interval asks for it."""
        replan = (REPLAN,) if self.replan_asked else ()
        return (*replan, *map(placed, self._placed[1]), *self._triggers(at))

    def _triggers(self, at: float) -> tuple[Trigger, ...]:
        unread = self._unread(at)
        lost = {consumer for partition, consumer in self._lost.items() if partition in unread}
        largest = self.settings.largest
        fewest = scheduled(self.settings.schedules, at)
        sizes, horizon_s = self.sizes, self.horizon.seconds
        grown = self._grown(sizes, self._proven)
        return (
            *(something_to_read(unread - self._idleness.quiet) if self._can_rest else ()),
            *triggers(self.desired, sizes, self._capacity_of, largest, unread, self._vanished, lost, fewest),
            *(() if grown is sizes else foreseen(self.desired, grown, self._capacity_of, largest, horizon_s)),
        )

    @property
    def _proven(self) -> Mapping[TopicPartition, float]:
        """What partitions are foreseen to be written at, at the horizon, by what was proven; in bytes/s."""
        return {} if self._forecast is None else self._forecast.upper(self.horizon.seconds, self.desired)

    def _grown(
        self, sizes: Mapping[TopicPartition, Size], foreseen: Mapping[TopicPartition, float]
    ) -> Mapping[TopicPartition, Size]:
        """With what is foreseen; what is on trial has no weight then either."""
        if not foreseen:
            return sizes
        largest, on_trial = self.settings.largest, self.parking.on_trial
        growing = {p: most for p, most in foreseen.items() if p in sizes and p.topic not in on_trial}
        return {**sizes, **{p: sizes[p].growing_to(most, largest) for p, most in growing.items()}}

    @property
    def foresight(self) -> Foresight | None:
        """How far ahead it looks, and how well; None where it does not."""
        if self._forecast is None:
            return None
        outlook = self._forecast.at(self.horizon.seconds)
        return Foresight(
            horizon_s=self.horizon.seconds,
            quantile=QUANTILE,
            partitions=outlook.partitions,
            due=outlook.due,
            held=outlook.held,
        )

    def _capacity_of(self, consumer: ConsumerId) -> float:
        return self.class_of(consumer).capacity

    def limit_at(self, at: float) -> CreationLimit | None:
        """What holds then because a consumer could not be created."""
        return self.limit if self.limit is not None and at < self.limit.until else None

    # What is decided

    def place(self, at: float, number: int) -> Decision | None:
        """Gives what nobody reads to somebody at once, by rule; None where there is nothing, or nobody."""
        if not self._unread(at):
            return None
        question = pose(self._situation(at, self._triggers(at)), self.settings)
        question, plan = self._made_possible(question, self.desired, {})
        if not plan.keys() - self.desired.keys():
            return None
        figures = evaluate(question.problem, plan)
        plan = Assignment({p: c for p, c in plan.items() if p in question.problem.speeds})
        return self._decide(at, number, question, by_rule(BY_RULE, plan, figures))

    def rest(self, at: float, number: int) -> Decision | None:
        """Has nobody read any more, if there may be no consumer and there was nothing to read for long enough."""
        settings = self.settings
        if settings.min_consumers > 0 or not self.desired or self.replan_asked:
            return None
        if not self._idleness.lasted(settings.idle_time_s, at) or self.restraints.on_rest(at):
            return None
        if scheduled(settings.schedules, at):
            return None
        question = pose(self._situation(at, (nothing_to_read(settings.idle_time_s),)), settings)
        question = replace(question, grounds=DecisionKind.VOLUNTARY, rests=True)
        nobody = Assignment()
        return self._decide(at, number, question, by_rule(ZERO, nobody, evaluate(question.problem, nobody)))

    def renew(self, at: float, number: int) -> Decision | None:
        """Replaces the next consumer that began with another revision, if it is time, and it has partitions.

        One without any is only marked as the one to go.
        """
        rollout = self.rollout
        if rollout.retiring not in self.group.alive or rollout.retiring in self.desired.consumers:
            rollout.retiring = None
        consumer = rollout.next(self.group.values(), self.desired)
        if rollout.retiring is not None or consumer is None or self.restraints.paused:
            return None
        if self._unread(at) or self._placed[1] or self.replan_asked or (self._triggers(at) and not self._stuck):
            return None
        if consumer not in self.desired.consumers:
            rollout.retiring = consumer
            return None
        idle = sorted(self.group.alive - self.desired.consumers - self._reserved - rollout.outdated)
        up_to_date = (each for each in idle if self.class_of(each) == self.class_of(consumer))
        new = next(chain(up_to_date, self._free if self.limit_at(at) is None else ()), None)
        return None if new is None else self._replace(at, number, consumer, new)

    def _replace(self, at: float, number: int, consumer: ConsumerId, new: ConsumerId) -> Decision | None:
        """What the one has goes to the other; None where that has to wait."""
        situation = self._situation(at, (outdated(consumer),))
        unmeasured = dict.fromkeys(self.desired.by_consumer[consumer], self._mean_size)
        sizes, highest = {**unmeasured, **situation.sizes}, {**unmeasured, **situation.highest}
        names = {**situation.class_names, new: self.class_of(consumer).name} if situation.class_names else {}
        situation = replace(situation, sizes=sizes, highest=highest, class_names=names, manual=True)
        question = pose(situation, self.settings)
        plan = Assignment({p: new if c == consumer else c for p, c in self.desired.items() if p in sizes})
        figures = evaluate(question.problem, plan)
        if self.restraints.on_replacement(at, figures.rscore):
            return None
        self.rollout.retiring = consumer
        solution = by_rule(ROLLOUT, plan, figures)
        return self._decide(at, number, replace(question, replaced=consumer), solution)

    def jumped(self, at: float) -> bool:
        """Whether the load has outgrown a decision of the solver that is not `least_interval_s` old: what grows so fast
        is not foreseen to climb on."""
        return self._outgrown and at < self._solved_at + self.settings.least_interval_s

    def ask(self, at: float, why: tuple[Trigger, ...]) -> Question:
        """What the solver is asked."""
        return pose(self._situation(at, why), self.settings, forced=bool(self._placed[1]))

    def answered(self, at: float, number: int, question: Question, solution: Solution) -> Decision:
        """What is decided by the answer, which holds from now on."""
        decision = self.judged(at, number, question, solution)
        self.decided(at, decision)
        return decision

    def judged(self, at: float, number: int, question: Question, solution: Solution) -> Decision:
        """Mends the answer where the group has changed meanwhile, and judges it by how things are now."""
        then, now = question.situation, self._situation(at, question.situation.triggers)
        rests_on = attrgetter("planned", "taken", "class_names")
        if rests_on(then) != rests_on(now) or then.sizes.keys() != now.sizes.keys():
            sizes = {partition: then.sizes.get(partition, size) for partition, size in now.sizes.items()}
            highest = {partition: then.highest.get(partition, size) for partition, size in now.highest.items()}
            forced = question.grounds is DecisionKind.FORCED
            climbing = {partition: size for partition, size in then.climbing.items() if partition in sizes}
            now = replace(now, sizes=sizes, highest=highest, climbing=climbing)
            question = pose(now, self.settings, forced=forced)
            solution = replace(solution, status=Status.FEASIBLE, lower_bound=0.0)
        question, plan = self._made_possible(question, solution.assignment, solution.classes)
        plan = Assignment({p: c for p, c in plan.items() if p in question.problem.speeds})
        return self._judge(at, number, question, replace(solution, assignment=plan))

    def decided(self, at: float, decision: Decision) -> None:
        """What a decision of this epoch changes, whether or not it is carried out."""
        if decision.engine == BY_RULE:
            self._placed = decision.number, decision.triggers
        elif decision.engine != ROLLOUT:
            if self._placed[0] < decision.number:
                self._placed = 0, ()
            self.replan_asked = self.replan_asked and decision.grounds is not DecisionKind.MANUAL
            self._stuck = not decision.carried_out
            self._vanished.clear()
            self._lost.clear()
            self._solved_at = at
            self._planned_for = {entry.key: entry.speed for entry in decision.assignment}
            self._outgrown = self._has_outgrown()
        if decision.carried_out:
            planned = {entry.key: entry.consumer for entry in decision.assignment}
            self.desired = Assignment() if decision.engine == ZERO else self._with_unmeasured(planned)
            kept = {c: n for c, n in self._planned_classes.items() if c not in self.desired.consumers}
            self._planned_classes = kept | class_names(decision.classes)
            self.restraints.carried_out(at, decision)

    def _decide(self, at: float, number: int, question: Question, solution: Solution) -> Decision:
        decision = self._judge(at, number, question, solution)
        self.decided(at, decision)
        return decision

    def _judge(self, at: float, number: int, question: Question, solution: Solution) -> Decision:
        return decide(
            number=number,
            epoch=self.epoch,
            at=at,
            question=question,
            solution=solution,
            restraints=self.restraints,
        )

    def _situation(self, at: float, why: tuple[Trigger, ...]) -> Situation:
        readers = self.group.assignment
        wanted = self._wanted
        unweighed = self._lost.keys() & wanted - self.sizes.keys()
        present = {} if self.rests(at) else {**dict.fromkeys(unweighed, self._mean_size), **self.sizes}
        current = Assignment({p: c for p, c in self.desired.items() if p in readers})
        proven = self._proven
        climbing = {} if self._climb is None or self.jumped(at) else self._climb.most(self.horizon.acting_s)
        foreseen = {**climbing, **proven}
        grown = self._grown(present, foreseen)
        return Situation(
            triggers=why,
            sizes=self._grown(present, proven),
            climbing={p: grown[p] for p in climbing.keys() & present.keys() - proven.keys()},
            falling=0.0 if self._climb is None else self._climb.fall(self.horizon.acting_s),
            highest=self._grown(self.restraints.highest.over(present), foreseen),
            foresight=self.foresight,
            measured_at=self._measured_at,
            current=current,
            gone={p: c for p, c in self._lost.items() if p not in current},
            named=wanted,
            missing=wanted - self._sizes.fresh,
            paused=self.restraints.paused,
            manual=REPLAN in why,
            limit=self.limit_at(at),
            planned=self.desired,
            scheduled=scheduled(self.settings.schedules, at),
            taken=self.group.taken,
            unweighed=frozenset(c for p, c in self.desired.items() if p not in present),
            class_names=self._class_names,
            prices_gone={c: self.class_of(c).price for c in self.lost},
            parked={each.topic: each.reason for each in self.parking.standing if each.topic in self.parking.parked},
        )

    @property
    def _class_names(self) -> dict[ConsumerId, str]:
        """Of each consumer that is counted on, or that is to read; where there are no classes, nothing is said."""
        consumers = self.group.alive | self.desired.consumers if self.settings.classes else ()
        return {consumer: self.class_of(consumer).name for consumer in consumers}

    @property
    def _mean_size(self) -> Size:
        """What a partition of unknown size is taken for; where none is known, all are equal, and consumers full."""
        if self.sizes:
            return Size(math.fsum(size.total for size in self.sizes.values()) / len(self.sizes))
        return Size(self.settings.packing * max(1, len(self.desired.consumers)) / max(1, len(self._wanted)))

    def _made_possible(
        self, question: Question, plan: Assignment, classes: Mapping[ConsumerId, ConsumerClass]
    ) -> tuple[Question, Assignment]:
        """The plan with numbers that consumers can have, and a consumer for each partition that is to be read; and the
        question with the class of each of them.

        Args:
            question: that it answers.
            plan: who shall read what.
            classes: of the plan's consumers, as far as they are new.
        """
        question, plan = self._numbered(question, plan, classes)
        problem, desired, alive = question.problem, self.desired.consumers, self._staying
        at_once = {consumer for consumer in alive if self.group[consumer].accepts_partitions}
        unread = problem.speeds.keys() - plan.keys()
        begin = alive | desired | plan.consumers
        most = problem.max_consumers or self.settings.max_consumers
        pins = {p: problem.pinned[p] for p in unread & problem.pinned.keys()}
        if question.situation.limit is not None:
            pins = {p: c for p, c in pins.items() if c in begin}
        pins = with_room(pins, plan.consumers, most)
        begin |= set(pins.values())
        new = (number for number in self._free if number not in begin)
        plan = mended(problem, plan, (at_once, begin - at_once), new, pins, most)
        if problem.classes:
            fastest = {c: max(problem.speeds.get(p, 0.0) for p in held) for c, held in plan.by_consumer.items()}
            opened = {c: class_for(problem, fastest[c]).name for c in fastest.keys() - problem.class_names.keys()}
            problem = replace(problem, class_names={**problem.class_names, **opened})
        return replace(question, problem=problem), plan

    def _numbered(
        self, question: Question, solved: Assignment, classes: Mapping[ConsumerId, ConsumerClass]
    ) -> tuple[Question, Assignment]:
        """The plan with numbers that consumers of their classes can have, and with what is not measured; and the
        question with those classes."""
        problem, desired, alive = question.problem, self.desired.consumers, self._staying
        there_is = problem.class_names
        planned = {**there_is, **{c: of.name for c, of in classes.items() if of in problem.every_class}}
        others = {c for c, name in planned.items() if there_is.get(c, name) != name}
        kept = (alive | desired | self._reserved) - others
        idle = {each: there_is.get(each, ORDINARY) for each in sorted(alive - desired - self._reserved)}
        plan = numbered(solved, kept, idle, self._free, planned)
        if problem.classes:
            new_ones = {c: planned.get(solved[p], ORDINARY) for p, c in plan.items() if c not in there_is}
            problem = replace(problem, class_names={**there_is, **new_ones})
        unmeasured = {p: c for p, c in self._with_unmeasured(solved).items() if p not in solved}
        return replace(question, problem=problem), Assignment({**unmeasured, **plan})

    def _with_unmeasured(self, plan: Mapping[TopicPartition, ConsumerId]) -> Assignment:
        """The plan, and the partitions that have no speed yet where they are: what is not known is not moved."""
        wanted = self._wanted
        unmeasured = {p: c for p, c in self.desired.items() if p in wanted and p not in plan}
        return Assignment({**unmeasured, **plan})

    # Which consumers there are to be

    @property
    def _staying(self) -> Set[ConsumerId]:
        """Those that are counted on, but for the one that is being replaced."""
        return self.group.alive - {self.rollout.retiring}

    @property
    def _reserved(self) -> Set[ConsumerId]:
        """Those that partitions are pinned to, if they can be."""
        return set(self.settings.pins.values()) - self.group.taken

    @property
    def avoided(self) -> tuple[ConsumerId, ...]:
        """Numbers that could not be created too often: others are tried before them, and they in this order."""
        return tuple(sorted((n for n, times in self.refused.items() if times >= TRIES), key=self._last_resort))

    def _last_resort(self, number: ConsumerId) -> tuple[int, ConsumerId]:
        return self.refused[number] // TRIES, number

    @property
    def _free(self) -> Iterator[ConsumerId]:
        """Numbers that new consumers may have: the lowest, but those that could not be created come last. Costs nothing
        until the first is taken."""
        taken = self.group.keys() | self.desired.consumers | set(self.settings.pins.values())
        numbers = (number for number in range(1, self.settings.highest_consumer + 1) if number not in taken)
        yield from sorted(numbers, key=self._last_resort)

    def spares(self, at: float, *, none_made: bool) -> Set[ConsumerId]:
        """The consumers without a partition that shall exist; `none_made`: no others than there are."""
        wanted = max(self.settings.spare_consumers, self._awaits_speeds)
        if not wanted:
            return frozenset()
        limit = self.limit_at(at)
        most = self.settings.max_consumers if limit is None else min(self.settings.max_consumers, limit.most)
        needed = self.desired.consumers | self._reserved
        ordinary = {consumer for consumer in self._staying if self.class_of(consumer).name == ORDINARY}
        return spares(wanted, needed, ordinary, 0 if none_made else most, self._free)

    @property
    def _awaits_speeds(self) -> bool:
        """Whether there is something to read and no speed is known yet: one consumer begins while they are measured."""
        return bool(self._wanted) and not (self._known or self.desired) and self.settings.min_consumers > 0


def by_rule(engine: str, plan: Assignment, figures: Evaluation) -> Solution:
    """A plan that was not searched for, with what it costs."""
    return Solution(
        assignment=plan,
        engine=engine,
        status=Status.HEURISTIC,
        consumers=figures.consumers,
        rscore=figures.rscore,
        objective=figures.objective,
        lower_bound=0.0,
        seconds=0.0,
        excess=figures.excess,
    )
