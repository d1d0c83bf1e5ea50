"""A plan as JSON and as CSV, for programs; both can be given back as `--current`."""

import csv
import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from io import StringIO
from typing import Any

from cli.files.csv_output import number
from domain.assignment import Assignment, Migration
from domain.partitions import TopicPartition
from solver import Problem, Solution


@dataclass(frozen=True, slots=True)
class Plan:
    """A problem, its solution, and what both leave aside."""

    problem: Problem
    solution: Solution
    unknown: frozenset[TopicPartition]
    """Partitions that could not be measured: they stay where they are."""

    @property
    def current(self) -> Assignment:
        return self.problem.current

    @property
    def price(self) -> float:
        """Of all consumers, in ordinary ones."""
        return math.fsum(of.price for of in self.solution.classes.values())

    @property
    def migrations(self) -> tuple[Migration, ...]:
        """In ascending order of partition."""
        return self.current.migrations_to(self.solution.assignment)

    @property
    def first_assigned(self) -> tuple[TopicPartition, ...]:
        """Partitions that nobody read, in ascending order."""
        return tuple(sorted(partition for partition in self.solution.assignment if partition not in self.current))


def plan_json(plan: Plan) -> str:
    """The fields of the solution, its gap, and the assignment in ascending order of partition."""
    solution = plan.solution
    record: dict[str, Any] = {
        field.name: getattr(solution, field.name)
        for field in fields(solution)
        if field.name not in ("assignment", "saturated", "classes")
    }
    if plan.problem.classes:
        record["price"] = plan.price
        record["classes"] = [asdict(each) for each in plan.problem.every_class]
    record["gap"] = solution.gap
    record["saturated"] = [_named(partition) for partition in solution.saturated]
    record["assignment"] = [
        {
            **_named(partition),
            "speed": plan.problem.speeds[partition],
            "consumer": consumer,
            "previous": plan.current.get(partition),
            **({"class": solution.classes[consumer].name} if plan.problem.classes else {}),
        }
        for partition, consumer in sorted(solution.assignment.items())
    ]
    record["unknown"] = [
        {**_named(partition), "consumer": plan.current.get(partition)} for partition in sorted(plan.unknown)
    ]
    return json.dumps(record, indent=2, allow_nan=False) + "\n"


def plan_csv(plan: Plan) -> str:
    """`topic,partition,speed,consumer,previous`, ascending by partition; previous is empty where nobody read it.

    Where there are several classes, that of the consumer comes last.
    """
    lines = StringIO()
    table = csv.writer(lines, lineterminator="\n")
    last = ["class"] if plan.problem.classes else []
    table.writerow(("topic", "partition", "speed", "consumer", "previous", *last))
    table.writerows(_rows(plan))
    return lines.getvalue()


def _rows(plan: Plan) -> Iterable[tuple[object, ...]]:
    for partition, consumer in sorted(plan.solution.assignment.items()):
        speed, previous = plan.problem.speeds[partition], plan.current.get(partition)
        of = [plan.solution.classes[consumer].name] if plan.problem.classes else []
        yield partition.topic, partition.partition, number(speed), consumer, previous, *of


def _named(partition: TopicPartition) -> dict[str, Any]:
    return {"topic": partition.topic, "partition": partition.partition}
