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


def begin(problem: Problem, record: Record) -> None:
    """The least that there has to be: keeping everything or, where that is no plan, the first heuristic."""
    record.raise_bound(room_bound(problem))
    kept = keep_everything(problem)
    if kept is None or not record.offer(kept, KEEP):
        record.offer(pack(problem, _STARTS[0]), _STARTS[0])


def start(problem: Problem, record: Record, deadline: Deadline) -> None:
    """The heuristics that have not begun the record, one by one."""
    if record.best is None:
        begin(problem, record)
    for name in _STARTS:
        if deadline.passed:
            return
        if record.best is None or record.best.engine != name:
            record.offer(pack(problem, name), name)


def is_start(engine: str) -> bool:
    """Whether plans of that name need no exact engine."""
    return engine in (KEEP, *_STARTS)


def room_bound(problem: Problem) -> float:
    """As many consumers as there is load, a partition that is faster than a consumer counted as one."""
    load = math.fsum(min(speed, problem.capacity) for speed in problem.speeds.values()) / problem.capacity
    return max(math.ceil(load * (1 - LOAD_TOLERANCE)), 1) if problem.speeds else 0.0
