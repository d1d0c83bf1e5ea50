"""What there is before any engine has begun: the heuristics, and leaving everything as it is."""

from solver.deadline import Deadline
from solver.evaluation import keep_everything
from solver.packing import pack
from solver.problem import Problem
from solver.record import Record

_STARTS = ("mbfp", "mwf", "bfd")
"""The heuristics that are tried first: the fewest consumers, and the least migration, of the paper's Pareto front."""
KEEP = "keep"
"""The engine that leaves everything as it is."""


def start(problem: Problem, record: Record, deadline: Deadline) -> None:
    """The heuristics and keeping everything: what there is before any engine has begun."""
    kept = keep_everything(problem)
    if kept is not None:
        record.offer(kept, KEEP)
    for name in _STARTS:
        record.offer(pack(problem, name), name)
        if deadline.passed:
            return
