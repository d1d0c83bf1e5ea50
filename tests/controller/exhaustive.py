"""The best plan by trying them all: slow, simple, and certain to keep every rule that can be kept, so that tests of the
controller do not depend on how good an engine is.
"""

import math

from domain.assignment import Assignment, ConsumerId
from domain.partitions import TopicPartition
from solver.evaluation import Evaluation, evaluate
from solver.problem import LOAD_TOLERANCE, Problem
from solver.solution import Solution, Status

ROUNDING = 1e-6
"""By so much of a consumer sums of sizes may be wrong."""
Cost = tuple[int, float, float]
"""Whether a rule is broken, what is above the capacities, and the objective."""


def solve_exhaustively(problem: Problem) -> Solution:
    """The cheapest plan that keeps all rules, or else the one that leaves the least above the capacities.

    Of equals it is the first when partitions are placed from the fastest to the slowest (the lower one first), each on
    the consumer that has it now or else the lowest one.
    """
    question = repr(problem)
    if question not in _ANSWERS:
        _ANSWERS[question] = _solve(problem)
    return _ANSWERS[question]


_ANSWERS: dict[str, Solution] = {}
"""Worlds ask the same again and again."""


def _solve(problem: Problem) -> Solution:
    search = _Search(problem, may_break_rules=False)
    if search.best is None:
        search = _Search(problem, may_break_rules=True)
    assert search.best is not None
    assignment, figures = search.best
    return Solution(
        assignment=assignment,
        engine="exhaustive",
        status=Status.OPTIMAL if figures.is_feasible else Status.INFEASIBLE,
        consumers=figures.consumers,
        rscore=figures.rscore,
        objective=figures.objective,
        lower_bound=figures.objective,
        seconds=0.0,
        saturated=figures.saturated,
        classes=figures.classes,
        excess=figures.excess,
        reason="; ".join(figures.violations),
    )


class _Search:
    def __init__(self, problem: Problem, *, may_break_rules: bool) -> None:
        self.best: tuple[Assignment, Evaluation] | None = None
        self._problem = problem
        self._may_break_rules = may_break_rules
        self._cost: Cost = (2, math.inf, math.inf)
        self._order = sorted(problem.speeds, key=lambda partition: (-problem.speeds[partition], partition))
        self._fixed = problem.fixed
        self._most = math.inf if problem.max_consumers is None else problem.max_consumers
        if may_break_rules:
            self._most = max(self._most, len(set(self._fixed.values())))
        self._named = sorted({*problem.current.consumers, *self._fixed.values(), *problem.class_names})
        """The consumers that are not like any other."""
        self._unnamed = [c for c in range(1, len(self._order) + len(self._named) + 1) if c not in self._named]
        self._alike = set(self._unnamed)
        of = {consumer: problem.known_class(consumer) for consumer in [*self._named, *self._unnamed]}
        largest = max(problem.every_class, key=lambda each: each.capacity)
        """What a consumer can be that is nothing yet."""
        least = min(each.price for each in problem.every_class)
        self._price = {consumer: least if known is None else known.price for consumer, known in of.items()}
        """Of each consumer, at least."""
        self._capacity = {consumer: problem.capacity_of(consumer, known or largest) for consumer, known in of.items()}
        self._packing = {c: problem.packing_capacity_of(c, known or largest) for c, known in of.items()}
        self._least, self._largest = least, largest.capacity
        sizes = [problem.speeds[partition] for partition in self._order]
        shared = [size if size <= self._largest else 0.0 for size in sizes]
        self._left = [sum(shared[index:]) for index in range(len(shared) + 1)]
        """What the partitions from each on need, but for those that need a consumer of their own."""
        self._on: dict[ConsumerId, list[TopicPartition]] = {}
        self._place(0, 0.0, 0.0)

    def _place(self, index: int, moving: float, price: float) -> None:
        problem = self._problem
        if not self._is_promising(index, moving, price):
            return
        if index == len(self._order):
            assignment = Assignment({p: consumer for consumer, held in self._on.items() for p in held})
            figures = evaluate(problem, assignment)
            cost = (int(not figures.is_feasible), figures.excess, figures.objective)
            if cost < self._cost and (figures.is_feasible or self._may_break_rules):
                self.best, self._cost = (assignment, figures), cost
            return
        partition = self._order[index]
        home = problem.current.get(partition)
        for consumer in self._choices(partition, home):
            held = self._on.setdefault(consumer, [])
            held.append(partition)
            if self._may_break_rules or self._fits(consumer, held):
                moved = problem.speeds[partition] if home not in (None, consumer) else 0.0
                opened = self._price[consumer] if len(held) == 1 else 0.0
                self._place(index + 1, moving + moved, price + opened)
            held.pop()
            if not held:
                del self._on[consumer]

    def _choices(self, partition: TopicPartition, home: ConsumerId | None) -> list[ConsumerId]:
        if partition in self._fixed:
            return [self._fixed[partition]]
        opened = sum(consumer in self._alike for consumer in self._on)
        return sorted([*self._named, *self._unnamed[: opened + 1]], key=lambda consumer: (consumer != home, consumer))

    def _fits(self, consumer: ConsumerId, held: list[TopicPartition]) -> bool:
        if len(held) == 1:
            return True
        load = self._load(held)
        if load <= self._packing[consumer] * (1 + LOAD_TOLERANCE):
            return True
        current = self._problem.current
        receives = any(current.get(partition) != consumer for partition in held)
        return not receives and load <= self._capacity[consumer] * (1 + LOAD_TOLERANCE)

    def _load(self, held: list[TopicPartition]) -> float:
        return sum(map(self._problem.speeds.__getitem__, held))

    def _must_open(self, index: int) -> int:
        """So many more consumers it takes at least where all rules are kept."""
        free = sum(max(0.0, self._capacity[consumer] - self._load(held)) for consumer, held in self._on.items())
        return max(0, math.ceil((self._left[index] - free) / self._largest - ROUNDING))

    def _is_promising(self, index: int, moving: float, price: float) -> bool:
        problem = self._problem
        if len(self._on) > self._most:
            return False
        so_far = price + problem.migration_weight * moving / problem.capacity
        if not self._may_break_rules:
            return so_far < self._cost[2] and so_far + self._least * self._must_open(index) < self._cost[2]
        excess = sum(
            max(0.0, self._load(held) - self._capacity[consumer])
            for consumer, held in self._on.items()
            if len(held) > 1
        )
        return (excess, so_far) < self._cost[1:]
