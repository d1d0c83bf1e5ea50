"""The one entrance: a problem and the name of an engine in, a solution out."""

import math
import threading
import time

from solver.deadline import Deadline
from solver.evaluation import evaluate
from solver.packing import HEURISTICS, pack
from solver.problem import Problem
from solver.record import Record
from solver.solution import Solution, Status
from solver.starts import begin, is_start, start

EXACT = ("auto", "arc-flow", "cp-sat")
_WINDING_UP = 0.04
"""Of the time limit: engines stop so long before it, for what still holds the interpreter then delays the answer."""
ENGINES: tuple[str, ...] = (*EXACT, *HEURISTICS)
"""The names that `solve` takes."""


def solve(problem: Problem, engine: str = "auto") -> Solution:
    """The best assignment that `engine` finds for `problem` within its time limit.

    Where an engine is done before time is up, the same problem always gets the same plan. Where it is not, the plan is
    the best so far, which depends on how fast the machine is.

    A heuristic packs up to `packing_capacity` and knows no other rule. Where its plan breaks one, the plan is made by
    rule instead (`least-eviction`), and the solution names that as its engine.

    Raises:
        ValueError: there is no engine of that name.
    """
    if engine not in ENGINES:
        raise ValueError(f"there is no engine {engine!r}: it must be one of {', '.join(ENGINES)}")
    started = time.perf_counter()
    record = Record(problem)
    status = _heuristic(problem, engine, record) if engine in HEURISTICS else _exact(problem, engine, record, started)
    best = record.best
    if best is None:
        return _infeasible(problem, record, started)
    figures = best.figures
    return Solution(
        assignment=best.assignment,
        engine=best.engine,
        status=status,
        consumers=figures.consumers,
        rscore=figures.rscore,
        objective=figures.objective,
        lower_bound=min(record.bound, figures.objective),
        seconds=time.perf_counter() - started,
        saturated=figures.saturated,
    )


def _heuristic(problem: Problem, name: str, record: Record) -> Status:
    """A heuristic, or the plan by rule where the heuristic breaks a rule that it does not know of."""
    from solver import construct
    from solver.bounds import pooled_bound
    from solver.instance import Instance

    instance = Instance.of(problem)
    record.raise_bound(pooled_bound(instance))
    if not record.offer(pack(problem, name), name):
        construct.offer_plans(instance, record, Deadline.after(problem.time_limit_s))
    return Status.HEURISTIC


def _infeasible(problem: Problem, record: Record, started: float) -> Solution:
    """What is left where no plan keeps all rules."""
    from solver import construct
    from solver.bounds import fewest_bins
    from solver.instance import Instance

    instance = Instance.of(problem)
    plan = construct.least_overloaded(instance)
    figures = evaluate(problem, plan)
    fewest = fewest_bins(instance)
    if problem.max_consumers is not None and fewest > problem.max_consumers:
        reason = f"it takes {fewest} consumers at least, and max_consumers is {problem.max_consumers}"
    else:
        reason = "; ".join(figures.violations)
    if figures.excess:
        reason += f": {figures.excess:.6g} bytes/s are above what the consumers can read"
    return Solution(
        assignment=plan,
        engine=construct.NAME,
        status=Status.INFEASIBLE,
        consumers=figures.consumers,
        rscore=figures.rscore,
        objective=figures.objective,
        lower_bound=min(record.bound, figures.objective),
        seconds=time.perf_counter() - started,
        saturated=figures.saturated,
        excess=figures.excess,
        reason=reason,
    )


def _exact(problem: Problem, engine: str, record: Record, started: float) -> Status:
    """Lets an engine work until it is done or time is up; it is left behind if it is then still in native code."""
    abandoned = threading.Event()

    def clock() -> float:
        return math.inf if abandoned.is_set() else time.perf_counter()

    deadline = Deadline(started + problem.time_limit_s, clock)
    begin(problem, record)
    finished = threading.Event()
    errors: list[Exception] = []

    def work() -> None:
        try:
            engines_stop = deadline.earlier(_WINDING_UP * problem.time_limit_s)
            start(problem, record, engines_stop)
            # Loading NumPy and OR-Tools takes longer than some limits: it is done here, where nobody has to wait for
            # it, and where it is needed.
            from solver import construct

            instance = construct.begin(problem, record, engines_stop)
            if not record.is_proven:
                from solver import auto

                auto.ENGINES[engine](instance, record, engines_stop)
                auto.settle_idle(instance, record, engines_stop)
        except Exception as error:
            errors.append(error)
        finally:
            finished.set()

    threading.Thread(target=work, name="kcga-solver").start()
    try:
        finished.wait(deadline.remaining)
    finally:
        abandoned.set()
        record.close()
    if errors:
        raise errors[0]
    if record.is_optimal:
        return Status.OPTIMAL
    fell_back = record.best is None or (is_start(record.best.engine) and not record.is_proven)
    return Status.FALLBACK if fell_back else Status.FEASIBLE
