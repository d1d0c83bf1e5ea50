"""What comes over the wire: valid messages survive it, everything else is one clear error."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.messages import (
    Action,
    ConsumerCommand,
    ConsumerReport,
    ConsumerState,
    MessageError,
    PartitionRef,
    WriteSpeedReport,
    decode_to_controller,
)
from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds

PARTITIONS = st.builds(TopicPartition, st.text(min_size=1, max_size=20), st.integers(0, 10_000))
SPEEDS = st.builds(
    lambda at, known, unknown: WriteSpeeds(at, known, frozenset(unknown - known.keys())),
    st.floats(0, 2e9),
    st.dictionaries(PARTITIONS, st.floats(0, 1e12), max_size=5),
    st.sets(PARTITIONS, max_size=5),
)


@given(SPEEDS)
def test_write_speeds_survive_the_wire(speeds: WriteSpeeds) -> None:
    assert WriteSpeedReport.decode(WriteSpeedReport.of(speeds).encode()).speeds == speeds


@given(st.sets(PARTITIONS, max_size=5), st.integers(0, 99), st.sampled_from(Action))
def test_a_command_survives_the_wire(partitions: set[TopicPartition], sequence: int, action: Action) -> None:
    command = ConsumerCommand(
        consumer=3,
        incarnation="b",
        epoch=1,
        plan=2,
        sequence=sequence,
        action=action,
        partitions=tuple(PartitionRef.of(partition) for partition in sorted(partitions)),
    )
    assert ConsumerCommand.decode(command.encode()) == command


def test_a_report_survives_the_wire() -> None:
    report = ConsumerReport(
        consumer=1, incarnation="a", sequence=4, sent_at=1.5, state=ConsumerState.DEGRADED, reason="r"
    )
    assert decode_to_controller(report.encode()) == report


@given(st.binary(max_size=200))
def test_bytes_that_are_no_message_are_a_message_error(data: bytes) -> None:
    for decode in (WriteSpeedReport.decode, ConsumerCommand.decode, decode_to_controller):
        with pytest.raises(MessageError):
            decode(data)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"version": 2}, "version"),
        ({"measured_at": -1}, "measured_at"),
        ({"partitions": [{"topic": "a", "partition": 0, "speed": -1}]}, "partitions.0.speed"),
        ({"partitions": [{"topic": "a", "partition": 0, "speed": "fast"}]}, "partitions.0.speed"),
        ({"partitions": [{"topic": "a", "partition": 0}]}, "partitions.0.speed"),
        ({"partitions": [{"topic": "", "partition": 0, "speed": 1}]}, "partitions.0.topic"),
        ({"partitions": [{"topic": "a", "partition": -1, "speed": 1}]}, "partitions.0.partition"),
        ({"partitions": 2 * [{"topic": "a", "partition": 0, "speed": 1}]}, "a-0 is named twice"),
    ],
)
def test_a_field_that_is_wrong_is_named(change: dict[str, object], complaint: str) -> None:
    message = {"version": 1, "kind": "write_speed", "measured_at": 1.0, "partitions": []} | change
    with pytest.raises(MessageError, match=complaint):
        WriteSpeedReport.decode(json.dumps(message).encode())


@pytest.mark.parametrize("speed", ["NaN", "Infinity", "-Infinity"])
def test_a_speed_that_is_no_finite_number_is_refused(speed: str) -> None:
    text = f'{{"measured_at": 1.0, "partitions": [{{"topic": "a", "partition": 0, "speed": {speed}}}]}}'
    with pytest.raises(MessageError):
        WriteSpeedReport.decode(text.encode())


def test_a_field_that_a_later_program_adds_is_left_aside() -> None:
    text = '{"measured_at": 1.0, "partitions": [], "colour": "blue"}'
    assert WriteSpeedReport.decode(text.encode()).partitions == ()


@pytest.mark.parametrize("speed", [float("nan"), float("inf"), -1.0])
def test_write_speeds_refuse_what_is_no_speed(speed: float) -> None:
    with pytest.raises(ValueError, match="orders-0"):
        WriteSpeeds(0.0, {TopicPartition("orders", 0): speed})
