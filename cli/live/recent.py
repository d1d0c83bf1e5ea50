"""What has lately been said on kcga's topics: as much as it takes to know how the group stands.

How much that is follows from what is said again: consumers report at least every second, the controller claims the
group, and says whether it is paused, every two, the monitor measures all partitions each time. The assignment that is
wanted is the newest decision that was carried out, however old.
"""

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from app.decisions import valid
from app.settings import Settings
from app.tail import Arrived, tail
from controller.decide.creation_limit import told_later
from controller.decide.history import beginning
from domain.messages import (
    ConsumerReport,
    ControllerClaim,
    ControlRequest,
    CreationLimit,
    Decision,
    MessageError,
    MessageToController,
    RolloutStanding,
    WriteSpeedReport,
    decode_to_controller,
)
from domain.topics import CONTROLLER_PARTITION

ROUND_S = 2.0
"""Reports may be this old when they are read."""
T = TypeVar("T")


class Came(NamedTuple, Generic[T]):
    """A message, and when it came: in seconds since the epoch by the clock here, whatever its sender's says."""

    at: float
    said: T


@dataclass(frozen=True, slots=True)
class Recent:
    """Messages in the order in which they came."""

    at: float
    """Now, in seconds since the epoch."""
    reports: tuple[Came[ConsumerReport], ...]
    """Of the time after which a consumer that is silent is taken for dead."""
    statements: tuple[Came[ControllerClaim | ControlRequest], ...]
    """Of the same time."""
    decisions: tuple[Came[Decision], ...]
    """Of the migration window, and back to the newest that was carried out."""

    @property
    def paused(self) -> bool:
        return beginning(statement.said for statement in self.statements).paused

    @property
    def creation_limit(self) -> CreationLimit | None:
        """What the newest controller's plans are held to now, because a consumer could not be created.

        Its times are told by the clock here.
        """
        for at, claim in reversed(self.statements):
            if isinstance(claim, ControllerClaim):
                limit = claim.creation_limit and told_later(claim.creation_limit, at - claim.sent_at)
                return limit if limit is not None and self.at < limit.until else None
        return None

    @property
    def claim(self) -> ControllerClaim | None:
        """The newest."""
        return next((said for _, said in reversed(self.statements) if isinstance(said, ControllerClaim)), None)

    @property
    def rollout(self) -> RolloutStanding | None:
        """How far the newest controller has come with replacing consumers."""
        return self.claim.rollout if self.claim is not None else None

    @property
    def began_at(self) -> float:
        """When the newest controller began, by the clock here; long ago where that is not known."""
        claims = [(at, claim) for at, claim in self.statements if isinstance(claim, ControllerClaim)]
        for at, claim in reversed(claims):
            if claim.epoch == self.epoch and claim.standing is not None:
                return claim.standing.began_at + at - claim.sent_at
        return -math.inf

    @property
    def epoch(self) -> int | None:
        """Of the newest controller that was heard of."""
        claims = [claim.epoch for _, claim in self.statements if isinstance(claim, ControllerClaim)]
        return max([*claims, *(decision.epoch for _, decision in self.decisions)], default=None)


@contextmanager
def recent(settings: Settings, *, window_s: float = 0.0) -> Iterator[tuple[Recent, Iterator[Came[WriteSpeedReport]]]]:
    """All but the measurements, and these, which come one by one: a large group's are too many to keep.

    Args:
        settings: where the topics are.
        window_s: how far back measurements and decisions are needed, beyond those that are fresh still, or count for
            the migration budget. Of what was measured before the controller began, only the last matters to it.

    Raises:
        KcgaError: the cluster does not answer.
    """
    controller, topics = settings.controller, settings.topics
    with tail(settings) as reader:
        reader.compare_clocks((topics.metadata, CONTROLLER_PARTITION), (topics.write_speed, 0))
        at = time.time()
        silent_since = at - controller.heartbeat_timeout_s - ROUND_S
        measured_since = at - max(window_s, controller.speeds_timeout_s) - ROUND_S
        group = settings.kafka.group
        reports, statements = list[Came[ConsumerReport]](), list[Came[ControllerClaim | ControlRequest]]()
        for came_at, message in _to_controller(reader.since(topics.metadata, silent_since, CONTROLLER_PARTITION)):
            match message:
                case _ if not message.is_of(group):
                    continue
                case ConsumerReport():
                    reports.append(Came(came_at, message))
                case ControllerClaim() | ControlRequest():
                    statements.append(Came(came_at, message))
        budget_since = at - max(window_s, controller.migration_window_s)
        decisions, carried_out = list[Came[Decision]](), False
        for came_at, decision in valid(reader.newest_first(topics.decisions), group):
            if carried_out and came_at < budget_since:
                break
            decisions.append(Came(came_at, decision))
            carried_out |= decision.carried_out
        told = Recent(at, tuple(reports), tuple(statements), tuple(reversed(decisions)))
        since = max(measured_since, told.began_at)
        speeds = _speeds(reader.since(topics.write_speed, since, one_more=since == told.began_at))
        yield told, (measured for measured in speeds if measured.said.is_of(group))


def _speeds(records: Iterable[Arrived]) -> Iterator[Came[WriteSpeedReport]]:
    for record in records:
        try:
            yield Came(record.at, WriteSpeedReport.decode(record.value))
        except MessageError:
            continue


def _to_controller(records: Iterable[Arrived]) -> Iterator[tuple[float, MessageToController]]:
    for record in records:
        try:
            yield record.at, decode_to_controller(record.value)
        except MessageError:
            continue
