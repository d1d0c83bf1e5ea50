"""The heuristics, as engines of the solver."""

from domain.assignment import Assignment
from heuristics.catalogue import HEURISTICS
from heuristics.catalogue import pack as pack_speeds
from solver.problem import Problem

__all__ = ["HEURISTICS", "pack"]


def pack(problem: Problem, name: str) -> Assignment:
    """What a heuristic makes of the problem: it knows of one capacity, the lower one, and of no other rule."""
    return pack_speeds(
        name,
        problem.speeds,
        problem.capacity if problem.packing_capacity is None else problem.packing_capacity,
        problem.current,
        first_consumer=problem.first_consumer,
        seed=problem.seed,
    )
