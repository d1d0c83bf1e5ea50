"""Improves a plan part by part: some consumers at a time, with what they have, everything else left as it is.

After Narayanan et al. (POP, SOSP 2021): parts that are picked at random lose little, since each of them looks like the
whole. A first pass divides the consumers that there are now; later passes divide the plan, each in another way, so that
what one division keeps apart meets in the next.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import replace

from domain.assignment import Assignment, ConsumerId
from domain.partitions import TopicPartition
from solver.deadline import Deadline
from solver.evaluation import evaluate
from solver.problem import Problem

Improve = Callable[[Problem, Assignment | None, Deadline], Assignment]
"""The best plan for a part that is found in time, and the plan so far if there is one."""


def first_pass(problem: Problem, size: int, improve: Improve, deadline: Deadline) -> Assignment:
    """A plan made of plans for parts of about `size` partitions each, divided by who has them now."""
    groups: dict[ConsumerId, list[TopicPartition]] = {}
    fixed = problem.fixed
    homeless = []
    for partition in sorted(problem.speeds):
        consumer = fixed.get(partition, problem.current.get(partition))
        if consumer is None:
            homeless.append(partition)
        else:
            groups.setdefault(consumer, []).append(partition)
    chooser = random.Random(problem.seed)
    consumers = sorted(groups)
    chooser.shuffle(consumers)
    count = max(1, round(len(problem.speeds) / size))
    parts = _divided(consumers, lambda consumer: len(groups[consumer]), count)
    newcomers = [homeless[index :: len(parts)] for index in range(len(parts))]
    plan: dict[TopicPartition, ConsumerId] = {}
    fresh = _first_fresh(problem, consumers)
    for index, part in enumerate(parts):
        partitions = [p for consumer in part for p in groups[consumer]] + newcomers[index]
        slice_ = deadline.within(deadline.remaining / (len(parts) - index))
        found = improve(_part(problem, partitions, set(part), fresh), None, slice_)
        plan.update(found)
        fresh = max(fresh, 1 + max(found.values(), default=0))
    return renumbered(problem, Assignment(plan))


def later_pass(
    problem: Problem,
    plan: Assignment,
    size: int,
    improve: Improve,
    deadline: Deadline,
    turn: int,
    least_s: float = 0.0,
) -> Assignment:
    """`plan`, with parts of about `size` partitions replaced by better ones where they are found.

    Each part has its share of the time, but no less than `least_s` seconds: if there is not enough for all, the first
    ones are improved.
    """
    held = plan.by_consumer
    consumers = sorted(held)
    random.Random(problem.seed * 1_000_003 + turn).shuffle(consumers)
    count = max(1, round(len(problem.speeds) / size))
    parts = _divided(consumers, lambda consumer: len(held[consumer]), count)
    result = dict(plan)
    fresh = _first_fresh(problem, consumers)
    for index, part in enumerate(parts):
        if deadline.passed:
            break
        partitions = [p for consumer in part for p in held[consumer]]
        sub = _part(problem, partitions, set(part), fresh)
        before = Assignment({p: plan[p] for p in partitions})
        found = improve(sub, before, deadline.within(max(least_s, deadline.remaining / (len(parts) - index))))
        if evaluate(sub, found).objective < evaluate(sub, before).objective - 1e-9:
            result.update(found)
            fresh = max(fresh, 1 + max(found.values(), default=0))
    return renumbered(problem, Assignment(result))


def _divided(consumers: list[ConsumerId], weight: Callable[[ConsumerId], int], count: int) -> list[list[ConsumerId]]:
    """`consumers` in `count` runs of about the same weight, in their order."""
    total = sum(map(weight, consumers))
    parts: list[list[ConsumerId]] = [[] for _ in range(count)]
    passed = 0
    for consumer in consumers:
        parts[min(count - 1, passed * count // max(total, 1))].append(consumer)
        passed += weight(consumer)
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
        min_consumers=0,
        max_consumers=None,
        pinned={p: c for p, c in problem.fixed.items() if p in speeds},
        immovable=frozenset(),
    )


def _first_fresh(problem: Problem, consumers: Iterable[ConsumerId]) -> ConsumerId:
    used = {*consumers, *problem.current.values(), *problem.capacities, problem.first_consumer - 1}
    return max(used) + 1


def renumbered(problem: Problem, plan: Assignment) -> Assignment:
    """`plan` with the lowest numbers that are free for the consumers that are new in it, in their order."""
    known = {*problem.current.values(), *problem.capacities, *problem.pinned.values()}
    new = sorted(plan.consumers - known)
    # A consumer that has lost all its partitions is as free as one that never was.
    taken = set(plan.consumers) & known
    names: dict[ConsumerId, ConsumerId] = {}
    number = problem.first_consumer
    for consumer in new:
        while number in taken or number in problem.capacities:
            number += 1
        names[consumer] = number
        taken.add(number)
    return Assignment({p: names.get(consumer, consumer) for p, consumer in plan.items()})
