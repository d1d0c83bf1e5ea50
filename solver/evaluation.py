"""Judges an assignment against a problem: what it costs, and which rules it breaks. Decides nothing."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from domain.assignment import Assignment, ConsumerId
from domain.consumer_class import ConsumerClass
from domain.partitions import TopicPartition
from domain.rscore import rscore
from solver.problem import LOAD_TOLERANCE, Problem


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an assignment costs in a problem, and what is wrong with it."""

    consumers: int
    price: float
    """Of all of them, in ordinary consumers."""
    rscore: float
    objective: float
    saturated: tuple[TopicPartition, ...]
    """Partitions that are faster than their consumer, which they have to themselves; in ascending order."""
    excess: float
    """What is above the consumers' capacities, saturated partitions aside, in bytes/s over all consumers."""
    violations: tuple[str, ...]
    """A sentence for each rule that is broken."""
    classes: Mapping[ConsumerId, ConsumerClass]
    """Of the consumers that have partitions, in ascending order."""

    @property
    def is_feasible(self) -> bool:
        return not self.violations


def evaluate(problem: Problem, assignment: Assignment) -> Evaluation:
    """The cost of `assignment`, of which only the partitions that have a speed in `problem` count."""
    held = _held(problem, assignment)
    loads = {consumer: sum(map(problem.speeds.__getitem__, partitions)) for consumer, partitions in held.items()}
    classes = _classes(problem, held, loads)
    saturated: list[TopicPartition] = []
    excess = 0.0
    violations = list(_missing(problem, held))
    for consumer, partitions in held.items():
        load, of = loads[consumer], classes[consumer]
        capacity = problem.capacity_of(consumer, of)
        if load <= capacity * (1 + LOAD_TOLERANCE):
            violations += _filled_too_far(problem, consumer, of, partitions, load)
        elif _may_be_saturated(problem, consumer, of, partitions):
            saturated += partitions
        else:
            excess += load - capacity
            violations.append(f"consumer {consumer} has to read {load}, more than {capacity}")
    violations += _elsewhere_than_pinned(problem, assignment)
    violations += _too_many_or_few(problem, len(held))

    moved = (
        migration for migration in problem.current.migrations_to(assignment) if migration.partition in problem.speeds
    )
    score = rscore(moved, problem.speeds, problem.capacity)
    price = math.fsum(of.price for of in classes.values())
    return Evaluation(
        consumers=len(held),
        price=price,
        rscore=score,
        objective=price + problem.migration_weight * score,
        saturated=tuple(sorted(saturated)),
        excess=excess,
        violations=tuple(violations),
        classes=classes,
    )


def _held(problem: Problem, assignment: Assignment) -> dict[ConsumerId, list[TopicPartition]]:
    """The partitions of each consumer that has some, in ascending order of the consumers."""
    held: dict[ConsumerId, list[TopicPartition]] = {}
    for partition in problem.speeds:
        consumer = assignment.get(partition)
        if consumer is not None:
            held.setdefault(consumer, []).append(partition)
    return dict(sorted(held.items()))


def _classes(
    problem: Problem, held: Mapping[ConsumerId, list[TopicPartition]], loads: Mapping[ConsumerId, float]
) -> dict[ConsumerId, ConsumerClass]:
    if not problem.classes:
        return dict.fromkeys(held, problem.every_class[0])
    return {consumer: problem.class_of(consumer, loads[consumer], len(held[consumer])) for consumer in held}


def _may_be_saturated(
    problem: Problem, consumer: ConsumerId, of: ConsumerClass, partitions: list[TopicPartition]
) -> bool:
    """Whether all that it reads is one partition that no consumer is fast enough for, or that has to be with it."""
    if len(partitions) > 1:
        return False
    (alone,) = partitions
    too_fast_for_any = problem.speeds[alone] > problem.largest
    return (too_fast_for_any and of.capacity == problem.largest) or problem.fixed.get(alone) == consumer


def _missing(problem: Problem, held: Mapping[ConsumerId, list[TopicPartition]]) -> Iterator[str]:
    missing = len(problem.speeds) - sum(map(len, held.values()))
    if missing:
        yield f"{missing} partitions have no consumer"


def _filled_too_far(
    problem: Problem, consumer: ConsumerId, of: ConsumerClass, partitions: list[TopicPartition], load: float
) -> Iterator[str]:
    receives = any(problem.current.get(partition) != consumer for partition in partitions)
    packing = problem.packing_capacity_of(consumer, of)
    if receives and len(partitions) > 1 and load > packing * (1 + LOAD_TOLERANCE):
        yield f"consumer {consumer} is given partitions up to {load}, more than {packing}"


def _elsewhere_than_pinned(problem: Problem, assignment: Assignment) -> Iterator[str]:
    for partition, consumer in sorted(problem.fixed.items()):
        if assignment.get(partition, consumer) != consumer:
            yield f"{partition} is on consumer {assignment[partition]} and must be on {consumer}"


def _too_many_or_few(problem: Problem, consumers: int) -> Iterator[str]:
    if problem.max_consumers is not None and consumers > problem.max_consumers:
        yield f"{consumers} consumers have partitions, more than {problem.max_consumers}"
    if consumers < min(problem.min_consumers, len(problem.speeds)):
        yield f"{consumers} consumers have partitions, fewer than {problem.min_consumers}"


def keep_everything(problem: Problem) -> Assignment | None:
    """The current assignment, or None where it breaks a rule or leaves a partition without a consumer."""
    if not all(partition in problem.current for partition in problem.speeds):
        return None
    kept = Assignment({partition: problem.current[partition] for partition in problem.speeds})
    return kept if evaluate(problem, kept).is_feasible else None
