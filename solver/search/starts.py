"""What there is before any engine has begun: a first bound, the heuristics, and leaving everything as it is."""

import math

from domain.assignment import Assignment
from heuristics.catalogue import HEURISTICS
from heuristics.catalogue import pack as pack_speeds
from solver.deadline import Deadline
from solver.evaluation import LOAD_TOLERANCE, keep_everything
from solver.incumbent import Incumbent
from solver.problem import Problem

__all__ = ["HEURISTICS", "KEEP", "STARTS", "offer_first", "offer_heuristics", "pack", "room_bound"]

_FIRST = ("mbfp", "mwf", "bfd")
"""The heuristics that are tried first: the fewest consumers, and the least migration, of the paper's Pareto front."""
KEEP = "keep"
"""The engine that leaves everything as it is."""
STARTS = (KEEP, *_FIRST)
"""The engines that made plans which are there before an exact engine begins."""


def pack(problem: Problem, name: str) -> Assignment:
    """What a heuristic makes of the problem: it knows of one capacity, the lower one, and of no other rule."""
    capacity = problem.capacity if problem.packing_capacity is None else problem.packing_capacity
    first, seed = problem.first_consumer, problem.seed
    return pack_speeds(name, problem.speeds, capacity, problem.current, first_consumer=first, seed=seed)


def offer_first(problem: Problem, incumbent: Incumbent) -> None:
    """The least that there has to be: keeping everything or, where that is no plan, the first heuristic."""
    incumbent.raise_bound(room_bound(problem))
    kept = keep_everything(problem)
    if kept is None or not incumbent.offer(kept, KEEP):
        incumbent.offer(pack(problem, _FIRST[0]), _FIRST[0])


def offer_heuristics(problem: Problem, incumbent: Incumbent, deadline: Deadline) -> None:
    """The first plan if there is none yet, and the heuristics that have not made it, one by one."""
    if incumbent.best is None:
        offer_first(problem, incumbent)
    for name in _FIRST:
        if deadline.passed:
            return
        if incumbent.best is None or incumbent.best.engine != name:
            incumbent.offer(pack(problem, name), name)


def room_bound(problem: Problem) -> float:
    """As many consumers as there is load, a partition that is faster than a consumer counted as one."""
    load = math.fsum(min(speed, problem.capacity) for speed in problem.speeds.values()) / problem.capacity
    return max(math.ceil(load * (1 - LOAD_TOLERANCE)), 1) if problem.speeds else 0.0
