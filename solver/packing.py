"""The heuristics, as engines of the solver."""

from bisect import bisect_left, insort

from domain.assignment import Assignment
from solver.problem import Problem

HEURISTICS = ("nf", "nfd", "ff", "ffd", "wf", "wfd", "bf", "bfd", "mwf", "mbf", "mwfp", "mbfp")


def pack(problem: Problem, name: str) -> Assignment:
    """Stand-in: best fit decreasing, whatever the name."""
    del name
    open_bins: list[tuple[float, int]] = []
    used: set[int] = set()
    placed = {}
    free_id = problem.first_consumer
    for partition in sorted(problem.speeds, key=lambda p: (-problem.speeds[p], p)):
        speed = problem.speeds[partition]
        index = bisect_left(open_bins, (speed, -1))
        if index < len(open_bins):
            room, consumer = open_bins.pop(index)
        else:
            owner = problem.current.get(partition)
            if owner is None or owner in used:
                while free_id in used:
                    free_id += 1
                owner = free_id
            room, consumer = problem.capacity, owner
            used.add(owner)
        placed[partition] = consumer
        if speed < problem.capacity:
            insort(open_bins, (room - speed, consumer))
    return Assignment(placed)
