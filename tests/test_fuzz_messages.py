"""Whatever lies on kcga's topics is a message or refused by a MessageError; and no message ends a component."""

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.exposition import generate_latest
from rich.console import Console

from app.status.board import Board
from cli.terminal.glyphs import TopicPalette
from cli.terminal.plain_lines import PlainLines
from cli.terminal.screen import GroupScreen
from consumer.decide.claims import Committed, next_position, to_seal
from consumer.decide.commands import Holding
from consumer.decide.reached import Reached
from controller.decide.events import ConsumerReported, SpeedsMeasured, Started, Ticked
from controller.decide.history import Beginning
from controller.decide.machine import Controller
from controller.settings import ControllerSettings
from domain import topics
from domain.group_view.explanation import explain
from domain.group_view.fold import GroupFold
from domain.messages import (
    Action,
    ConsumerCommand,
    ConsumerReport,
    ConsumerState,
    ControlAction,
    ControllerClaim,
    ControlRequest,
    Cycle,
    Decision,
    MessageError,
    Order,
    PartitionRef,
    Read,
    WriteSpeedReport,
    decode_to_controller,
    json_schema,
)
from domain.messages.codec import Message
from domain.partitions import TopicPartition
from domain.speeds import Lag, Method, Origin, WriteSpeeds
from sandbox.readers import ReadLog, most_readers
from tests.app.status_messages import registry_of
from tests.bounds import unbounded
from tests.examples import examples
from tests.untrusted import VALUES, WORDS, altered, as_bytes, damaged, nothing_carried_out

ORDERS = [PartitionRef(topic="orders", partition=number) for number in range(2)]
READ = Read(
    topic="orders",
    partition=0,
    stint=Order(1, 2),
    first_offset=3,
    last_offset=5,
    records=3,
    first_read_at=1.0,
    last_read_at=2.0,
)
REPORT = ConsumerReport(
    consumer=1,
    incarnation="a",
    sequence=1,
    sent_at=1.0,
    state=ConsumerState.READY,
    reason="why",
    applied_epoch=1,
    applied_sequence=2,
    partitions=tuple(ORDERS),
    cycle=Cycle(bytes=9, records=3, fetch_s=0.1, write_s=0.1, reads=(READ,)),
)
COMMAND = ConsumerCommand(
    consumer=1,
    incarnation="a",
    epoch=1,
    plan=1,
    sequence=1,
    action=Action.START,
    partitions=tuple(ORDERS),
    seal=("2/b",),
)
SPEEDS = WriteSpeedReport.of(
    WriteSpeeds(
        1.0,
        {TopicPartition("orders", 0): 5.0},
        frozenset({TopicPartition("orders", 1)}),
        {TopicPartition("orders", 0): Origin(Method.STORED_BYTES, 0.1)},
        {TopicPartition("orders", number): Lag(3, 9.0, 1.8) for number in range(2)},
    )
)
CLAIM = ControllerClaim(epoch=1, incarnation="c", sent_at=1.0, paused=True)
REQUEST = ControlRequest(action=ControlAction.PAUSE, sent_at=1.0)
DECISION = Decision.model_validate(
    {
        "number": 1,
        "epoch": 1,
        "decided_at": 1.0,
        "triggers": ("why",),
        "carried_out": True,
        "reason": "why",
        "engine": "auto",
        "status": "optimal",
        "solve_s": 0.1,
        "lower_bound": 1.0,
        "plan": {"consumers": 1, "rscore": 0.0, "objective": 1.0},
        "keeping": None,
        "assignment": ({"topic": "orders", "partition": 0, "speed": 5.0, "consumer": 1, "previous": None},),
    }
)

Decode = Callable[[bytes | None], Message]
DECODERS: dict[str, tuple[Decode, tuple[Message, ...]]] = {
    "to the controller": (decode_to_controller, (REPORT, CLAIM, REQUEST)),
    "command": (ConsumerCommand.decode, (COMMAND,)),
    "write speeds": (WriteSpeedReport.decode, (SPEEDS,)),
    "decision": (Decision.decode, (DECISION,)),
}


