"""Which of what the controller hears and decides is an event, and what that says. It has no clock and no client."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from urllib.parse import quote

from domain.messages import ConsumerReport, ControllerClaim, Decision
from domain.partitions import TopicPartition


class EventKind(StrEnum):
    DECISION = "decision"
    """A plan is carried out."""
    SATURATION = "saturation"
    """Other partitions than before are faster than a consumer, or none is any more."""
    SILENCE = "silence"
    """Consumers are gone or given up, and nobody reads their partitions until they have others."""
    LOST = "lost"
    """Retention deleted records before a consumer could read them."""
    PARKED = "parked"
    """Nobody reads a topic for a while, because its table takes nothing."""


_OF_A_DECISION = {
    "epoch",
    "number",
    "grounds",
    "triggers",
    "reason",
    "measured_at",
    "capacity",
    "consumers_before",
    "plan",
    "keeping",
    "shortfall",
    "gap",
}


@dataclass(frozen=True, slots=True)
class Event:
    """A CloudEvent (1.0) without what is the same of all events of a group."""

    kind: EventKind
    id: str
    """The same event has the same one, whichever controller tells it, and however often."""
    at: float
    """Seconds since the epoch."""
    data: Mapping[str, Any]

    def encode(self, group: str) -> bytes:
        """As JSON in CloudEvents' structured mode."""
        event = {
            "specversion": "1.0",
            "id": self.id,
            "source": f"/kcga/{quote(group, safe='')}",
            "type": f"kcga.{self.kind}",
            "time": datetime.fromtimestamp(self.at, UTC).isoformat(),
            "datacontenttype": "application/json",
            "data": {"group": group, **self.data},
        }
        return json.dumps(event).encode()


class Events:
    """Makes the events of one group."""

    def __init__(self) -> None:
        self._saturated: frozenset[TopicPartition] = frozenset()
        self._lost: dict[str, int] = {}
        """How many records processes have lost since they began, of those that have lost any."""
        self._parked: dict[str, float] = {}
        """The topics that were told of, and since when they are parked."""

    def decided(self, decision: Decision) -> Iterator[Event]:
        """What a decision of this controller is told as."""
        named, at = f"{decision.epoch}-{decision.number}", decision.decided_at
        if decision.lost:
            partitions = [str(each.key) for each in decision.assignment if each.previous is None]
            yield Event(
                EventKind.SILENCE, f"silence-{named}", at, {"consumers": decision.lost, "partitions": partitions}
            )
        if decision.carried_out:
            told = decision.model_dump(mode="json", include=_OF_A_DECISION)
            yield Event(EventKind.DECISION, f"decision-{named}", at, {**told, "migrations": decision.migrations})
        saturated = frozenset(each.key for each in decision.saturated)
        if saturated != self._saturated:
            self._saturated = saturated
            told = decision.model_dump(mode="json", include={"capacity", "saturated"})
            yield Event(EventKind.SATURATION, f"saturation-{named}", at, told)

    def heard(self, report: ConsumerReport) -> Iterator[Event]:
        """What a consumer's report is told as."""
        before = self._lost.get(report.writer, 0)
        if report.lost > before:
            self._lost[report.writer] = report.lost
            data = {"consumer": report.consumer, "records": report.lost, "reason": report.reason}
            yield Event(EventKind.LOST, f"lost-{report.incarnation}-{report.lost}", report.sent_at, data)

    def claimed(self, claim: ControllerClaim) -> Iterator[Event]:
        """What the controller's own claim is told as: a topic that is tried in vain is told of once."""
        if claim.standing is None:
            return
        before = self._parked
        self._parked = {each.topic: each.since for each in claim.parked_or_on_trial}
        for each in claim.parked:
            if before.get(each.topic) != each.since:
                data = each.model_dump(include={"topic", "reason", "since", "until"})
                yield Event(EventKind.PARKED, f"parked-{each.topic}-{each.since:.3f}", claim.sent_at, data)
