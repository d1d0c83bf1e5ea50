"""What the solver is asked, and on what grounds.

Where the assignment cannot stay as it is, the plan is forced: it is made for the present sizes, so that the group
grows at once, and it never has fewer consumers than there are, nor cheaper ones. Where it can stay, only a plan whose
consumers cost less can be cheaper (nothing else makes up for a migration), so it is made for the highest sizes of the
scale-down window, which must fit. Sizes are with what is foreseen to come until a plan is carried out: the group grows
before it is too late, and does not shrink into a climb, though a climb alone forces no plan; and where most partitions
are foreseen to grow, a forced plan need not leave as much room for growth. A consumer that gives partitions up on a
climb keeps a little less than it reads, if there may be more consumers. A paused controller only gives partitions that
nobody reads to somebody: all others are immovable. For a while after a consumer could not be created, there are to be
no more consumers than there could be, and none of a class of which there is none.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field

from controller.decide.sizes import Size
from controller.decide.triggers import Trigger
from controller.settings import ControllerSettings
from domain.assignment import Assignment, ConsumerId
from domain.consumer_class import ORDINARY, ConsumerClass
from domain.messages import CreationLimit, DecisionKind, Foresight
from domain.partitions import TopicPartition
from domain.speeds import LEAST_CAPACITY
from solver.evaluation import evaluate
from solver.problem import Problem
from solver.solution import Solution

RELIEVED = 0.97
"""The share of its capacity up to which a consumer that gives partitions up is filled by what is foreseen."""

Solve = Callable[[Problem, str], Solution]
"""Answers a question by the engine of that name."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known when the assignment is considered."""

    triggers: tuple[Trigger, ...]
    sizes: Mapping[TopicPartition, Size]
    """The newest known ones, with what is foreseen."""
    highest: Mapping[TopicPartition, Size]
    """Of the same partitions, over the scale-down window and as far ahead as is foreseen."""
    measured_at: float
    current: Assignment
    """Who reads what."""
    gone: Mapping[TopicPartition, ConsumerId]
    """The partitions that nobody reads because their consumer is gone, and which one that was."""
    named: Set[TopicPartition]
    """All partitions of interest, those without any known speed included."""
    missing: Set[TopicPartition]
    """Those of them of which not all that counts was measured when speeds came last."""
    paused: bool = False
    manual: bool = False
    """An operator asked for a plan."""
    limit: CreationLimit | None = None
    """What holds now because a consumer could not be created."""
    climbing: Mapping[TopicPartition, Size] = field(default_factory=dict)
    """What those of `sizes` lead to that are on a climb: it may end at once and is no reason for a plan, but one that
    is made is for that."""
    falling: float = 0.0
    """The share of their speed that all partitions lose together until a plan is carried out."""
    planned: Assignment | None = None
    """Who reads what once the plan under way is carried out; None for `current`."""
    scheduled: int = 0
    """So many consumers a schedule wants at least now."""
    taken: Set[ConsumerId] = frozenset()
    """Numbers of consumers that hang: what is pinned to them is read elsewhere until they are gone."""
    unweighed: Set[ConsumerId] = frozenset()
    """Consumers that hold partitions of unknown size: they take nothing more."""
    class_names: Mapping[ConsumerId, str] = field(default_factory=dict)
    """The class of each consumer that there is, or is about to be; nothing is said where there are no classes."""
    prices_gone: Mapping[ConsumerId, float] = field(default_factory=dict)
    """What each consumer cost of which partitions are `gone`, in ordinary ones."""
    parked: Mapping[str, str] = field(default_factory=dict)
    """Topics that are left out, and why."""
    foresight: Foresight | None = None
    """How far ahead was looked; None where it was not."""

    @property
    def foresees_most(self) -> bool:
        """Whether something is proven of more than half of the partitions."""
        return self.foresight is not None and 2 * self.foresight.partitions > len(self.sizes)


