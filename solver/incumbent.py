"""The best plan and the best bound so far: where engines put what they find, and whoever waits for them looks."""

import threading
from dataclasses import dataclass

from domain.assignment import Assignment
from solver.evaluation import Evaluation, evaluate
from solver.problem import Problem
from solver.solution import OPTIMALITY_TOLERANCE


@dataclass(frozen=True, slots=True)
class Found:
    """A plan, who found it, and what it costs."""

    assignment: Assignment
    engine: str
    figures: Evaluation


class Incumbent:
    """Safe to use from several threads: an engine may still work on it when the answer has long been given."""

    def __init__(self, problem: Problem, tolerance: float = OPTIMALITY_TOLERANCE) -> None:
        self.problem = problem
        self.tolerance = tolerance
        self._lock = threading.Lock()
        self._best: Found | None = None
        self._bound = 0.0
        self._closed = False

    @property
    def best(self) -> Found | None:
        """The feasible plan that costs least; of equals, the first."""
        return self._best

    @property
    def objective(self) -> float:
        best = self._best
        return float("inf") if best is None else best.figures.objective

    @property
    def bound(self) -> float:
        """No assignment has an objective below this one."""
        return self._bound

    @property
    def cutoff(self) -> float:
        """A part of the search space whose bound is not below this one holds nothing worth finding."""
        return min(self.objective * (1 - self.tolerance), self.objective - self.problem.absolute_gap)

    @property
    def is_proven(self) -> bool:
        """Whether nothing worth finding is left."""
        return self._best is not None and self._bound >= self.cutoff

    @property
    def is_optimal(self) -> bool:
        return self._best is not None and self._bound >= self.objective * (1 - OPTIMALITY_TOLERANCE)

    def offer(self, assignment: Assignment, engine: str) -> bool:
        """Keeps `assignment` if it is feasible and better than what there is, and says whether it did."""
        figures = evaluate(self.problem, assignment)
        with self._lock:
            if self._closed or not figures.is_feasible or figures.objective >= self.objective:
                return False
            self._best = Found(assignment, engine, figures)
            return True

    def raise_bound(self, bound: float) -> None:
        """Notes that no assignment has an objective below `bound`."""
        with self._lock:
            if not self._closed:
                self._bound = max(self._bound, bound)

    def close(self) -> None:
        """Takes nothing more: the answer is being made of what there is."""
        with self._lock:
            self._closed = True
