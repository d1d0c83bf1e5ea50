"""What comes over the wire: valid messages survive it, everything else is one clear error."""

import json
from dataclasses import replace

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
from domain.speeds import Lag, MeasuredBy, Method, Origin, Source, WriteSpeeds
from tests.examples import PRINTABLE

TOPICS = st.text(PRINTABLE, min_size=1, max_size=20)
PARTITIONS = st.builds(TopicPartition, TOPICS, st.integers(0, 10_000))
ORIGINS = st.builds(Origin, st.sampled_from(Method), st.floats(0, 1e6))
LAGS = st.builds(Lag, st.integers(0, 10**15), st.floats(0, 1e15), st.none() | st.floats(0, 1e9))
SOURCES = st.builds(
    MeasuredBy, st.sampled_from(Source), st.lists(TOPICS, max_size=3).map(tuple), st.sampled_from(["", "denied"])
)


@st.composite
def write_speeds(draw: st.DrawFn) -> WriteSpeeds:
    known = draw(st.dictionaries(PARTITIONS, st.floats(0, 1e12), max_size=5))
    unknown = frozenset(draw(st.sets(PARTITIONS, max_size=5)) - known.keys())
    named = sorted(known.keys() | unknown)
    return WriteSpeeds(
        measured_at=draw(st.floats(0, 2e9)),
        bytes_per_s=known,
        unknown=unknown,
        origins=draw(st.dictionaries(st.sampled_from(sorted(known)), ORIGINS)) if known else {},
        lags=draw(st.dictionaries(st.sampled_from(named), LAGS)) if named else {},
        sources=draw(st.lists(SOURCES, max_size=3).map(tuple)),
        window_s=draw(st.none() | st.floats(0, 3600)),
    )


@given(write_speeds())
def test_write_speeds_survive_the_wire(speeds: WriteSpeeds) -> None:
    assert WriteSpeedReport.decode(WriteSpeedReport.of(speeds).encode()).speeds == speeds


def test_what_the_release_before_does_not_say_or_know_stands_in_nobodys_way() -> None:
    """It leaves `sources` and `window_s` aside, so nothing else may need them: methods are the two that it knows."""
    orders = TopicPartition("orders", 0)
    speeds = WriteSpeeds(1.0, {orders: 2.0}, origins={orders: Origin(Method.END_OFFSETS, 0.5)})
    told = replace(speeds, sources=(MeasuredBy(Source.OFFSETS, ("orders",), "denied"),), window_s=15.0)
    report = WriteSpeedReport.of(told)
    said = json.loads(report.encode())
    assert said["partitions"][0]["method"] in ("stored_bytes", "end_offsets")
    del said["sources"], said["window_s"]
    assert WriteSpeedReport.decode(json.dumps(said).encode()).speeds == speeds
    said["sources"] = [{"source": "a_source_of_a_later_release", "topics": ["orders"], "new": 1}]
    later = WriteSpeedReport.decode(json.dumps(said).encode()).speeds
    assert later.sources == (MeasuredBy("a_source_of_a_later_release", ("orders",)),)


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


def test_speeds_from_a_monitor_that_tells_no_origin_and_no_lag_are_speeds_all_the_same() -> None:
    text = '{"measured_at": 1.0, "partitions": [{"topic": "a", "partition": 0, "speed": 7}]}'
    speeds = WriteSpeedReport.decode(text.encode()).speeds
    assert (dict(speeds.bytes_per_s), speeds.origins, speeds.lags) == ({TopicPartition("a", 0): 7.0}, {}, {})


@pytest.mark.parametrize("speed", [float("nan"), float("inf"), -1.0])
def test_write_speeds_refuse_what_is_no_speed(speed: float) -> None:
    with pytest.raises(ValueError, match="orders-0"):
        WriteSpeeds(0.0, {TopicPartition("orders", 0): speed})
