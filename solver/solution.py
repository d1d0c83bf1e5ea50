"""What the solver answers: an assignment, with the proof of how good it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from domain.assignment import Assignment, ConsumerId
from domain.consumer_class import ConsumerClass
from domain.partitions import TopicPartition


class Status(StrEnum):
    OPTIMAL = "optimal"
    """No assignment has an objective that is lower by more than `OPTIMALITY_TOLERANCE` of it."""
    FEASIBLE = "feasible"
    """The best within the time limit, or one that is within `absolute_gap` of the optimum."""
    FALLBACK = "fallback"
    """The exact engines neither had anything better than the heuristic within the time limit, nor proved it good."""
    HEURISTIC = "heuristic"
    """A heuristic was asked for."""
    INFEASIBLE = "infeasible"
    """No assignment was found that keeps all the rules: this is the least overloaded one, see `excess`."""


OPTIMALITY_TOLERANCE = 1e-6
"""How far an objective may be above its bound, as a share of it, and be called optimal."""


@dataclass(frozen=True, slots=True)
class Solution:
    """An assignment, and how it was found and proven."""

    assignment: Assignment
    engine: str
    """What found the assignment."""
    status: Status
    consumers: int
    rscore: float
    objective: float
    """What the consumers cost, in ordinary ones, and `migration_weight * rscore`."""
    lower_bound: float
    """No assignment has an objective below this one."""
    seconds: float
    """Wall time of the whole call."""
    classes: Mapping[ConsumerId, ConsumerClass] = field(default_factory=dict)
    """Of the consumers that have partitions, in ascending order."""
    saturated: tuple[TopicPartition, ...] = ()
    """Partitions that are faster than a consumer, in ascending order."""
    excess: float = 0.0
    """What is above the consumers' capacities where there was no way to respect them, in bytes/s over all of them."""
    reason: str = ""
    """Which rule cannot be kept, and by how much, where the status is `infeasible`."""

    @property
    def gap(self) -> float:
        """How far, at most, the objective is above the optimum, as a share of the objective."""
        return (self.objective - self.lower_bound) / self.objective if self.objective else 0.0
