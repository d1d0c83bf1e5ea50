"""The loop around the state machine: what operators ask arrives, and what the machine wants done is done."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from controller.kafka import Beginning
from controller.runner import run
from controller.settings import ControllerSettings
from domain.assignment import ConsumerId
from domain.messages import (
    ConsumerCommand,
    ConsumerReport,
    ControlAction,
    ControlRequest,
    Decision,
    DecisionKind,
    WriteSpeedReport,
)
from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds
from tests.controller.exhaustive import solve_exhaustively

SETTINGS = ControllerSettings(consumer_capacity=100.0)
SPEEDS = WriteSpeedReport.of(WriteSpeeds(1.0, {TopicPartition("orders", 0): 170.0}))
Message = ConsumerReport | ControlRequest | WriteSpeedReport


@dataclass
class NoConsumers:
    created: list[ConsumerId] = field(default_factory=list)

    def consumers(self) -> frozenset[ConsumerId]:
        return frozenset(self.created)

    def create(self, consumer: ConsumerId) -> None:
        self.created.append(consumer)

    def delete(self, consumer: ConsumerId) -> None:
        self.created.remove(consumer)


@dataclass
class Wire:
    """Hands over one message at a time, and stops the runner once enough is seen."""

    messages: list[Message]
    enough: Callable[["Wire"], bool]
    stop: threading.Event = field(default_factory=threading.Event)
    paused: bool = False
    claims: list[bool] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)

    def begin(self) -> Beginning:
        return Beginning(epoch=3, paused=self.paused)

    def receive(self, timeout_s: float) -> list[Message]:
        if self.enough(self):
            self.stop.set()
        self.stop.wait(timeout_s / 10)
        return [self.messages.pop(0)] if self.messages else []

    def send(self, messages: list[ConsumerCommand | Decision]) -> None:
        self.decisions += [message for message in messages if isinstance(message, Decision)]

    def claim(self, *, paused: bool) -> None:
        self.claims.append(paused)


def asked(action: ControlAction) -> ControlRequest:
    return ControlRequest(action=action, sent_at=1.0)


def ran(wire: Wire) -> NoConsumers:
    fleet = NoConsumers()
    run(SETTINGS, wire, fleet, lambda problem, _: solve_exhaustively(problem), wire.stop, clock=lambda: 1.0)
    return fleet


def test_a_pause_and_a_resume_are_said_again_for_the_next_controller() -> None:
    wire = Wire([asked(ControlAction.PAUSE), asked(ControlAction.RESUME)], lambda wire: len(wire.claims) == 2)
    ran(wire)
    assert wire.claims == [True, False]


def test_what_an_operator_asks_is_decided_and_published() -> None:
    wire = Wire([SPEEDS, asked(ControlAction.REPLAN)], lambda wire: bool(wire.decisions))
    fleet = ran(wire)
    (decision, *_) = wire.decisions
    assert decision.epoch == 3
    assert decision.grounds in (DecisionKind.MANUAL, DecisionKind.FORCED)
    assert decision.saturated[0].partitions_needed == 3
    assert fleet.created == [1]


def test_a_group_that_was_paused_before_still_gets_readers_for_what_nobody_reads() -> None:
    wire = Wire([SPEEDS], lambda wire: bool(wire.decisions), paused=True)
    assert ran(wire).created == [1]
