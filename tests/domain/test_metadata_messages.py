"""Who is addressed, what came first, and what a message to the controller is."""

import pytest

from domain import topics
from domain.messages.codec import MessageError, PartitionRef
from domain.messages.decisions import DecisionKind, Restraint
from domain.messages.metadata import (
    Action,
    ConsumerCommand,
    ConsumerReport,
    ConsumerState,
    ControlAction,
    ControllerClaim,
    ControlRequest,
    MessageToController,
    Order,
    decode_to_controller,
    writer,
)
from domain.messages.schemas import json_schema
from domain.messages.write_speed import WriteSpeedReport
from domain.partitions import TopicPartition


def report(**fields: object) -> ConsumerReport:
    return ConsumerReport(
        consumer=3,
        incarnation="abc",
        sequence=1,
        sent_at=1.0,
        state=ConsumerState.READY,
        **fields,  # type: ignore[arg-type]
    )


CLAIM = ControllerClaim(epoch=4, incarnation="x", sent_at=1.0, unsealed=(writer(3, "abc"),))
REQUEST = ControlRequest(action=ControlAction.REPLAN, sent_at=2.0)


def command(epoch: int, sequence: int) -> ConsumerCommand:
    return ConsumerCommand(
        consumer=3,
        incarnation="abc",
        epoch=epoch,
        plan=1,
        sequence=sequence,
        action=Action.START,
        partitions=(PartitionRef(topic="orders", partition=0),),
    )


def test_a_later_epoch_goes_before_any_sequence() -> None:
    commands = [command(2, 1), command(1, 9), command(1, 2)]
    assert sorted(each.order for each in commands) == [Order(1, 2), Order(1, 9), Order(2, 1)]


def test_a_command_is_acknowledged_by_a_report_that_has_applied_it_or_a_later_one() -> None:
    assert report(applied_epoch=1, applied_sequence=2).applied >= command(1, 2).order
    assert report(applied_epoch=2, applied_sequence=1).applied >= command(1, 9).order
    assert report(applied_epoch=1, applied_sequence=8).applied < command(1, 9).order
    assert report().applied < command(0, 1).order


def test_a_process_is_named_by_its_consumer_and_its_incarnation() -> None:
    assert report().writer == writer(3, "abc") == "3/abc"


@pytest.mark.parametrize("name", ["", "3", "3/", "/abc", "0/abc", "03/abc", "x/abc", f"3/{'a' * 65}"])
def test_what_is_no_name_of_a_process_cannot_be_sealed(name: str) -> None:
    with pytest.raises(ValueError, match="unsealed"):
        ControllerClaim(epoch=4, incarnation="x", sent_at=1.0, unsealed=(name,))


@pytest.mark.parametrize("message", [report(), CLAIM, REQUEST])
def test_a_message_to_the_controller_is_what_it_was_when_it_was_sent(message: MessageToController) -> None:
    assert decode_to_controller(message.encode()) == message


@pytest.mark.parametrize("data", [None, b"", b"null", b"{}", b'{"kind": "gossip"}', command(1, 1).encode()])
def test_anything_else_is_none(data: bytes | None) -> None:
    with pytest.raises(MessageError, match="message to the controller"):
        decode_to_controller(data)


def test_every_topic_has_a_schema_which_names_all_kinds_of_its_messages() -> None:
    kinds = {"command", "report", "claim", "control"}
    schema = json_schema(topics.METADATA)
    assert schema["title"] == f"Messages on {topics.METADATA}"
    assert {
        each["properties"]["kind"]["const"] for each in schema["$defs"].values() if "kind" in each.get("properties", {})
    } == kinds
    decisions = json_schema(topics.DECISIONS)
    assert set(decisions["$defs"]["Restraint"]["enum"]) == {each.value for each in Restraint}
    assert set(decisions["$defs"]["DecisionKind"]["enum"]) == {each.value for each in DecisionKind}
    assert "measured_at" in json_schema(topics.WRITE_SPEED)["properties"]


def test_a_measurement_names_each_partition_once() -> None:
    twice = b'{"topic": "orders", "partition": 0, "speed": 1.0}'
    with pytest.raises(MessageError, match="orders-0"):
        WriteSpeedReport.decode(b'{"version": 1, "measured_at": 1.0, "partitions": [' + twice + b", " + twice + b"]}")
    assert PartitionRef.of(TopicPartition("orders", 3)).key == TopicPartition("orders", 3)
