"""What can happen to the controller. `at` is in seconds since the epoch, on a clock that never goes back."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.decide.history import Beginning
from domain.assignment import ConsumerId
from domain.messages import ConsumerReport, ControlAction, Decision
from domain.speeds import WriteSpeeds
from solver.solution import Solution


@dataclass(frozen=True, slots=True)
class Started:
    """The controller begins to act; these consumers exist."""

    at: float
    consumers: frozenset[ConsumerId]
    beginning: Beginning
    decided: tuple[Decision, ...] = ()
    """What the controllers before it decided within `migration_window_s`, in this order; `decided_at` is when each
    came, by the clock of this one."""


@dataclass(frozen=True, slots=True)
class SpeedsMeasured:
    at: float
    speeds: WriteSpeeds


@dataclass(frozen=True, slots=True)
class ConsumerReported:
    at: float
    report: ConsumerReport


@dataclass(frozen=True, slots=True)
class RevisionsSeen:
    at: float
    revision: str | None
    """What consumers begin with now; None where that is not known."""
    outdated: frozenset[ConsumerId]
    """Those that began with another."""
    class_names: Mapping[ConsumerId, str] = field(default_factory=dict)
    """The class of each consumer that is known to exist."""


@dataclass(frozen=True, slots=True)
class ClaimHeard:
    """The claim with this sequence has come back: whatever was reported before it was sent has been taken in."""

    at: float
    sequence: int


@dataclass(frozen=True, slots=True)
class ConsumerGone:
    """The consumer's process has ended for certain: it reads nothing any more."""

    at: float
    consumer: ConsumerId


@dataclass(frozen=True, slots=True)
class CreationFailed:
    at: float
    consumer: ConsumerId
    reason: str


@dataclass(frozen=True, slots=True)
class Solved:
    """The answer to the `Solve` command of that plan."""

    at: float
    plan: int
    solution: Solution


@dataclass(frozen=True, slots=True)
class SolveFailed:
    at: float
    plan: int
    reason: str


@dataclass(frozen=True, slots=True)
class OperatorAsked:
    at: float
    action: ControlAction
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class Ticked:
    """Time has passed."""

    at: float


Event = (
    Started
    | SpeedsMeasured
    | ConsumerReported
    | RevisionsSeen
    | ClaimHeard
    | ConsumerGone
    | CreationFailed
    | Solved
    | SolveFailed
    | OperatorAsked
    | Ticked
)
