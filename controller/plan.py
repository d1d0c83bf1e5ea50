"""Reassign: whether a plan is worth carrying out, and the record that says why."""

from domain.assignment import Assignment
from domain.messages import Decision, PlanFigures, PlannedPartition
from solver.evaluation import evaluate, keep_everything
from solver.problem import Problem
from solver.solution import Solution

TIE = 1e-9
"""Objectives closer than this, relatively, are equal: a plan has to be better by more."""


def figures(problem: Problem, assignment: Assignment) -> PlanFigures:
    """What it costs to go from the problem's current assignment to `assignment`."""
    cost = evaluate(problem, assignment)
    return PlanFigures(consumers=cost.consumers, rscore=cost.rscore, objective=cost.objective)


def decide(
    *,
    number: int,
    epoch: int,
    at: float,
    triggers: tuple[str, ...],
    problem: Problem,
    solution: Solution,
    max_consumers: int,
) -> Decision:
    """The record of one passage through Reassign, with the verdict on the plan.

    Args:
        number: of the decision within the epoch.
        epoch: of the controller.
        at: seconds since the epoch of time.
        triggers: why the assignment was considered.
        problem: what was asked.
        solution: what was answered.
        max_consumers: the highest number that a consumer may have.
    """
    plan = figures(problem, solution.assignment)
    present = keep_everything(problem)
    kept = None if present is None else figures(problem, present)
    carried_out, reason = _judge(plan, kept, max(solution.assignment.consumers, default=0), max_consumers)
    return Decision(
        number=number,
        epoch=epoch,
        decided_at=at,
        triggers=triggers,
        carried_out=carried_out,
        reason=reason,
        engine=solution.engine,
        status=solution.status,
        solve_s=solution.seconds,
        lower_bound=solution.lower_bound,
        plan=plan,
        keeping=kept,
        assignment=tuple(
            PlannedPartition(
                topic=partition.topic,
                partition=partition.partition,
                speed=problem.speeds[partition],
                consumer=consumer,
                previous=problem.current.get(partition),
            )
            for partition, consumer in sorted(solution.assignment.items())
        ),
    )


def _judge(plan: PlanFigures, kept: PlanFigures | None, highest: int, max_consumers: int) -> tuple[bool, str]:
    if highest > max_consumers:
        return False, f"the plan needs consumer {highest}, and max_consumers is {max_consumers}: raise it"
    if kept is None:
        return True, f"{_words(plan)}; the present assignment cannot stay as it is"
    if plan.objective < kept.objective * (1 - TIE):
        return True, f"{_words(plan)}, better than keeping {_words(kept)}"
    return False, f"keeping everything costs {_words(kept)}; the best plan is no better: {_words(plan)}"


def _words(plan: PlanFigures) -> str:
    consumers = "1 consumer" if plan.consumers == 1 else f"{plan.consumers} consumers"
    return f"{consumers} and an Rscore of {plan.rscore:.2f} (objective {plan.objective:.2f})"
