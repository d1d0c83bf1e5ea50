"""The one entrance: a problem and the name of an engine in, a solution out."""

import math
import threading
from importlib import import_module

from solver.deadline import Deadline, now
from solver.evaluation import evaluate
from solver.incumbent import Found, Incumbent
from solver.parameters import TUNED
from solver.problem import Problem
from solver.search.starts import HEURISTICS, STARTS, offer_first, offer_heuristics, offer_packed
from solver.solution import Solution, Status

EXACT = ("auto", "arc-flow", "cp-sat")
ENGINES: tuple[str, ...] = (*EXACT, *HEURISTICS)
"""The names that `solve` takes."""


def load() -> None:
    """Loads what engines need, NumPy, OR-Tools and pandas among it: half a second, or some on a busy machine.

    Whoever does not call it has it loaded by the first search that needs it, within its time limit.
    """
    for module in ("solver.search.portfolio", "solver.exact.cp_sat"):
        import_module(module)


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
    started = now()
    incumbent = Incumbent(problem)
    status = (
        _heuristic(problem, engine, incumbent) if engine in HEURISTICS else _exact(problem, engine, incumbent, started)
    )
    best, reason = incumbent.best, ""
    if best is None:
        status = Status.INFEASIBLE
        best, reason = _least_overloaded(problem)
    figures = best.figures
    return Solution(
        assignment=best.assignment,
        engine=best.engine,
        status=status,
        consumers=figures.consumers,
        rscore=figures.rscore,
        objective=figures.objective,
        lower_bound=min(incumbent.bound, figures.objective),
        seconds=now() - started,
        classes=figures.classes,
        saturated=figures.saturated,
        excess=figures.excess,
        reason=reason,
    )


def _heuristic(problem: Problem, name: str, incumbent: Incumbent) -> Status:
    """A heuristic, or the plan by rule where the heuristic breaks a rule that it does not know of."""
    from solver.exact.bounds import pooled_bound
    from solver.exact.instance import Instance
    from solver.search import construct

    instance = Instance.of(problem)
    incumbent.raise_bound(pooled_bound(instance))
    if not offer_packed(problem, name, incumbent):
        construct.offer_plans(instance, incumbent, Deadline.after(problem.time_limit_s))
    return Status.HEURISTIC


def _least_overloaded(problem: Problem) -> tuple[Found, str]:
    """What is left where no plan keeps all rules, and which rule that is."""
    from solver.exact.bounds import fewest_bins
    from solver.exact.instance import Instance
    from solver.search import construct

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
    return Found(plan, construct.NAME, figures), reason


def _exact(problem: Problem, engine: str, incumbent: Incumbent, started: float) -> Status:
    """Lets an engine work until it is done or time is up; it is left behind if it is then still in native code."""
    abandoned = threading.Event()

    def clock() -> float:
        return math.inf if abandoned.is_set() else now()

    deadline = Deadline(started + problem.time_limit_s, clock)
    offer_first(problem, incumbent)
    finished = threading.Event()
    errors: list[Exception] = []

    def work() -> None:
        try:
            engines_stop = deadline.earlier(TUNED.winding_up * problem.time_limit_s)
            offer_heuristics(problem, incumbent, engines_stop)
            # Loading NumPy and OR-Tools takes longer than some limits: it is done here, where nobody has to wait for
            # it, and where it is needed.
            from solver.search import construct

            instance = construct.prepare(problem, incumbent, engines_stop)
            if not incumbent.is_proven:
                from solver.search import portfolio

                portfolio.ENGINES[engine](instance, incumbent, engines_stop)
                portfolio.settle_idle(instance, incumbent, engines_stop)
        except Exception as error:
            errors.append(error)
        finally:
            finished.set()

    threading.Thread(target=work, name="kcga-solver").start()
    try:
        finished.wait(deadline.remaining)
    finally:
        abandoned.set()
        incumbent.close()
    if errors:
        raise errors[0]
    if incumbent.is_optimal:
        return Status.OPTIMAL
    fell_back = incumbent.best is None or (incumbent.best.engine in STARTS and not incumbent.is_proven)
    return Status.FALLBACK if fell_back else Status.FEASIBLE
