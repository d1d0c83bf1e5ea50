"""Two groups on the same topics: each leaves the messages of the other aside."""

from types import SimpleNamespace
from typing import Any

import pytest

from consumer import channel
from consumer.channel import CommandReader
from controller import kafka
from controller.decide.commands import Claim
from controller.kafka import KafkaLink
from domain.messages import (
    Action,
    ConsumerCommand,
    ConsumerReport,
    ConsumerState,
    ControlAction,
    ControllerClaim,
    ControlRequest,
    WriteSpeedReport,
    decode_to_controller,
)
from domain.messages.codec import Message
from domain.topics import CONTROLLER_PARTITION, TopicNames
from tests.transactional_brokers import Brokers

NAMES = TopicNames()


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    brokers = Brokers()
    monkeypatch.setattr(kafka, "Producer", brokers.producer)
    monkeypatch.setattr(kafka, "Consumer", brokers.consumer)
    return brokers


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was warned of."""
    warnings: list[str] = []
    for module in (kafka, channel):
        monkeypatch.setattr(module.log, "warning", lambda event, **_: warnings.append(event))
    return warnings


def say(brokers: Brokers, *messages: Message) -> None:
    for message in messages:
        topic = NAMES.write_speed if isinstance(message, WriteSpeedReport) else NAMES.metadata
        brokers.records[topic, CONTROLLER_PARTITION].append(message.encode())


def a_report(consumer: int, group: str | None) -> ConsumerReport:
    return ConsumerReport(
        group=group, consumer=consumer, incarnation="a", sequence=1, sent_at=1.0, state=ConsumerState.READY
    )


def test_a_controller_hears_nothing_of_another_group_and_warns_of_it_once(brokers: Brokers, told: list[str]) -> None:
    """Hole 19: it counted on the other's consumers, and read the other's partitions."""
    link = KafkaLink("nowhere:1", "orders")
    link.begin()
    link.receive(0.1)
    pause = ControlRequest(group="clicks", action=ControlAction.PAUSE, sent_at=1.0)
    speeds = [WriteSpeedReport(group=group, measured_at=1.0, partitions=()) for group in ("clicks", "orders", None)]
    own = [a_report(2, "orders"), a_report(3, None)]
    say(brokers, a_report(1, "clicks"), a_report(1, "clicks"), pause, *own, *speeds)
    assert link.receive(0.1) == [*own, *speeds[1:]]
    assert len(told) == 1


def test_a_controller_begins_with_what_its_own_group_has_said(brokers: Brokers) -> None:
    """Hole 19: the newest claim was the other group's."""
    own, other = KafkaLink("nowhere:1", "orders"), KafkaLink("nowhere:1", "clicks")
    own.begin()
    own.send([own.claim(Claim(1, paused=True, unsealed={}, settled=(), members={"1/a": None}), 1.0)])
    other.begin()
    say(brokers, a_report(1, "clicks"), a_report(2, "orders"), a_report(3, None))
    assert list(KafkaLink("nowhere:1", "orders").begin().unsealed) == ["1/a", "2/a", "3/a"]


def test_what_a_controller_sends_names_its_group(brokers: Brokers) -> None:
    """Hole 19."""
    link = KafkaLink("nowhere:1", "orders")
    link.begin()
    link.send([a_command(None)])
    (claim,) = map(decode_to_controller, brokers.records[NAMES.metadata, CONTROLLER_PARTITION])
    (command,) = map(ConsumerCommand.decode, brokers.records[NAMES.metadata, 2])
    assert isinstance(claim, ControllerClaim)
    assert claim.group == command.group == "orders"


def a_command(group: str | None, sequence: int = 1) -> ConsumerCommand:
    return ConsumerCommand(
        group=group,
        consumer=2,
        incarnation="a",
        epoch=1,
        plan=1,
        sequence=sequence,
        action=Action.STOP,
        partitions=(),
    )


def test_a_consumer_obeys_no_command_of_another_group_and_warns_of_it_once(
    monkeypatch: pytest.MonkeyPatch, told: list[str]
) -> None:
    """Hole 19: a command is for one process, but who reads the topics should know whose they are."""
    sent = [a_command("clicks", 1), a_command("clicks", 2), a_command("orders", 3), a_command(None, 4)]
    records = [_record(offset, command) for offset, command in enumerate(sent)]
    client = SimpleNamespace(consume=lambda *_: [records.pop(0)] if records else [])
    monkeypatch.setattr(channel, "Consumer", lambda _: client)
    reader = CommandReader({}, NAMES.metadata, 2, "orders")
    assert [command.sequence for _ in sent for command in reader.take()] == [3, 4]
    assert len(told) == 1


def _record(offset: int, command: ConsumerCommand) -> Any:
    return SimpleNamespace(error=lambda: None, offset=lambda: offset, value=command.encode)
