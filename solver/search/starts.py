"""What there is before any engine has begun: a first bound, the heuristics, and leaving everything as it is."""

import math
from itertools import count

from domain.assignment import Assignment
from domain.consumer_class import ConsumerClass
from heuristics.catalogue import HEURISTICS
from heuristics.catalogue import pack as pack_speeds
from solver.deadline import Deadline
from solver.evaluation import keep_everything
from solver.incumbent import Incumbent
from solver.problem import LOAD_TOLERANCE, Problem

__all__ = ["HEURISTICS", "KEEP", "STARTS", "offer_first", "offer_heuristics", "offer_packed", "pack", "room_bound"]

_FIRST = ("mbfp", "mwf", "bfd")
"""The heuristics that are tried first: the fewest consumers, and the least migration, of the paper's Pareto front."""
KEEP = "keep"
"""The engine that leaves everything as it is."""
STARTS = (KEEP, *_FIRST)
"""The engines that made plans which are there before an exact engine begins."""


def offer_packed(problem: Problem, name: str, incumbent: Incumbent) -> bool:
    """Offers what a heuristic makes of the problem, and says whether that was any good.

    It knows of one capacity and of no other rule. With several classes it fills consumers of each in turn; then each
    consumer is of the cheapest class that holds what it has.
    """
    found = False
    for each in problem.every_class:
        found |= incumbent.offer(pack(problem, name, each), name)
    return found


def pack(problem: Problem, name: str, of: ConsumerClass | None = None) -> Assignment:
    """What a heuristic makes of the problem, filling consumers of a class: ordinary ones unless it is said."""
    capacity = problem.capacity if problem.packing_capacity is None else problem.packing_capacity
    if of is not None:
        capacity *= of.capacity / problem.capacity
    first, seed = problem.first_consumer, problem.seed
    plan = pack_speeds(name, problem.speeds, capacity, problem.current, first_consumer=first, seed=seed)
    return _each_as_large_as_it_must_be(problem, plan) if problem.classes else plan


def _each_as_large_as_it_must_be(problem: Problem, plan: Assignment) -> Assignment:
    """The plan with new consumers in place of those whose class cannot hold what they have in it."""
    taken = {*plan.by_consumer, *problem.current.by_consumer, *problem.class_names, *problem.pinned.values()}
    new = (number for number in count(problem.first_consumer) if number not in taken)
    instead = {}
    for consumer, load in plan.loads(problem.speeds).items():
        of = problem.known_class(consumer)
        if of is not None and load > problem.limit_of(of, len(plan.by_consumer[consumer])):
            instead[consumer] = next(new)
    return Assignment({partition: instead.get(consumer, consumer) for partition, consumer in plan.items()})


def offer_first(problem: Problem, incumbent: Incumbent) -> None:
    """The least that there has to be: keeping everything or, where that is no plan, the first heuristic."""
    incumbent.raise_bound(room_bound(problem))
    kept = keep_everything(problem)
    if kept is None or not incumbent.offer(kept, KEEP):
        offer_packed(problem, _FIRST[0], incumbent)


def offer_heuristics(problem: Problem, incumbent: Incumbent, deadline: Deadline) -> None:
    """The first plan if there is none yet, and the heuristics that have not made it, one by one."""
    if incumbent.best is None:
        offer_first(problem, incumbent)
    for name in _FIRST:
        if deadline.passed:
            return
        if incumbent.best is None or incumbent.best.engine != name:
            offer_packed(problem, name, incumbent)


def room_bound(problem: Problem) -> float:
    """As many consumers as there is load, a partition that is faster than a consumer counted as one; at the price of
    the class that has most capacity for it."""
    if not problem.speeds:
        return 0.0
    largest = problem.largest
    load = math.fsum(min(speed, largest) for speed in problem.speeds.values())
    if not problem.classes:
        return max(math.ceil(load / problem.capacity * (1 - LOAD_TOLERANCE)), 1)
    least = min(each.price for each in problem.every_class)
    rate = min(each.price / each.capacity for each in problem.every_class)
    return max(rate * load * (1 - LOAD_TOLERANCE), least)
