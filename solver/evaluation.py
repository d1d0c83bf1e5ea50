"""Judges an assignment against a problem: what it costs, and which rules it breaks. Decides nothing."""

import math
from collections.abc import Mapping
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
    violations = []
    held: dict[ConsumerId, list[TopicPartition]] = {}
    missing = 0
    for partition in problem.speeds:
        consumer = assignment.get(partition)
        if consumer is None:
            missing += 1
        else:
            held.setdefault(consumer, []).append(partition)
    if missing:
        violations.append(f"{missing} partitions have no consumer")

    saturated: list[TopicPartition] = []
    excess = 0.0
    fixed = problem.fixed
    ordinary, largest = problem.every_class[0], problem.largest
    classes: dict[ConsumerId, ConsumerClass] = {}
    for consumer in sorted(held):
        partitions = held[consumer]
        load = sum(problem.speeds[partition] for partition in partitions)
        of = problem.class_of(consumer, load, len(partitions)) if problem.classes else ordinary
        classes[consumer] = of
        capacity = problem.capacity_of(consumer, of)
        if load <= capacity * (1 + LOAD_TOLERANCE):
            receives = any(problem.current.get(partition) != consumer for partition in partitions)
            packing = problem.packing_capacity_of(consumer, of)
            if receives and len(partitions) > 1 and load > packing * (1 + LOAD_TOLERANCE):
                violations.append(f"consumer {consumer} is given partitions up to {load}, more than {packing}")
        elif len(partitions) == 1 and (
            (problem.speeds[partitions[0]] > largest and of.capacity == largest) or fixed.get(partitions[0]) == consumer
        ):
            saturated += partitions
        else:
            excess += load - capacity
            violations.append(f"consumer {consumer} has to read {load}, more than {capacity}")
    violations += [
        f"{partition} is on consumer {assignment[partition]} and must be on {consumer}"
        for partition, consumer in sorted(fixed.items())
        if assignment.get(partition, consumer) != consumer
    ]
    if problem.max_consumers is not None and len(held) > problem.max_consumers:
        violations.append(f"{len(held)} consumers have partitions, more than {problem.max_consumers}")
    if len(held) < min(problem.min_consumers, len(problem.speeds)):
        violations.append(f"{len(held)} consumers have partitions, fewer than {problem.min_consumers}")

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


def keep_everything(problem: Problem) -> Assignment | None:
    """The current assignment, or None where it breaks a rule or leaves a partition without a consumer."""
    if not all(partition in problem.current for partition in problem.speeds):
        return None
    kept = Assignment({partition: problem.current[partition] for partition in problem.speeds})
    return kept if evaluate(problem, kept).is_feasible else None
