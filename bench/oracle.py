"""An oracle that shares nothing with the solver: the paper's model written out in PuLP, solved by CBC or HiGHS.

For tests and benchmarks only: PuLP is no dependency of the product.
"""

from dataclasses import dataclass, replace
from datetime import timedelta

import pulp
from ortools.math_opt.python import mathopt
from pulp.apis.coin_api import PULP_CBC_CMD

from solver import Problem


@dataclass(frozen=True)
class Answer:
    """What came of a model in time."""

    objective: float | None
    """Of the best plan; None where none was found."""
    proven: bool
    """Of HiGHS also that there is none."""


PATIENCE_S = 600.0
"""So long at most an optimum is looked for."""


def optimum(problem: Problem) -> float | None:
    """The lowest objective of `problem` by HiGHS; None where it is infeasible.

    CBC takes many times as long where partitions are of no size, and passes over what is better by less than 1e-5.
    """
    answer = by_highs(replace(problem, time_limit_s=PATIENCE_S))
    if not answer.proven:
        raise RuntimeError(f"HiGHS has no answer: {problem}")
    return answer.objective


def by_cbc(problem: Problem) -> Answer:
    """What CBC makes of the model within the time limit, the building of the model aside."""
    model = literal(problem)
    command = pulp.COIN_CMD(
        path=PULP_CBC_CMD.pulp_cbc_path, msg=False, gapRel=0, gapAbs=0, timeLimit=problem.time_limit_s
    )
    model.solve(command)
    proven = model.sol_status == pulp.LpSolutionOptimal
    found = proven or model.sol_status == pulp.LpSolutionIntegerFeasible
    return Answer(pulp.value(model.objective) if found else None, proven)


def by_highs(problem: Problem) -> Answer:
    """What HiGHS makes of the model within the time limit, the building of the model aside.

    Without its presolve, which may be deaf to the limit.
    """
    paper = literal(problem)
    model = mathopt.Model()
    variables = {each.name: model.add_binary_variable() for each in paper.variables()}

    def expression(terms: pulp.LpAffineExpression) -> mathopt.LinearSum:
        return mathopt.LinearSum(coefficient * variables[each.name] for each, coefficient in terms.items())

    model.minimize(expression(paper.objective) + paper.objective.constant)
    for constraint in paper.constraints():
        left, right = expression(constraint), -constraint.constant
        if constraint.sense == pulp.LpConstraintEQ:
            model.add_linear_constraint(left == right)
        elif constraint.sense == pulp.LpConstraintGE:
            model.add_linear_constraint(left >= right)
        else:
            model.add_linear_constraint(left <= right)
    limits = mathopt.SolveParameters(
        time_limit=timedelta(seconds=problem.time_limit_s), presolve=mathopt.Emphasis.OFF, relative_gap_tolerance=0.0
    )
    result = mathopt.solve(model, mathopt.SolverType.HIGHS, params=limits)
    proven = result.termination.reason in (mathopt.TerminationReason.OPTIMAL, mathopt.TerminationReason.INFEASIBLE)
    return Answer(result.objective_value() if result.has_primal_feasible_solution() else None, proven)


def literal(problem: Problem) -> pulp.LpProblem:
    """The paper's model. For some ten partitions; knows of all rules but capacities that differ."""
    speeds = problem.speeds
    saturated = [p for p in speeds if speeds[p] > problem.capacity]
    known = sorted({problem.current[p] for p in speeds if p in problem.current} | set(problem.pinned.values()))
    fresh = max([*known, problem.first_consumer]) + 1
    consumers = known + list(range(fresh, fresh + len(speeds)))
    packing = problem.packing_capacity or problem.capacity
    model = pulp.LpProblem("kcga", pulp.LpMinimize)

    def binary(name: str) -> pulp.LpVariable:
        return model.add_variable(name, cat="Binary")

    x = {(p, c): binary(f"x_{p.partition}_{c}") for p in speeds for c in consumers}
    y = {c: binary(f"y_{c}") for c in consumers}
    moved = pulp.lpSum(speeds[p] * (1 - x[p, problem.current[p]]) for p in speeds if p in problem.current)
    model += pulp.lpSum(y.values()) + problem.migration_weight * moved * (1 / problem.capacity)
    for p in speeds:
        model += pulp.lpSum(x[p, c] for c in consumers) == 1
    for c in consumers:
        count = pulp.lpSum(x[p, c] for p in speeds)
        load = pulp.lpSum(min(speeds[p], problem.capacity) * x[p, c] for p in speeds)
        model += load <= problem.capacity * y[c]
        model += count >= y[c]
        model += count <= len(speeds) * y[c]
        for p in saturated:
            model += count <= 1 + len(speeds) * (1 - x[p, c])
        if packing < problem.capacity:
            receives, alone = binary(f"r_{c}"), binary(f"a_{c}")
            for p in speeds:
                if problem.current.get(p) != c:
                    model += receives >= x[p, c]
            model += count <= 1 + len(speeds) * (1 - alone)
            model += load <= packing + (problem.capacity - packing) * (1 - receives + alone)
    model += pulp.lpSum(y.values()) >= min(problem.min_consumers, len(speeds))
    if problem.max_consumers is not None:
        model += pulp.lpSum(y.values()) <= problem.max_consumers
    for p, c in problem.fixed.items():
        model += x[p, c] == 1
    return model
