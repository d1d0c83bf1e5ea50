"""The controller's loop, between a link and a fleet that are small and real enough."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

import pytest
from confluent_kafka import KafkaError, KafkaException
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from controller.decide import backoff
from controller.decide.commands import Claim
from controller.decide.decider import BY_RULE
from controller.decide.history import Beginning, claiming
from controller.fleet import FleetError, Revisions
from controller.kafka import DeposedError, Received, Sent
from controller.runner import run
from controller.settings import ControllerSettings
from domain.assignment import ConsumerId
from domain.consumer_class import ORDINARY
from domain.messages import (
    Asked,
    ControlAction,
    ControllerClaim,
    ControlRequest,
    Decision,
    DecisionKind,
    WriteSpeedReport,
)
from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds
from solver import Problem, Solution, solve
from tests.controller.simulated_consumer import FakeConsumer
from tests.controller.simulated_lake import Lake
from tests.patience import wait_until

SETTINGS = ControllerSettings(consumer_capacity=100.0, packing_capacity=80.0, least_interval_s=0.1, engine="mbfp")
PARTITIONS = {TopicPartition("orders", number): 20.0 for number in range(4)}


@dataclass
class MemoryGroup:
    """Link and fleet at once: consumers that live in memory and obey what they are sent."""

    refuse_creation: bool = False
    refuse_sending: bool = False
    deposed: bool = False
    paused: bool = False
    asked: list[ControlAction] = field(default_factory=list)
    """What operators ask, not heard yet."""
    claims: list[bool] = field(default_factory=list)
    unheard: list[ControllerClaim] = field(default_factory=list)
    """Claims that have not come back."""
    alive: dict[ConsumerId, FakeConsumer] = field(default_factory=dict)
    lake: Lake = field(default_factory=lambda: Lake(Random(1)))
    decisions: list[Decision] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    refused: int = 0
    received: int = 0
    """How often anything was."""
    seen: Revisions = field(default_factory=lambda: Revisions(None, frozenset()))

    def begin(self) -> Beginning:
        return Beginning(epoch=1, paused=self.paused)

    def claim(self, claim: Claim, at: float) -> ControllerClaim:
        return claiming(claim, 1, "1", at, 0)

    def heard(self, at: float) -> Asked:
        return Asked(at=at, heard_to=self.received, speeds_heard_to=self.received)

    def decided_since(self, moment: float) -> list[Decision]:
        return [decision for decision in self.decisions if decision.decided_at >= moment]

    def receive(self, timeout_s: float) -> list[Received]:
        time.sleep(min(timeout_s, 0.01))
        self.received += 1
        reports: list[Received] = [WriteSpeedReport.of(WriteSpeeds(time.time(), PARTITIONS)), *self.unheard]
        self.unheard.clear()
        while self.asked:
            reports.append(ControlRequest(action=self.asked.pop(0), sent_at=time.time()))
        for consumer in list(self.alive.values()):
            consumer.step(self.lake, seconds=0.5)
            reports += consumer.take_reports()
        return reports

    def send(self, messages: list[Sent]) -> None:
        if self.deposed:
            raise DeposedError("another controller has begun")
        if self.refuse_sending and messages:
            self.refused += 1
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        self.sent += messages
        for message in messages:
            if isinstance(message, Decision):
                self.decisions.append(message)
            elif isinstance(message, ControllerClaim):
                self.claims.append(message.paused)
                self.unheard.append(message)
            elif (consumer := self.alive.get(message.consumer)) is not None:
                consumer.inbox.append(message)

    def consumers(self) -> frozenset[ConsumerId]:
        return frozenset(self.alive)

    def revisions(self) -> Revisions:
        return self.seen

    def create(self, consumer: ConsumerId, class_name: str = ORDINARY) -> None:  # noqa: ARG002
        if self.refuse_creation:
            self.refused += 1
            raise FleetError("no room")
        self.alive[consumer] = FakeConsumer(consumer, f"process {consumer}")

    def delete(self, consumer: ConsumerId) -> None:
        self.alive.pop(consumer, None)

    @property
    def read(self) -> set[TopicPartition]:
        return {partition for consumer in list(self.alive.values()) for partition in set(consumer.held)}


@contextmanager
def running(group: MemoryGroup, solver: Callable[[Problem, str], Solution] = solve) -> Iterator[None]:
    stop = threading.Event()
    controller = threading.Thread(target=run, args=(SETTINGS, group, group, solver, stop))
    controller.start()
    try:
        yield
    finally:
        stop.set()
        controller.join()


def test_partitions_are_read_and_the_decision_is_published() -> None:
    group = MemoryGroup()
    with running(group):
        wait_until(lambda: group.read == set(PARTITIONS))
    assert group.decisions[0].carried_out
    assert group.alive, "consumers go on without the controller"


def test_a_consumer_that_began_with_something_else_is_replaced() -> None:
    group = MemoryGroup()
    with running(group):
        wait_until(lambda: group.read == set(PARTITIONS))
        (first,) = group.alive
        group.seen = Revisions("b", frozenset({first}))
        wait_until(lambda: first not in group.alive)
    assert group.read == set(PARTITIONS)


def test_a_decision_says_up_to_where_was_heard_when_the_solver_was_asked_or_when_it_was_made_by_rule() -> None:
    group = MemoryGroup()
    begun: list[tuple[float, int]] = []

    def slow(problem: Problem, engine: str) -> Solution:
        begun.append((time.time(), heard_to := group.received))
        wait_until(lambda: group.received > heard_to + 2)
        return solve(problem, engine)

    with running(group, slow):
        wait_until(lambda: group.read == set(PARTITIONS))
        group.asked.append(ControlAction.REPLAN)
        wait_until(lambda: group.decisions[-1].grounds is DecisionKind.MANUAL)
    by_rule, *_, manual = (decision for decision in group.decisions if decision.asked is not None)
    assert by_rule.engine == BY_RULE
    assert by_rule.asked is not None
    assert by_rule.asked.at == by_rule.decided_at
    assert manual.asked is not None
    # The solver begins a moment after it was asked, and what is heard while it solves does not count.
    heard_to = next(heard_to for began_at, heard_to in begun if began_at >= manual.asked.at)
    assert by_rule.asked.heard_to <= manual.asked.heard_to <= heard_to
    assert manual.asked.at < manual.decided_at


def test_who_is_counted_on_is_claimed_before_a_decision_that_rests_on_it() -> None:
    group = MemoryGroup()
    with running(group):
        wait_until(lambda: group.read == set(PARTITIONS))
        (killed,) = group.alive
        del group.alive[killed]
        wait_until(lambda: any(decision.lost == (killed,) for decision in group.decisions))
    told = group.sent[: next(n for n, each in enumerate(group.sent) if isinstance(each, Decision) and each.lost)]
    standing = next(each.standing for each in reversed(told) if isinstance(each, ControllerClaim))
    assert standing is not None
    assert killed not in standing.counted_on


def test_what_is_logged_of_a_plan_names_its_controller_and_its_number() -> None:
    group = MemoryGroup()
    with capture_logs([merge_contextvars]) as logs, running(group):
        wait_until(lambda: group.read == set(PARTITIONS))
    lines = {line["event"]: line for line in logs}
    assert lines["a decision was made"]["epoch"] == 1
    number = next(line["number"] for line in logs if line["event"] == "a decision was made" and line["carried_out"])
    for event in ("a consumer is created", "a command is sent"):
        assert (lines[event]["epoch"], lines[event]["plan"]) == (1, number)


def test_what_cannot_be_sent_is_sent_later() -> None:
    group = MemoryGroup(refuse_sending=True)
    with running(group):
        wait_until(lambda: group.refused > 3)
        group.refuse_sending = False
        wait_until(lambda: group.read == set(PARTITIONS))


def test_a_consumer_that_cannot_be_created_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "LONGEST_BACKOFF_S", 0.2)
    group = MemoryGroup(refuse_creation=True)
    with running(group):
        wait_until(lambda: group.refused > 0)
        group.refuse_creation = False
        wait_until(lambda: group.read == set(PARTITIONS))


def test_a_solver_that_fails_does_not_end_the_controller() -> None:
    group = MemoryGroup()
    failed: list[bool] = []

    def fails_once(problem: Problem, engine: str) -> Solution:
        if not failed:
            failed.append(True)
            raise RuntimeError("out of memory")
        return solve(problem, engine)

    with running(group, fails_once):
        wait_until(lambda: group.read == set(PARTITIONS))
    assert failed


def test_a_deposed_controller_ends() -> None:
    group = MemoryGroup(deposed=True)
    with pytest.raises(DeposedError):
        run(SETTINGS, group, group, solve, threading.Event())


def test_a_pause_and_a_resume_are_said_again_for_the_next_controller() -> None:
    group = MemoryGroup(asked=[ControlAction.PAUSE])
    with running(group):
        wait_until(lambda: group.claims[-1:] == [True])
        group.asked.append(ControlAction.RESUME)
        wait_until(lambda: group.claims[-1:] == [False])


def test_an_operator_that_asks_for_a_plan_gets_a_decision() -> None:
    group = MemoryGroup()
    with running(group):
        wait_until(lambda: group.read == set(PARTITIONS))
        group.asked.append(ControlAction.REPLAN)
        wait_until(lambda: group.decisions[-1].grounds is DecisionKind.MANUAL)


def test_a_group_that_was_paused_before_still_gets_readers_for_what_nobody_reads() -> None:
    group = MemoryGroup(paused=True)
    with running(group):
        wait_until(lambda: group.read == set(PARTITIONS))
