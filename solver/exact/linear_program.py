"""Linear and integer programs by column: an adapter of OR-Tools' MathOpt (GLOP and SCIP).

MathOpt's own Python classes take several times as long to build a model of this kind, and to read its solution, as the
solver takes to solve it: here models and solutions go in and out as whole arrays.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from ortools.math_opt import callback_pb2, model_parameters_pb2, model_pb2, model_update_pb2, parameters_pb2, result_pb2
from ortools.math_opt.core.python import solver as mathopt_core
from pybind11_abseil.status import StatusNotOk

from solver.deadline import Deadline
from solver.exact.instance import Floats

_NOTHING_ELSE = (
    model_parameters_pb2.ModelSolveParametersProto(),
    None,
    callback_pb2.CallbackRegistrationProto(),
    None,
    None,
)
"""What a solver is told beside the model and its limits: no hints, no log, no callback, no way to interrupt it."""
_FOUND = (result_pb2.TERMINATION_REASON_OPTIMAL, result_pb2.TERMINATION_REASON_FEASIBLE)


@dataclass(frozen=True, slots=True)
class Point:
    """A solution: an entry for each column, and for a linear program one for each row."""

    objective: float
    values: Floats
    duals: Floats
    """What the objective grows by with the bound of a row that is tight; empty for an integer program."""
    reduced_costs: Floats
    """The same for the lower bound of a column."""


class LinearProgram:
    """Minimise the sum of costs; rows and columns are numbered from 0 in the order in which they are added."""

    def __init__(self) -> None:
        self.columns = 0
        self.rows = 0
        self._solver: mathopt_core.Solver | None = None
        self._clear()

    def _clear(self) -> None:
        self._row_lower: list[float] = []
        self._row_upper: list[float] = []
        self._costs: list[float] = []
        self._lower: list[float] = []
        self._upper: list[float] = []
        self._integer: list[bool] = []
        self._entry_rows: list[int] = []
        self._entry_columns: list[int] = []
        self._entries: list[float] = []
        self._column_bounds: dict[int, tuple[float, float]] = {}
        self._row_bounds: dict[int, tuple[float, float]] = {}

    def add_row(self, lower: float = 0.0, upper: float = np.inf) -> int:
        self._row_lower.append(lower)
        self._row_upper.append(upper)
        self.rows += 1
        return self.rows - 1

    def add_column(
        self,
        cost: float = 0.0,
        adds: Iterable[int] = (),
        takes: Iterable[int] = (),
        *,
        lower: float = 0.0,
        upper: float = np.inf,
        integer: bool = False,
    ) -> int:
        """A column with 1 in each of the rows `adds`, as often as it is there, and -1 in each of `takes`."""
        column = self.columns
        self._costs.append(cost)
        self._lower.append(lower)
        self._upper.append(upper)
        self._integer.append(integer)
        counts: dict[int, float] = {}
        for row in adds:
            counts[row] = counts.get(row, 0.0) + 1.0
        for row in takes:
            counts[row] = counts.get(row, 0.0) - 1.0
        self._entry_rows.extend(counts)
        self._entries.extend(counts.values())
        self._entry_columns.extend([column] * len(counts))
        self.columns += 1
        return column

    def bound_column(self, column: int, lower: float, upper: float) -> None:
        self._column_bounds[column] = lower, upper

    def bound_row(self, row: int, lower: float, upper: float) -> None:
        self._row_bounds[row] = lower, upper

    def relax(self, deadline: Deadline, *, dual: bool) -> Point | None:
        """The solution of the linear program (GLOP), from the last one on; None where time is up before it is found, or
        GLOP gives up.

        Args:
            deadline: when to give up.
            dual: whether to take the dual simplex: right after bounds have changed, as the primal is after new columns.
        """
        solver = self._updated()
        parameters = _limits(deadline)
        parameters.lp_algorithm = (
            parameters_pb2.LP_ALGORITHM_DUAL_SIMPLEX if dual else parameters_pb2.LP_ALGORITHM_PRIMAL_SIMPLEX
        )
        try:
            result = solver.solve(
                parameters,
                *_NOTHING_ELSE,
            )
        except StatusNotOk:
            # Now and then, in thousands of searches, rounding leads GLOP to a basis that it cannot go on from
            # ("ABNORMAL").
            return None
        if result.termination.reason != result_pb2.TERMINATION_REASON_OPTIMAL:
            return None
        solution = result.solutions[0]
        return Point(
            objective=solution.primal_solution.objective_value,
            values=_dense(solution.primal_solution.variable_values, self.columns),
            duals=_dense(solution.dual_solution.dual_values, self.rows),
            reduced_costs=_dense(solution.dual_solution.reduced_costs, self.columns),
        )

    def solve_integers(self, deadline: Deadline, tolerance: float, below: float) -> tuple[Point | None, bool]:
        """The best solution that is found in time in which the columns so marked are integers (SCIP).

        Args:
            deadline: when to stop.
            tolerance: what it may be above the optimum, as a share of it.
            below: a solution is of use only if its objective is below this.

        Returns:
            The solution, if there is one, and whether it is known that there is none better.
        """
        parameters = _limits(deadline)
        parameters.relative_gap_tolerance = tolerance
        if below < np.inf:
            parameters.cutoff_limit = below
        try:
            result = mathopt_core.solve(
                self._model(),
                parameters_pb2.SOLVER_TYPE_GSCIP,
                parameters_pb2.SolverInitializerProto(),
                parameters,
                *_NOTHING_ELSE,
            )
        except StatusNotOk:
            # Now and then SCIP takes a solution for the optimum that is no better than `below`, and has none to show.
            return None, False
        reason, limit = result.termination.reason, result.termination.limit
        if reason not in _FOUND or not result.solutions:
            return None, reason == result_pb2.TERMINATION_REASON_INFEASIBLE or limit == result_pb2.LIMIT_CUTOFF
        found = result.solutions[0].primal_solution
        values = _dense(found.variable_values, self.columns)
        point = Point(found.objective_value, values, np.empty(0), np.empty(0))
        return point, reason == result_pb2.TERMINATION_REASON_OPTIMAL

    def _updated(self) -> mathopt_core.Solver:
        """The solver, after it was handed what is new."""
        if self._solver is None:
            self._solver = mathopt_core.new(
                parameters_pb2.SOLVER_TYPE_GLOP, self._model(), parameters_pb2.SolverInitializerProto()
            )
        else:
            update = model_update_pb2.ModelUpdateProto(
                new_variables=self._variables(),
                new_linear_constraints=self._constraints(),
                linear_constraint_matrix_updates=self._matrix(),
            )
            first = self.columns - len(self._costs)
            _fill(update.objective_updates.linear_coefficients, range(first, self.columns), self._costs)
            columns, rows = sorted(self._column_bounds), sorted(self._row_bounds)
            _fill(update.variable_updates.lower_bounds, columns, [self._column_bounds[c][0] for c in columns])
            _fill(update.variable_updates.upper_bounds, columns, [self._column_bounds[c][1] for c in columns])
            _fill(update.linear_constraint_updates.lower_bounds, rows, [self._row_bounds[r][0] for r in rows])
            _fill(update.linear_constraint_updates.upper_bounds, rows, [self._row_bounds[r][1] for r in rows])
            if not self._solver.update(update):
                raise RuntimeError("GLOP refuses to take an update of its model")
        self._clear()
        return self._solver

    def _model(self) -> model_pb2.ModelProto:
        for column, bounds in self._column_bounds.items():
            self._lower[column], self._upper[column] = bounds
        for row, bounds in self._row_bounds.items():
            self._row_lower[row], self._row_upper[row] = bounds
        model = model_pb2.ModelProto(
            variables=self._variables(),
            linear_constraints=self._constraints(),
            linear_constraint_matrix=self._matrix(),
        )
        _fill(model.objective.linear_coefficients, range(self.columns), self._costs)
        return model

    def _variables(self) -> model_pb2.VariablesProto:
        return model_pb2.VariablesProto(
            ids=range(self.columns - len(self._costs), self.columns),
            lower_bounds=self._lower,
            upper_bounds=self._upper,
            integers=self._integer,
        )

    def _constraints(self) -> model_pb2.LinearConstraintsProto:
        return model_pb2.LinearConstraintsProto(
            ids=range(self.rows - len(self._row_lower), self.rows),
            lower_bounds=self._row_lower,
            upper_bounds=self._row_upper,
        )

    def _matrix(self) -> "model_pb2.SparseDoubleMatrixProto":
        rows, columns = np.array(self._entry_rows, dtype=np.int64), np.array(self._entry_columns, dtype=np.int64)
        order = np.lexsort((columns, rows))
        matrix = type(model_pb2.ModelProto().linear_constraint_matrix)()
        matrix.row_ids.extend(rows[order].tolist())
        matrix.column_ids.extend(columns[order].tolist())
        matrix.coefficients.extend(np.array(self._entries)[order].tolist())
        return matrix


def _limits(deadline: Deadline) -> parameters_pb2.SolveParametersProto:
    parameters = parameters_pb2.SolveParametersProto()
    parameters.time_limit.FromNanoseconds(max(1, int(deadline.remaining * 1e9)))
    return parameters


def _fill(vector: object, ids: Sequence[int], values: Sequence[float]) -> None:
    vector.ids.extend(ids)  # type: ignore[attr-defined]
    vector.values.extend(values)  # type: ignore[attr-defined]


def _dense(vector: object, length: int) -> Floats:
    dense = np.zeros(length)
    dense[np.array(vector.ids, dtype=np.int64)] = np.array(vector.values)  # type: ignore[attr-defined]
    return dense
