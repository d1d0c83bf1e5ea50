"""Reads what is to be solved: the write speeds of one moment, and who reads what now."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, Field, ValidationError

from cli.errors import UsageError
from cli.packing.csv_rows import read_rows
from cli.packing.json_lines import line_of
from cli.packing.text_lines import Place, TextLines, read_lines
from domain.assignment import Assignment, ConsumerId
from domain.messages import PartitionRef, WriteSpeedReport
from domain.messages.codec import Part, describe
from domain.partitions import HIGHEST_ID, TopicPartition


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The partitions of one moment."""

    name: str
    """Of the file."""
    speeds: dict[TopicPartition, float]
    """In bytes/s."""
    unknown: frozenset[TopicPartition] = frozenset()
    """Partitions that could not be measured."""
    current: Assignment | None = None
    """Who reads what now, where the file says so."""


class _Placed(PartitionRef):
    consumer: Annotated[int, Field(ge=0, le=HIGHEST_ID)]


class _Unmeasured(PartitionRef):
    consumer: Annotated[int, Field(ge=0, le=HIGHEST_ID)] | None


class _Plan(Part):
    """What is read of the JSON that `kcga solve` prints."""

    assignment: tuple[_Placed, ...]
    unknown: tuple[_Unmeasured, ...] = ()


def read_snapshot(file: Path) -> Snapshot:
    """The snapshot in JSON, as published on `monitor.writeSpeed`, or in CSV `topic,partition,speed[,consumer]`.

    Raises:
        UsageError: the file cannot be read, something in it is wrong, or no partition has a known speed.
    """
    first, source = read_lines(file).peeked()
    snapshot = _json_snapshot(source) if first.lstrip().startswith(("{", "[")) else _csv_snapshot(source)
    if not snapshot.speeds:
        Place(source.name).fail("no partition has a known speed: there is nothing to assign")
    return snapshot


def read_current(file: Path) -> Assignment:
    """The assignment in CSV `topic,partition,consumer`, or in JSON or CSV as `kcga solve` prints it.

    Raises:
        UsageError: the file cannot be read, or something in it is wrong.
    """
    first, source = read_lines(file).peeked()
    if first.lstrip().startswith(("{", "[")):
        return _json_assignment(source)
    current: dict[TopicPartition, ConsumerId] = {}
    for row in read_rows(source, ("topic", "partition", "consumer"), aside=("speed", "previous")):
        partition = row.partition
        if partition in current:
            row.place.fail(f"{partition} is named twice")
        current[partition] = row.id("consumer")
    return Assignment(current)


def _csv_snapshot(source: TextLines) -> Snapshot:
    speeds: dict[TopicPartition, float] = {}
    current: dict[TopicPartition, ConsumerId] = {}
    for row in read_rows(source, ("topic", "partition", "speed"), ("consumer",), aside=("previous",)):
        partition = row.partition
        if partition in speeds:
            row.place.fail(f"{partition} is named twice")
        speeds[partition] = row.speed
        if row.has("consumer"):
            current[partition] = row.id("consumer")
    return Snapshot(source.name, speeds, current=Assignment(current) if current else None)


def _json_snapshot(source: TextLines) -> Snapshot:
    text = source.text
    report = _decoded(WriteSpeedReport, "message of monitor.writeSpeed", source.name, text)
    measured = report.speeds
    return Snapshot(source.name, dict(measured.bytes_per_s), measured.unknown)


def _json_assignment(source: TextLines) -> Assignment:
    text = source.text
    plan = _decoded(_Plan, "plan as kcga solve prints it", source.name, text)
    current: dict[TopicPartition, ConsumerId] = {}
    placed: tuple[tuple[str, Sequence[_Placed | _Unmeasured]], ...] = (
        ("assignment", plan.assignment),
        ("unknown", plan.unknown),
    )
    for field, entries in placed:
        for index, entry in enumerate(entries):
            if entry.key in current:
                Place(source.name, line_of(text, (field, index))).fail(f"{entry.key} is named twice")
            if entry.consumer is not None:
                current[entry.key] = entry.consumer
    return Assignment(current)


_Model = TypeVar("_Model", bound=BaseModel)


def _decoded(model: type[_Model], what: str, name: str, text: str) -> _Model:
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        # Where it is no JSON at all, the message says the line.
        fault = error.errors(include_url=False, include_context=False)[0]
        line = None if fault["type"] == "json_invalid" else line_of(text, fault["loc"])
        raise UsageError(f"{Place(name, line)}: {describe(what, error)}") from error
