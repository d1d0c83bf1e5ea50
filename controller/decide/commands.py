"""What the controller can want done in the world."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.decide.former_writers import Reach
from domain.assignment import ConsumerId
from domain.consumer_class import ORDINARY
from domain.messages import ConsumerCommand, CreationLimit, Decision, Standing
from solver.problem import Problem


@dataclass(frozen=True, slots=True)
class CreateConsumer:
    consumer: ConsumerId
    plan: int
    """That is carried out; 0 before the first."""
    class_name: str = ORDINARY


@dataclass(frozen=True, slots=True)
class DeleteConsumer:
    """End the consumer's process; it is answered by `ConsumerGone` once the process has ended."""

    consumer: ConsumerId
    plan: int
    """That is carried out; 0 before the first."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send the command to its consumer's partition of `consumer.metadata`."""

    command: ConsumerCommand


@dataclass(frozen=True, slots=True)
class Solve:
    """Solve the problem; it is answered by `Solved` or `SolveFailed` with the same plan."""

    plan: int
    problem: Problem
    engine: str


@dataclass(frozen=True, slots=True)
class Publish:
    decision: Decision


@dataclass(frozen=True, slots=True)
class Claim:
    """Say who acts, where the next controller and this one itself hear it, with what the next one has to know.

    It is answered by `ClaimHeard` with the same sequence. See `ControllerClaim`.
    """

    sequence: int
    paused: bool
    unsealed: Mapping[str, Reach]
    settled: tuple[str, ...]
    members: Mapping[str, Reach] = field(default_factory=dict)
    creation_limit: CreationLimit | None = None
    standing: Standing | None = None
    decisions: int = 0
    """So many it has made."""


Command = CreateConsumer | DeleteConsumer | Send | Solve | Publish | Claim
