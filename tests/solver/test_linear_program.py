"""Linear and integer programs: against all vertices and all integer points, and after every kind of change."""

from dataclasses import dataclass, field
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.deadline import Deadline
from solver.exact.linear_program import LinearProgram, Point
from tests.examples import examples

known = settings(max_examples=examples(15), deadline=None, derandomize=True)
TOLERANCE = 1e-7


@dataclass(frozen=True)
class Column:
    cost: float
    adds: tuple[int, ...] = ()
    takes: tuple[int, ...] = ()
    lower: float = 0.0
    upper: float = 4.0


@dataclass(frozen=True)
class Model:
    """The same as a `LinearProgram`, written out."""

    rows: tuple[tuple[float, float], ...]
    columns: tuple[Column, ...]
    integer: bool = field(default=False)

    @property
    def matrix(self) -> np.ndarray:
        matrix = np.zeros((len(self.rows), len(self.columns)))
        for number, column in enumerate(self.columns):
            for row in column.adds:
                matrix[row, number] += 1
            for row in column.takes:
                matrix[row, number] -= 1
        return matrix

    @property
    def costs(self) -> np.ndarray:
        return np.array([column.cost for column in self.columns])

    def allows(self, values: np.ndarray) -> bool:
        sums = self.matrix @ values
        inside = all(
            lower - 1e-9 <= total <= upper + 1e-9 for total, (lower, upper) in zip(sums, self.rows, strict=True)
        )
        return inside and all(
            column.lower - 1e-9 <= value <= column.upper + 1e-9
            for value, column in zip(values, self.columns, strict=True)
        )

    def lowest_vertex(self) -> float | None:
        """The lowest cost of a point at which as many bounds are tight as there are columns; None where none fits."""
        count = len(self.columns)
        tight = [(row, bound) for row, bounds in zip(self.matrix, self.rows, strict=True) for bound in set(bounds)]
        for unit, column in zip(np.eye(count), self.columns, strict=True):
            tight += [(unit, bound) for bound in {column.lower, column.upper}]
        costs = []
        for chosen in combinations([(row, bound) for row, bound in tight if np.isfinite(bound)], count):
            left = np.array([row for row, _ in chosen])
            if abs(np.linalg.det(left)) > 1e-9:
                values = np.linalg.solve(left, np.array([bound for _, bound in chosen]))
                if self.allows(values):
                    costs.append(float(self.costs @ values))
        return min(costs, default=None)

    def lowest_integers(self) -> float | None:
        ranges = [range(int(column.lower), int(column.upper) + 1) for column in self.columns]
        fitting = [np.array(values) for values in product(*ranges) if self.allows(np.array(values, dtype=float))]
        return min((float(self.costs @ values) for values in fitting), default=None)

    def program(self) -> LinearProgram:
        program = LinearProgram()
        for lower, upper in self.rows:
            program.add_row(lower, upper)
        for column in self.columns:
            add(program, column, integer=self.integer)
        return program


def add(program: LinearProgram, column: Column, *, integer: bool = False) -> int:
    return program.add_column(
        column.cost, column.adds, column.takes, lower=column.lower, upper=column.upper, integer=integer
    )


def in_time() -> Deadline:
    return Deadline.after(3600)


def too_late() -> Deadline:
    return Deadline(at=0.0, clock=lambda: 1.0)


def solved(program: LinearProgram, *, dual: bool = False) -> Point:
    point = program.relax(in_time(), dual=dual)
    assert point is not None
    return point


@st.composite
def columns(draw: st.DrawFn, rows: int) -> Column:
    some = st.lists(st.integers(0, rows - 1), max_size=3).map(tuple)
    lower = draw(st.integers(0, 2))
    return Column(draw(st.integers(-4, 4)), draw(some), draw(some), lower, lower + draw(st.integers(0, 3)))


@st.composite
def models(draw: st.DrawFn) -> Model:
    count = draw(st.integers(1, 3))
    bounds = st.tuples(st.integers(-4, 5), st.integers(0, 3) | st.just(float("inf")))
    rows = tuple(
        (float(lower), lower + width) for lower, width in draw(st.lists(bounds, min_size=count, max_size=count))
    )
    return Model(rows, tuple(draw(st.lists(columns(count), min_size=1, max_size=3))))


def require_proof(model: Model, point: Point) -> None:
    """By its duals no solution is below `point`: with each row, and column, at the bound that its dual is of."""
    bounds = [*model.rows, *((column.lower, column.upper) for column in model.columns)]
    prices = np.concatenate([point.duals, point.reduced_costs])
    assert point.reduced_costs == pytest.approx(model.costs - model.matrix.T @ point.duals, abs=TOLERANCE)
    proven = 0.0
    for price, (lower, upper) in zip(prices, bounds, strict=True):
        if abs(price) > TOLERANCE:
            proven += price * (lower if price > 0 else upper)
    assert proven == pytest.approx(point.objective, abs=1e-6)


@given(models(), st.booleans())
@known
def test_the_linear_program_has_the_cost_of_its_lowest_vertex_and_its_duals_prove_it(model: Model, dual: bool) -> None:
    point = model.program().relax(in_time(), dual=dual)
    lowest = model.lowest_vertex()
    if lowest is None:
        assert point is None
        return
    assert point is not None
    assert point.objective == pytest.approx(lowest, abs=TOLERANCE)
    assert model.costs @ point.values == pytest.approx(lowest, abs=TOLERANCE)
    assert model.allows(np.round(point.values, 7))
    require_proof(model, point)