def refused_or_sound(decode: Decode, data: bytes | None) -> Message | None:
    """The message in `data`, which says the same again when it is sent on; none where it is refused."""
    with nothing_carried_out():
        refusal = ""
        try:
            message = decode(data)
        except MessageError as error:
            refusal = str(error)
    if refusal:
        assert "\n" not in refusal
        return None
    assert decode(message.encode()) == message
    return message


@pytest.fixture(autouse=True, scope="module")
def _everything_is_loaded() -> None:
    """What the decoders load when they are used first is not what messages bring about."""
    for decode, valid in DECODERS.values():
        for message in valid:
            assert decode(message.encode()) == message
        with pytest.raises(MessageError):
            decode(b'{"kind": 1}')


@pytest.mark.parametrize("name", DECODERS)
@given(data=st.data())
@settings(max_examples=examples(60), deadline=None)
def test_bytes_of_any_kind_are_refused_in_one_line(name: str, data: st.DataObject) -> None:
    decode, valid = DECODERS[name]
    whole = data.draw(st.sampled_from([message.encode() for message in valid]))
    refused_or_sound(decode, data.draw(st.one_of(st.none(), st.binary(max_size=300), damaged(whole))))


@pytest.mark.parametrize("name", DECODERS)
@given(data=st.data())
@settings(max_examples=examples(120), deadline=None)
def test_messages_with_anything_in_them_are_refused_or_sound(name: str, data: st.DataObject) -> None:
    decode, valid = DECODERS[name]
    whole: Any = json.loads(data.draw(st.sampled_from([message.encode() for message in valid])))
    refused_or_sound(decode, as_bytes(data.draw(st.one_of(altered(whole), VALUES))))


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("opened", [b"[", b'{"a":', b'{"kind":["'])
def test_a_message_that_is_nested_without_end_is_refused(name: str, opened: bytes) -> None:
    decode, _ = DECODERS[name]
    assert refused_or_sound(decode, opened * 100_000) is None


def messages(name: str) -> st.SearchStrategy[Message]:
    """Such as are not refused."""
    decode, valid = DECODERS[name]
    wholes = [json.loads(message.encode()) for message in valid]
    made = st.sampled_from(wholes).flatmap(altered).map(as_bytes).map(lambda data: refused_or_sound(decode, data))
    return st.one_of(st.sampled_from(valid), made.filter(lambda message: message is not None))


patient = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.filter_too_much])


@patient
@given(st.lists(st.one_of(messages("to the controller"), messages("write speeds")), max_size=12))
def test_no_message_ends_the_controller(received: list[Message]) -> None:
    controller = Controller(ControllerSettings(consumer_capacity=100.0), epoch=3)
    controller.handle(Started(0.0, frozenset({1, 2}), Beginning(epoch=3)))
    for second, message in enumerate(received, 1):
        match message:
            case ConsumerReport():
                controller.handle(ConsumerReported(float(second), message))
            case WriteSpeedReport():
                controller.handle(SpeedsMeasured(float(second), message.speeds))
            case _:
                controller.handle(Ticked(float(second)))


@pytest.mark.parametrize("field", ["speed", "lag_bytes", "lag_s", "age_s"])
def test_a_figure_that_no_partition_can_have_is_refused(field: str) -> None:
    # The sum of two such is no number: it would end whoever adds them up.
    report = json.loads(SPEEDS.encode())
    report["partitions"][0][field] = 1.7e308
    assert refused_or_sound(WriteSpeedReport.decode, as_bytes(report)) is None


@patient
@given(st.lists(messages("command"), max_size=8))
def test_no_command_ends_a_consumer_or_reaches_one_that_it_is_not_for(received: list[Message]) -> None:
    holding = Holding(1, incarnation="mine")
    commands = tuple(message for message in received if isinstance(message, ConsumerCommand))
    changed, _ = holding.apply(commands)
    for_it = [command for command in commands if (command.consumer, command.incarnation) == (1, "mine")]
    assert for_it or changed == holding


