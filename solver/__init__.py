"""Finds the assignment that costs least in consumers and migration, and proves how good it is.

`solve` is all that other packages need; `ENGINES` are the names that it takes. Engines load what they need when they
are asked for: importing this package loads neither OR-Tools nor NumPy. `load` does, before anyone waits for an answer.
"""

from solver.problem import Problem, ProblemError
from solver.solution import Solution, Status
from solver.solve import ENGINES, load, solve

__all__ = ["ENGINES", "Problem", "ProblemError", "Solution", "Status", "load", "solve"]
