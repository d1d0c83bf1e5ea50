"""Improves a plan part by part: some consumers at a time, with what they have, everything else left as it is.

After Narayanan et al. (POP, SOSP 2021): parts that are picked at random lose little, since each of them looks like the
whole. A first pass divides the consumers that there are now; later passes divide the plan, each in another way, so that
what one division keeps apart meets in the next.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from domain.assignment import Assignment, ConsumerId
from domain.consumer_class import ConsumerClass
from domain.partitions import TopicPartition
from solver.deadline import Deadline
from solver.evaluation import evaluate
from solver.problem import Problem

Improve = Callable[[Problem, Assignment | None, Deadline], Assignment]
"""The best plan for a part that is found in time, and the plan so far if there is one."""


def part_by_part(
    problem: Problem,
    plan: Assignment | None,
    size: int,
    improve: Improve,
    deadline: Deadline,
    turn: int = 0,
    least_s: float = 0.0,
) -> Assignment:
    """`plan`, with parts of about `size` partitions replaced by better ones where they are found.

    Without a plan it is made of plans for all parts, which are divided by who has the partitions now. Each part has its
    share of the time, but no less than `least_s` seconds: if there is not enough for all, the first ones are improved.
    Every `turn` divides in another way.
    """
    homes = {**problem.current, **problem.fixed} if plan is None else plan
    held: dict[ConsumerId, list[TopicPartition]] = {}
    homeless = []
    for partition in sorted(problem.speeds):
        if partition in homes:
            held.setdefault(homes[partition], []).append(partition)
        else:
            homeless.append(partition)
    parts = _divided(held, max(1, round(len(problem.speeds) / size)), problem.seed * 1_000_003 + turn)
    result: dict[TopicPartition, ConsumerId] = {} if plan is None else dict(plan)
    known = (*problem.current.values(), *problem.capacities, *problem.class_names)
    fresh = max([*held, *known, problem.first_consumer - 1]) + 1
    for index, part in enumerate(parts):
        if plan is not None and deadline.passed:
            break
        partitions = [p for consumer in part for p in held[consumer]] + homeless[index :: len(parts)]
        sub = _part(problem, partitions, set(part), fresh)
        before = None if plan is None else Assignment({p: plan[p] for p in partitions})
        found = improve(sub, before, deadline.within(max(least_s, deadline.remaining / (len(parts) - index))))
        if before is None or evaluate(sub, found).objective < evaluate(sub, before).objective - 1e-9:
            result.update(found)
            fresh = max(fresh, 1 + max(found.values(), default=0))
    return _renumbered(problem, Assignment(result))


def _divided(held: Mapping[ConsumerId, Sequence[TopicPartition]], count: int, seed: int) -> list[list[ConsumerId]]:
    """The consumers in an order by chance, in `count` runs of about as many partitions each."""
    consumers = sorted(held)
    random.Random(seed).shuffle(consumers)
    total = sum(map(len, held.values()))
    parts: list[list[ConsumerId]] = [[] for _ in range(count)]
    passed = 0
    for consumer in consumers:
        parts[passed * count // max(total, 1)].append(consumer)
        passed += len(held[consumer])
    return [part for part in parts if part] or [[]]


def _part(problem: Problem, partitions: Iterable[TopicPartition], consumers: set[ConsumerId], fresh: int) -> Problem:
    speeds = {p: problem.speeds[p] for p in partitions}
    current = {p: problem.current[p] for p in speeds if problem.current.get(p) in consumers}
    return replace(
        problem,
        speeds=speeds,
        current=Assignment(current),
        first_consumer=fresh,
        capacities={c: capacity for c, capacity in problem.capacities.items() if c in consumers},
        class_names=_class_names(problem, consumers),
        min_consumers=0,
        max_consumers=None,
        pinned={p: c for p, c in problem.fixed.items() if p in speeds},
        immovable=frozenset(),
    )


def _class_names(problem: Problem, consumers: Iterable[ConsumerId]) -> dict[ConsumerId, str]:
    """Of those that there are, whether or not what they have now is part of the same part."""
    known = {consumer: problem.known_class(consumer) for consumer in consumers} if problem.classes else {}
    return {consumer: of.name for consumer, of in known.items() if of is not None}


def _renumbered(problem: Problem, plan: Assignment) -> Assignment:
    """`plan` with the lowest numbers that are free for the consumers that are new in it, in their order."""
    known = {*problem.current.values(), *problem.capacities, *problem.pinned.values(), *problem.class_names}
    new = sorted(plan.consumers - known)
    loads = plan.loads(problem.speeds) if problem.classes else {}
    # A consumer that has lost all its partitions is as free as one that never was.
    taken = set(plan.consumers) & known
    names: dict[ConsumerId, ConsumerId] = {}
    lowest: dict[ConsumerClass | None, ConsumerId] = {}
    for consumer in new:
        of = problem.cheapest_class(loads[consumer], len(plan.by_consumer[consumer])) if problem.classes else None
        number = lowest.get(of, problem.first_consumer)
        while (
            number in taken
            or number in problem.capacities
            or (problem.classes and problem.known_class(number) not in (None, of))
        ):
            number += 1
        names[consumer] = lowest[of] = number
        taken.add(number)
    return Assignment({p: names.get(consumer, consumer) for p, consumer in plan.items()})