@patient
@given(
    st.lists(
        st.one_of(messages("to the controller"), messages("write speeds"), messages("decision")),
        max_size=12,
    )
)
def test_no_message_ends_who_watches(received: list[Message]) -> None:
    fold = GroupFold(None, 15.0)
    reads = ReadLog()
    for message in received:
        fold.receive(message)  # type: ignore[arg-type]
        if isinstance(message, ConsumerReport):
            reads.add(message)
    fold.view()
    most_readers(reads.stints)


@given(WORDS, st.integers(0, 2**63 - 1), st.one_of(st.none(), st.integers(0, 2**63 - 1)))
def test_the_note_of_a_commit_can_be_anything(note: str, offset: int, last: int | None) -> None:
    with nothing_carried_out():
        committed = Committed(offset, note)
        to_seal("1/a", (), [committed])
        assert next_position(None if last is None else Reached(last), committed) is not None


@pytest.mark.parametrize("topic", [topics.WRITE_SPEED, topics.METADATA, topics.DECISIONS])
def test_every_number_in_a_message_has_an_upper_bound(topic: str) -> None:
    """Hole 22: an epoch of 10^400 was a message, and no figure could be made of it."""
    assert list(unbounded(json_schema(topic), below=False)) == []


@pytest.mark.parametrize(
    ("message", "fields", "value"),
    [
        (CLAIM, ("epoch",), 10**400),
        (REPORT, ("applied_epoch",), 2**63),
        (REPORT, ("sent_at",), 1.7e308),
        (REPORT, ("cycle", "reads", 0, "stint", 0), 10**400),
        (REPORT, ("partitions", "orders", 0), 2**31),
        (REPORT, ("partitions",), {"\x1b[2J": [0]}),
        (REPORT, ("incarnation",), "\n\u202e"),
        (CLAIM, ("unsealed",), [f"{'9' * 400}/a"]),
        (CLAIM, ("unsealed",), ["1/\x1b[2J"]),
    ],
)
def test_what_nobody_can_work_with_is_refused(message: Message, fields: tuple[str | int, ...], value: object) -> None:
    """Hole 22: these were messages."""
    altered = json.loads(message.encode())
    within = altered
    for field in fields[:-1]:
        within = within[field]
    within[fields[-1]] = value
    assert refused_or_sound(decode_to_controller, as_bytes(altered)) is None


def test_the_figures_of_a_board_can_be_had_whatever_it_heard() -> None:
    """Hole 22: /metrics answered 500 for ever after one message."""
    for epoch in (2**63 - 1, 10**400):
        board = Board("billing", ControllerSettings())
        claim = refused_or_sound(decode_to_controller, as_bytes(json.loads(CLAIM.encode()) | {"epoch": epoch}))
        if isinstance(claim, ControllerClaim):
            board.leads(claim.epoch)
            board.heard(claim)
        assert b"kcga_leader" in generate_latest(registry_of(board))


def test_nothing_in_a_message_reaches_the_terminal_as_a_command_to_it() -> None:
    """Hole 22: escape sequences in texts were printed as they came."""
    hostile = "\x1b[2J\x9b2J\r\u202e"
    report = refused_or_sound(decode_to_controller, as_bytes(json.loads(REPORT.encode()) | {"reason": hostile}))
    told = {"triggers": [hostile], "reason": hostile, "engine": hostile, "status": hostile, "not_keepable": [hostile]}
    decision = refused_or_sound(Decision.decode, as_bytes(json.loads(DECISION.encode()) | told))
    assert isinstance(report, ConsumerReport)
    assert isinstance(decision, Decision)
    fold = GroupFold()
    for message in (report, decision):
        fold.receive(message)
    console = Console(file=io.StringIO(), width=200, color_system=None)
    console.print(GroupScreen(fold.view(), 100.0, 80.0, TopicPalette(), group="billing"), height=50)
    assert isinstance(console.file, io.StringIO)
    shown = [*console.file.getvalue().splitlines(), *explain(decision), *PlainLines().lines(fold.view(), None)]
    assert [line for line in shown if not line.isprintable()] == []
    assert sum(r"\x1b[2J\x9b2J\r\u202e" in line for line in shown) >= 3
