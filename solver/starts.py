"""What there is before any engine has begun: a first bound, the heuristics, and leaving everything as it is."""

import math

from solver.deadline import Deadline
from solver.evaluation import LOAD_TOLERANCE, keep_everything
from solver.packing import pack
from solver.problem import Problem
from solver.record import Record

_STARTS = ("mbfp", "mwf", "bfd")
"""The heuristics that are tried first: the fewest consumers, and the least migration, of the paper's Pareto front."""
KEEP = "keep"
"""The engine that leaves everything as it is."""


def start(problem: Problem, record: Record, deadline: Deadline) -> None:
    """The heuristics and keeping everything, and a bound that costs nothing."""
    record.raise_bound(room_bound(problem))
    kept = keep_everything(problem)
    if kept is not None:
        record.offer(kept, KEEP)
    for name in _STARTS:
        record.offer(pack(problem, name), name)
        if deadline.passed:
            return


def room_bound(problem: Problem) -> float:
    """As many consumers as there is load, a partition that is faster than a consumer counted as one."""
    largest = max([problem.capacity, *problem.capacities.values()])
    load = math.fsum(min(speed, largest) for speed in problem.speeds.values()) / largest
    return max(math.ceil(load * (1 - LOAD_TOLERANCE)), 1) if problem.speeds else 0.0