@dataclass(frozen=True, slots=True)
class Question:
    """A problem, and how it came about."""

    situation: Situation
    grounds: DecisionKind
    problem: Problem
    sizes: Mapping[TopicPartition, Size]
    """What the problem takes for the partitions' speeds, and what of that is backlog."""
    not_keepable: tuple[str, ...]
    """The rules that changing nothing would break, a sentence each; empty where it breaks none."""

    limit: CreationLimit | None = None
    """What keeps the plan to fewer consumers than settings allow; None where nothing does."""
    replaced: ConsumerId | None = None
    """The plan is to give what this consumer has to another one, as it is, whatever it costs."""
    rests: bool = False
    """The plan is that nobody reads, for there is nothing to read."""

    @property
    def kept(self) -> Assignment:
        """Changing nothing: the plan under way is completed."""
        return _kept(self.situation, self.problem.speeds)

    @property
    def consumers_before(self) -> int:
        """How many had partitions by the plan before, with those that were lost since."""
        return len(self._before)

    @property
    def price_before(self) -> float:
        """Of the same, in ordinary consumers."""
        prices, there_is = self.situation.prices_gone, self.problem.known_class
        return math.fsum(of.price if (of := there_is(c)) else prices.get(c, 1.0) for c in self._before)

    @property
    def _before(self) -> Set[ConsumerId]:
        kept = self.kept
        return kept.consumers | {c for partition, c in self.situation.gone.items() if partition not in kept}


def _kept(situation: Situation, speeds: Iterable[TopicPartition]) -> Assignment:
    kept = situation.current if situation.planned is None else situation.planned
    return Assignment({partition: kept[partition] for partition in speeds if partition in kept})


def pose(situation: Situation, settings: ControllerSettings, *, forced: bool = False) -> Question:
    """The question that the situation asks; `forced`: what was to be read at once has been placed by rule."""
    sizes = {**situation.sizes, **situation.climbing}
    most = _most_consumers(situation, settings)
    limit = situation.limit if most < min(settings.max_consumers, len(sizes)) else None
    fewest = max(settings.min_consumers, situation.scheduled)
    settings = settings.model_copy(update={"max_consumers": most, "min_consumers": fewest})
    kept = _kept(situation, sizes)
    broken = evaluate(_problem(situation, settings, situation.sizes), kept).violations
    if situation.manual:
        problem = _problem(situation, settings, sizes)
        return Question(situation, DecisionKind.MANUAL, problem, sizes, broken, limit)
    if not broken and not forced:
        problem = _problem(situation, settings, situation.highest)
        return Question(situation, DecisionKind.VOLUNTARY, problem, situation.highest, broken, limit)
    if situation.paused:
        problem = _problem(situation, settings, sizes, immovable=kept)
    else:
        there_are = len(situation.current.consumers)
        keeping = _kept_busy(situation, settings, sizes) if there_are <= most else frozenset[TopicPartition]()
        packing = settings.packing_ahead if situation.foresees_most else settings.packing
        problem = _problem(
            situation, settings, sizes, packing=packing, at_least=there_are, keeping=keeping, relieving=there_are < most
        )
    return Question(situation, DecisionKind.FORCED, problem, sizes, broken, limit)


def _most_consumers(situation: Situation, settings: ControllerSettings) -> int:
    """How many consumers there are to be at most. A limit never takes away those that read, or that pins name."""
    if situation.limit is None:
        return settings.max_consumers
    needed = situation.current.consumers | (set(settings.pins.values()) - situation.taken)
    return min(settings.max_consumers, max(1, situation.limit.most, len(needed)))


def with_room(
    pins: Mapping[TopicPartition, ConsumerId], consumers: Set[ConsumerId], most: int
) -> dict[TopicPartition, ConsumerId]:
    """The pins to consumers that read, and to as many others as may: to be read goes before where it is pinned."""
    others = sorted(set(pins.values()) - consumers)[: max(0, most - len(consumers))]
    return {partition: consumer for partition, consumer in pins.items() if consumer in {*consumers, *others}}


