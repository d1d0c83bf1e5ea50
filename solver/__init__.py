"""Finds the assignment that costs least in consumers and migration, and proves how good it is.

`solve` is all that other packages need; `ENGINES` are the names that it takes. Engines load what they need when they
are asked for: importing this package loads neither OR-Tools nor NumPy.
"""

from solver.problem import Problem, ProblemError
from solver.solution import Solution, Status
from solver.solve import ENGINES, solve

__all__ = ["ENGINES", "Problem", "ProblemError", "Solution", "Status", "solve"]