@given(models(), st.data())
@known
def test_a_program_that_has_changed_is_solved_as_one_that_was_so_from_the_beginning(
    before: Model, data: st.DataObject
) -> None:
    program = before.program()
    program.relax(in_time(), dual=False)
    rows, kept = list(before.rows), list(before.columns)
    row = data.draw(st.integers(0, len(rows) - 1))
    rows[row] = (data.draw(st.integers(-4, 0)), data.draw(st.integers(1, 4)))
    program.bound_row(row, *rows[row])
    place = data.draw(st.integers(0, len(kept) - 1))
    old = kept[place]
    kept[place] = Column(old.cost, old.adds, old.takes, 0.0, data.draw(st.integers(0, 2)))
    program.bound_column(place, kept[place].lower, kept[place].upper)
    assert program.add_row(0.0, 2.0) == len(rows)
    rows.append((0.0, 2.0))
    new = data.draw(columns(len(rows)))
    assert add(program, new) == len(kept)
    after = Model(tuple(rows), (*kept, new))
    point = program.relax(in_time(), dual=data.draw(st.booleans()))
    lowest = after.lowest_vertex()
    assert (point is None) == (lowest is None)
    if point is not None:
        assert point.objective == pytest.approx(lowest, abs=TOLERANCE)
        require_proof(after, point)


def test_a_dual_value_is_what_one_more_in_its_row_costs() -> None:
    model = Model(rows=((4.0, np.inf), (-np.inf, 3.0)), columns=(Column(1.0, (0, 1)), Column(3.0, (0,))))
    point = solved(model.program())
    assert point.values == pytest.approx([3.0, 1.0])
    assert point.duals == pytest.approx([3.0, -2.0])
    for row, (demand, limit) in enumerate(((4.5, 3.0), (4.0, 3.5))):
        other = solved(Model(rows=((demand, np.inf), (-np.inf, limit)), columns=model.columns).program())
        assert other.objective - point.objective == pytest.approx(0.5 * point.duals[row])


def test_a_row_that_a_column_is_in_twice_counts_it_twice_and_one_that_it_also_takes_from_once_less() -> None:
    twice = Model(rows=((4.0, np.inf),), columns=(Column(1.0, (0, 0)),))
    assert solved(twice.program()).values == pytest.approx([2.0])
    both = Model(rows=((4.0, np.inf),), columns=(Column(1.0, (0, 0), (0,)),))
    assert solved(both.program()).values == pytest.approx([4.0])


@given(models())
@known
def test_integers_are_the_best_of_all_there_are(continuous: Model) -> None:
    model = Model(continuous.rows, continuous.columns, integer=True)
    point, is_best = model.program().solve_integers(in_time(), 0.0, np.inf)
    lowest = model.lowest_integers()
    assert is_best
    if lowest is None:
        assert point is None
        return
    assert point is not None
    assert point.objective == pytest.approx(lowest, abs=1e-6)
    assert model.allows(np.round(point.values))


def test_only_columns_that_are_marked_are_integers() -> None:
    program = LinearProgram()
    row = program.add_row(2.5)
    program.add_column(1.0, [row], upper=2.0, integer=True)
    program.add_column(3.0, [row])
    point, is_best = program.solve_integers(in_time(), 0.0, np.inf)
    assert is_best
    assert point is not None
    assert point.values == pytest.approx([2.0, 0.5])


def test_bounds_that_were_set_later_hold_for_the_integers_too() -> None:
    program = LinearProgram()
    row = program.add_row(1.0)
    first = program.add_column(1.0, [row], integer=True)
    second = program.add_column(2.0, [row], integer=True)
    program.bound_row(row, 3.0, 3.0)
    program.bound_column(first, 0.0, 1.0)
    program.bound_column(second, 0.0, 5.0)
    point, _ = program.solve_integers(in_time(), 0.0, np.inf)
    assert point is not None
    assert point.values == pytest.approx([1.0, 2.0])


@pytest.mark.parametrize(("below", "is_of_use"), [(2.9, False), (3.5, True), (np.inf, True)])
def test_integers_that_cost_more_than_would_be_of_use_are_none(below: float, is_of_use: bool) -> None:
    model = Model(rows=((3.0, np.inf),), columns=(Column(1.0, (0,)),), integer=True)
    point, is_best = model.program().solve_integers(in_time(), 0.0, below)
    assert is_best
    assert (point is not None) == is_of_use


def test_what_cannot_be_has_no_solution_and_it_is_known_that_there_is_none() -> None:
    model = Model(rows=((9.0, np.inf),), columns=(Column(1.0, (0,)),), integer=True)
    assert model.program().solve_integers(in_time(), 0.0, np.inf) == (None, True)
    assert Model(model.rows, model.columns).program().relax(in_time(), dual=True) is None


def test_what_has_no_end_has_no_solution() -> None:
    program = LinearProgram()
    program.add_column(-1.0, [program.add_row(1.0)])
    assert program.relax(in_time(), dual=False) is None


def test_what_glop_gives_up_on_has_no_solution() -> None:
    program = LinearProgram()
    row = program.add_row(1.0)
    program.add_column(1e200, [row])
    assert program.relax(in_time(), dual=False) is None


def test_a_program_without_columns_costs_nothing_unless_a_row_demands_something() -> None:
    empty = solved(LinearProgram())
    assert (empty.objective, len(empty.values), len(empty.duals)) == (0.0, 0, 0)
    demanding = LinearProgram()
    demanding.add_row(1.0)
    assert demanding.relax(in_time(), dual=False) is None


def test_nothing_is_found_when_time_is_up_and_nothing_is_said_to_be_known() -> None:
    model = Model(rows=((3.0, np.inf),), columns=(Column(1.0, (0,)),))
    program = model.program()
    assert program.relax(too_late(), dual=True) is None
    assert Model(model.rows, model.columns, integer=True).program().solve_integers(too_late(), 0.0, np.inf) == (
        None,
        False,
    )
    assert solved(program).objective == pytest.approx(3.0)