def _class_of(consumer: ConsumerId, situation: Situation, settings: ControllerSettings) -> ConsumerClass:
    return settings.class_named(situation.class_names.get(consumer, ORDINARY))


def _kept_busy(
    situation: Situation, settings: ControllerSettings, sizes: Mapping[TopicPartition, Size]
) -> frozenset[TopicPartition]:
    """What keeps a partition with each consumer that could make way for a cheaper one: the fastest that it can read."""
    kept = set()
    cheapest = min(each.price for each in settings.every_class)
    for consumer, held in situation.current.by_consumer.items() if settings.classes else ():
        of = _class_of(consumer, situation, settings)
        movable = [p for p in held if p in sizes and p not in settings.pins]
        fastest = max(movable, key=lambda p: sizes[p].total, default=None)
        if fastest is None or of.price <= cheapest:
            continue
        if sizes[fastest].total <= of.capacity or of.capacity == settings.largest:
            kept.add(fastest)
    return frozenset(kept)


def _relieved(
    situation: Situation,
    settings: ControllerSettings,
    sizes: Mapping[TopicPartition, Size],
    fixed: Set[TopicPartition],
) -> dict[ConsumerId, float]:
    """What consumers keep at most, in bytes/s, that are foreseen to have too much: what comes may be a little more than
    was foreseen, and would have them give up another partition. What is `fixed` stays, and so may the fastest one."""
    relieved = {}
    for consumer, held in situation.current.by_consumer.items():
        of_it = {partition: sizes[partition] for partition in held if partition in sizes}
        capacity = _class_of(consumer, situation, settings).capacity
        foreseen = any(size.foreseen > 0 for size in of_it.values())
        if foreseen and math.fsum(size.total for size in of_it.values()) > capacity:
            fastest = max((size.total for size in of_it.values() if size.total <= capacity), default=0.0)
            stays = math.fsum(of_it[partition].total for partition in fixed & of_it.keys())
            relieved[consumer] = max(RELIEVED * capacity, fastest, min(stays, capacity))
    return relieved


def _problem(
    situation: Situation,
    settings: ControllerSettings,
    sizes: Mapping[TopicPartition, Size],
    *,
    packing: float | None = None,
    at_least: int = 0,
    keeping: Set[TopicPartition] = frozenset(),
    immovable: Assignment | None = None,
    relieving: bool = False,
) -> Problem:
    pinned: Mapping[TopicPartition, ConsumerId] = {
        partition: consumer
        for partition, consumer in settings.pins.items()
        if partition not in (immovable or ()) and consumer not in situation.taken
    }
    if immovable is not None:
        pinned = with_room(pinned, immovable.consumers, settings.max_consumers)
    speeds = {partition: size.total for partition, size in sizes.items()}
    names, classes = situation.class_names, settings.classes
    capacities = {c: _class_of(c, situation, settings).capacity for c in situation.unweighed}
    loads = situation.current.loads(speeds)
    full = {c: min(capacities[c], max(loads[c], LEAST_CAPACITY)) for c in situation.unweighed if c in loads}
    if relieving:
        full = _relieved(situation, settings, sizes, pinned.keys() | keeping) | full
    if situation.limit is not None:
        classes = tuple(each for each in classes if each.name in names.values())
    return Problem(
        speeds=speeds,
        capacity=settings.consumer_capacity,
        capacities=full,
        classes=classes,
        class_names=names if classes else {},
        packing_capacity=settings.packing if packing is None else packing,
        current=situation.current,
        migration_weight=settings.weight,
        min_consumers=min(settings.max_consumers, max(settings.min_consumers, at_least)),
        # A limit that cannot be reached is none: the solver knows shorter ways to a plan without it.
        max_consumers=settings.max_consumers if settings.max_consumers < len(sizes) else None,
        pinned=pinned,
        immovable=frozenset(immovable or keeping),
        time_limit_s=settings.time_limit_s,
        absolute_gap=min(settings.weight, 1.0) * settings.rscore_tolerance,
    )
