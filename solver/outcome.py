"""What an engine found."""

from dataclasses import dataclass

from domain.assignment import Assignment


@dataclass(frozen=True, slots=True)
class Outcome:
    """The best assignment of an engine, and the bound that it proved."""

    assignment: Assignment | None
    """None where it is no better than what the engine was given."""
    lower_bound: float
    log: list[str]
