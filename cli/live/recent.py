"""What has lately been said on kcga's topics: as much as it takes to know how the group stands.

How much that is follows from what is said again: consumers report at least every second, the controller claims the
group, and says whether it is paused, every two, the monitor measures all partitions each time. The assignment that is
wanted is the newest decision that was carried out, however old.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from cli.explain.history import valid
from cli.settings import Settings
from cli.tail import tail
from controller.history import beginning
from domain.messages import (
    ConsumerReport,
    ControllerClaim,
    ControlRequest,
    CreationLimit,
    Decision,
    MessageError,
    MessageToController,
    WriteSpeedReport,
    decode_to_controller,
)
from domain.topics import CONTROLLER_PARTITION

ROUND_S = 2.0
"""Reports may be this old when they are read."""


@dataclass(frozen=True, slots=True)
class Recent:
    """Messages in the order in which they came."""

    at: float
    """Now, in seconds since the epoch."""
    reports: tuple[ConsumerReport, ...]
    """Of the time after which a consumer that is silent is taken for dead."""
    statements: tuple[ControllerClaim | ControlRequest, ...]
    """Of the same time."""
    decisions: tuple[Decision, ...]
    """Of the migration window, and back to the newest that was carried out."""

    @property
    def paused(self) -> bool:
        return beginning(self.statements).paused

    @property
    def creation_limit(self) -> CreationLimit | None:
        """What the newest controller's plans are held to now, because a consumer could not be created."""
        claims = [statement for statement in self.statements if isinstance(statement, ControllerClaim)]
        limit = claims[-1].creation_limit if claims else None
        return limit if limit is not None and self.at < limit.until else None

    @property
    def epoch(self) -> int | None:
        """Of the newest controller that was heard of."""
        claims = [statement.epoch for statement in self.statements if isinstance(statement, ControllerClaim)]
        return max([*claims, *(decision.epoch for decision in self.decisions)], default=None)


def recent(settings: Settings, take: Callable[[WriteSpeedReport], None], *, window_s: float = 0.0) -> Recent:
    """Reads it.

    Args:
        settings: where the topics are.
        take: is given each measurement, in the order in which they came. A large group's are too many to keep.
        window_s: how far back these are needed, beyond those that are fresh still.

    Raises:
        KcgaError: the cluster does not answer.
    """
    controller, topics = settings.controller, settings.topics
    at = time.time()
    silent_since = at - controller.heartbeat_timeout_s - ROUND_S
    with tail(settings) as reader:
        measured_since = at - max(window_s, controller.speeds_timeout_s) - ROUND_S
        group = settings.kafka.group
        for measurement in _speeds(reader.since(topics.write_speed, measured_since)):
            if measurement.is_of(group):
                take(measurement)
        reports, statements = list[ConsumerReport](), list[ControllerClaim | ControlRequest]()
        for message in _to_controller(reader.since(topics.metadata, silent_since, CONTROLLER_PARTITION)):
            match message:
                case _ if not message.is_of(group):
                    continue
                case ConsumerReport():
                    reports.append(message)
                case ControllerClaim() | ControlRequest():
                    statements.append(message)
        budget_since = at - controller.migration_window_s
        decisions, carried_out = list[Decision](), False
        for decision in valid(reader.newest_first(topics.decisions)):
            if not decision.is_of(group):
                continue
            if carried_out and decision.decided_at < budget_since:
                break
            decisions.append(decision)
            carried_out |= decision.carried_out
    return Recent(at, tuple(reports), tuple(statements), tuple(reversed(decisions)))


def _speeds(records: Iterable[bytes]) -> Iterator[WriteSpeedReport]:
    for record in records:
        try:
            yield WriteSpeedReport.decode(record)
        except MessageError:
            continue


def _to_controller(records: Iterable[bytes]) -> Iterator[MessageToController]:
    for record in records:
        try:
            yield decode_to_controller(record)
        except MessageError:
            continue
