"""Which numbers options and files may hold: finite, and so that no sum or quotient of them overflows."""

from app.errors import UsageError
from domain.speeds import HIGHEST_SPEED

LOWEST_CAPACITY = 1e-6
HIGHEST_WEIGHT = 1e4
"""Of lambda, in consumers per unit of Rscore."""
LONGEST_S = 86_400.0
"""A day, for one call of the solver."""
HIGHEST_DELTA = 1e6
"""Of a generated stream, in percent of the capacity."""


def require(name: str, value: float, lowest: float, highest: float) -> float:
    """`value` itself.

    Raises:
        UsageError: it is no number from `lowest` to `highest`.
    """
    if not lowest <= value <= highest:
        raise UsageError(f"{name} is {value:g}: it must be a number from {lowest:g} to {highest:g}")
    return value


def require_capacity(capacity: float) -> float:
    if not capacity > 0:
        raise UsageError(f"--capacity is {capacity:g}: it must be above 0")
    return require("--capacity", capacity, LOWEST_CAPACITY, HIGHEST_SPEED)


def require_time_limit(seconds: float) -> float:
    if not seconds > 0:
        raise UsageError(f"--time-limit is {seconds:g}: it must be a number of seconds above 0")
    return require("--time-limit", seconds, 1e-3, LONGEST_S)
