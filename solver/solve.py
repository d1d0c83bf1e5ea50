"""The one entrance: a problem and the name of an engine in, a solution out."""

import time

from domain.assignment import Assignment
from solver.bounds import simple_bound
from solver.instance import Instance
from solver.evaluation import evaluate, keep_everything
from solver.packing import HEURISTICS, pack
from solver.problem import Problem
from solver.solution import Solution, Status

ENGINES: tuple[str, ...] = ("auto", *HEURISTICS)
"""The names that `solve` takes."""


def solve(problem: Problem, engine: str = "auto") -> Solution:
    """The best assignment that `engine` finds for `problem` within its time limit.

    Raises:
        ValueError: there is no engine of that name.
    """
    if engine not in ENGINES:
        raise ValueError(f"there is no engine {engine!r}: it must be one of {', '.join(ENGINES)}")
    started = time.perf_counter()
    if engine == "auto":
        status = Status.FALLBACK
        candidates: dict[str, Assignment] = {name: pack(problem, name) for name in ("mbfp", "mwf", "bfd")}
        kept = keep_everything(problem)
        if kept is not None:
            candidates["keep"] = kept
        found = min(candidates, key=lambda name: evaluate(problem, candidates[name]).objective)
    else:
        status = Status.HEURISTIC
        found, candidates = engine, {engine: pack(problem, engine)}
    assignment = candidates[found]
    figures = evaluate(problem, assignment)
    return Solution(
        assignment=assignment,
        engine=found,
        status=status,
        consumers=figures.consumers,
        rscore=figures.rscore,
        objective=figures.objective,
        lower_bound=min(simple_bound(Instance.of(problem)), figures.objective),
        seconds=time.perf_counter() - started,
        saturated=figures.saturated,
    )
