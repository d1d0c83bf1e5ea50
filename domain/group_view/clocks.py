"""How far the clocks of those who send are from one's own. It is shown, and decides nothing.

A message says when it was sent, by its sender's clock, and comes a moment later, by one's own. The time that it was on
its way makes the sender's clock look behind, never ahead: of the messages of a while, the one that looks most ahead is
nearest to the truth.
"""

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from domain.assignment import ConsumerId
from domain.group_view.fold import GroupMessage, time_of
from domain.messages import ConsumerReport, ControllerClaim, WriteSpeedReport

WINDOW_S = 60.0
"""Longer than messages are held up while a broker is away."""
TOLERATED_S = 5.0
"""Further apart, clocks are worth a warning."""


class Sender(NamedTuple):
    kind: str
    """A component's name."""
    consumer: ConsumerId | None = None

    def __str__(self) -> str:
        return f"the {self.kind}" if self.consumer is None else f"{self.kind} {self.consumer}"


class Clocks:
    """What messages tell, as they come, of the clocks of their senders."""

    def __init__(self) -> None:
        self._seen: dict[Sender, deque[tuple[float, float]]] = {}
        """When it came, and how far ahead it looked: of each sender's messages those that no later one surpasses."""

    def heard(self, message: GroupMessage, at: float) -> None:
        """A message came just now: at `at`, in seconds since the epoch, by the clock that all are compared with."""
        sender = _sender(message)
        if sender is None:
            return
        seen, ahead_s = self._seen.setdefault(sender, deque()), time_of(message) - at
        while seen and seen[-1][1] <= ahead_s:
            seen.pop()
        seen.append((at, ahead_s))

    def ahead_s(self, at: float) -> Mapping[Sender, float]:
        """How far the clock of each sender that was heard lately is ahead at `at`; below 0 where it is behind."""
        for sender, seen in list(self._seen.items()):
            while seen and seen[0][0] <= at - WINDOW_S:
                seen.popleft()
            if not seen:
                del self._seen[sender]
        return {sender: seen[0][1] for sender, seen in sorted(self._seen.items(), key=lambda each: _place(each[0]))}


def apart(ahead_s: Mapping[Sender, float]) -> dict[Sender, float]:
    """Of the senders those whose clocks are worth a warning, the worst first."""
    worst_first = sorted(ahead_s, key=lambda sender: (-abs(ahead_s[sender]), _place(sender)))
    return {sender: ahead_s[sender] for sender in worst_first if abs(ahead_s[sender]) > TOLERATED_S}


def _sender(message: GroupMessage) -> Sender | None:
    """None of those that speak once in a while."""
    match message:
        case WriteSpeedReport():
            return Sender("monitor")
        case ConsumerReport():
            return Sender("consumer", message.consumer)
        case ControllerClaim():
            return Sender("controller")
        case _:
            return None


def _place(sender: Sender) -> tuple[str, ConsumerId]:
    return sender.kind, sender.consumer or 0
