"""What has lately been said on kcga's topics: as much as it takes to know how the group stands.

How much that is follows from what is said again: consumers report at least every second, the monitor measures all
partitions each time, a pause is stated anew every ten minutes. The assignment that is wanted is the newest decision
that was carried out, however old.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cli.explain.history import valid
from cli.settings import Settings
from cli.tail import tail
from controller.machine import PAUSE_RESTATED_S
from domain.messages import (
    ConsumerReport,
    ControlAction,
    ControllerClaim,
    ControlRequest,
    Decision,
    MessageError,
    MessageToController,
    WriteSpeedReport,
    decode_to_controller,
)
from domain.topics import CONTROLLER_PARTITION

ROUND_S = 2.0
"""Reports may be this old when they are read."""
_STATEMENTS = (b'"kind":"claim"', b'"kind":"control"')


@dataclass(frozen=True, slots=True)
class Recent:
    """Messages in the order in which they came."""

    at: float
    """Now, in seconds since the epoch."""
    speeds: tuple[WriteSpeedReport, ...]
    """Of the scale-down window."""
    reports: tuple[ConsumerReport, ...]
    """Of the time after which a consumer that is silent is taken for dead."""
    statements: tuple[ControllerClaim | ControlRequest, ...]
    """Of the time within which a pause is stated again."""
    decisions: tuple[Decision, ...]
    """Of the migration window, and back to the newest that was carried out."""

    @property
    def paused(self) -> bool:
        paused = False
        for statement in self.statements:
            match statement:
                case ControllerClaim(paused=stated):
                    paused = stated
                case ControlRequest(action=ControlAction.PAUSE | ControlAction.RESUME as action):
                    paused = action is ControlAction.PAUSE
                case _:
                    pass
        return paused

    @property
    def epoch(self) -> int | None:
        """Of the newest controller that was heard of."""
        claims = [statement.epoch for statement in self.statements if isinstance(statement, ControllerClaim)]
        return max([*claims, *(decision.epoch for decision in self.decisions)], default=None)


def recent(settings: Settings, *, whole_window: bool) -> Recent:
    """Reads it.

    Args:
        settings: where the topics are.
        whole_window: whether the speeds of the whole scale-down window are needed, or the newest are enough.

    Raises:
        KcgaError: the cluster does not answer.
    """
    controller, topics = settings.controller, settings.topics
    at = time.time()
    silent_since = at - controller.heartbeat_timeout_s - ROUND_S
    with tail(settings) as reader:
        window_s = max(controller.scale_down_window_s if whole_window else 0.0, controller.speeds_timeout_s)
        speeds = tuple(_speeds(reader.since(topics.write_speed, at - window_s - ROUND_S)))
        reports, statements = list[ConsumerReport](), list[ControllerClaim | ControlRequest]()
        for record in reader.since(topics.metadata, at - PAUSE_RESTATED_S - ROUND_S, CONTROLLER_PARTITION):
            # Of old reports there are many, and none is needed: they are not even decoded.
            match _to_controller(record, silent_since):
                case ConsumerReport() as report if report.sent_at >= silent_since:
                    reports.append(report)
                case ControllerClaim() | ControlRequest() as statement:
                    statements.append(statement)
                case _:
                    pass
        budget_since = at - controller.migration_window_s
        decisions, carried_out = list[Decision](), False
        for decision in valid(reader.newest_first(topics.decisions)):
            if carried_out and decision.decided_at < budget_since:
                break
            decisions.append(decision)
            carried_out |= decision.carried_out
    return Recent(at, speeds, tuple(reports), tuple(statements), tuple(reversed(decisions)))


def _speeds(records: Iterable[bytes]) -> Iterator[WriteSpeedReport]:
    for record in records:
        try:
            yield WriteSpeedReport.decode(record)
        except MessageError:
            continue


def _to_controller(record: bytes, silent_since: float) -> MessageToController | None:
    if not any(kind in record[:200] for kind in _STATEMENTS) and _sent_at(record) < silent_since:
        return None
    try:
        return decode_to_controller(record)
    except MessageError:
        return None


def _sent_at(record: bytes) -> float:
    """When a report was sent, by the look of its bytes; now, where it does not look like one."""
    _, found, rest = record[:400].partition(b'"sent_at":')
    try:
        return float(rest.partition(b",")[0]) if found else time.time()
    except ValueError:
        return time.time()
