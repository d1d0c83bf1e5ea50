"""Reads what is to be solved: the write speeds of one moment, and who reads what now."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, ValidationError
from pydantic_core import from_json

from app.errors import UsageError
from cli.files.csv_rows import Id, MaybeId, Row, Speed, read_rows
from cli.files.text_lines import Place, TextLines, read_lines
from domain.assignment import Assignment, ConsumerId
from domain.messages import PartitionRef, WriteSpeedReport
from domain.messages.codec import Part, PartitionNumber, describe
from domain.partitions import TopicPartition


@dataclass(frozen=True, slots=True)
class Present:
    """What there is before a plan."""

    assignment: Assignment
    class_names: Mapping[ConsumerId, str] = field(default_factory=dict)
    """Of the consumers whose class is said."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The partitions of one moment."""

    name: str
    """Of the file."""
    speeds: dict[TopicPartition, float]
    """In bytes/s."""
    unknown: frozenset[TopicPartition] = frozenset()
    """Partitions that could not be measured."""
    current: Present | None = None
    """Who reads what now, where the file says so."""


ClassName = Annotated[
    str | None, BeforeValidator(lambda text: str(text).strip() or None), Field(alias="class", max_length=40)
]


class _SnapshotRow(Row):
    """A partition's speed, and who reads it. What `kcga solve` prints has `previous` besides, which is not read."""

    speed: Speed
    consumer: MaybeId = None
    previous: str = ""
    class_name: ClassName = None


class _CurrentRow(Row):
    """Who reads a partition. What `kcga solve` prints has the speed and `previous` besides, which are not read."""

    consumer: Id
    speed: str = ""
    previous: str = ""
    class_name: ClassName = None


class _Placed(PartitionRef):
    consumer: PartitionNumber
    class_name: ClassName = None


class _Unmeasured(PartitionRef):
    consumer: PartitionNumber | None


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


def read_current(file: Path) -> Present:
    """The assignment in CSV `topic,partition,consumer`, or in JSON or CSV as `kcga solve` prints it.

    Raises:
        UsageError: the file cannot be read, or something in it is wrong.
    """
    first, source = read_lines(file).peeked()
    if first.lstrip().startswith(("{", "[")):
        return _json_assignment(source)
    current: dict[TopicPartition, ConsumerId] = {}
    names: dict[ConsumerId, str] = {}
    for place, row in read_rows(source, _CurrentRow):
        if row.key in current:
            place.fail(f"{row.key} is named twice")
        current[row.key] = row.consumer
        _note_class(names, row.consumer, row.class_name, place)
    return Present(Assignment(current), names)


def _note_class(names: dict[ConsumerId, str], consumer: ConsumerId, name: str | None, place: Place) -> None:
    if name is not None and names.setdefault(consumer, name) != name:
        place.fail(f"consumer {consumer} is of the class {name}, and of {names[consumer]}: it must be one of the two")


def _csv_snapshot(source: TextLines) -> Snapshot:
    speeds: dict[TopicPartition, float] = {}
    current: dict[TopicPartition, ConsumerId] = {}
    names: dict[ConsumerId, str] = {}
    for place, row in read_rows(source, _SnapshotRow):
        if row.key in speeds:
            place.fail(f"{row.key} is named twice")
        speeds[row.key] = row.speed
        if row.consumer is not None:
            current[row.key] = row.consumer
            _note_class(names, row.consumer, row.class_name, place)
    return Snapshot(source.name, speeds, current=Present(Assignment(current), names) if current else None)


def _json_snapshot(source: TextLines) -> Snapshot:
    measured = _decoded(WriteSpeedReport, "message of monitor.writeSpeed", source.name, source.text).speeds
    return Snapshot(source.name, dict(measured.bytes_per_s), measured.unknown)


def _json_assignment(source: TextLines) -> Present:
    text = source.text
    plan = _decoded(_Plan, "plan as kcga solve prints it", source.name, text)
    current: dict[TopicPartition, ConsumerId] = {}
    names: dict[ConsumerId, str] = {}
    placed: tuple[tuple[str, Sequence[_Placed | _Unmeasured]], ...] = (
        ("assignment", plan.assignment),
        ("unknown", plan.unknown),
    )
    for group, entries in placed:
        for index, entry in enumerate(entries):
            if entry.key in current:
                Place(source.name, line_of(text, (group, index))).fail(f"{entry.key} is named twice")
            if entry.consumer is not None:
                current[entry.key] = entry.consumer
                name = entry.class_name if isinstance(entry, _Placed) else None
                _note_class(names, entry.consumer, name, Place(source.name))
    return Present(Assignment(current), names)


_Model = TypeVar("_Model", bound=BaseModel)


def _decoded(model: type[_Model], what: str, name: str, text: str) -> _Model:
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        # Where it is no JSON at all, the message says the line.
        fault = error.errors(include_url=False, include_context=False)[0]
        line = None if fault["type"] == "json_invalid" else line_of(text, fault["loc"])
        raise UsageError(f"{Place(name, line)}: {describe(what, error)}") from error


def line_of(text: str, path: Sequence[str | int]) -> int | None:
    """The line, from 1, on which the value at `path` begins, or the innermost around it; None in what is no JSON."""
    depth = _depth(text, path)
    ends = list(accumulate(len(line) + 1 for line in text.split("\n")))
    # No value of JSON but an object or a list is on two lines: what has begun on a line is there at its end.
    line = bisect_left(ends, depth, key=lambda end: _depth(text[:end], path, broken_off=True)) + 1
    return line if depth >= 0 else None


def _depth(text: str, path: Sequence[str | int], *, broken_off: bool = False) -> int:
    """How many steps of `path` there are in JSON, which may be broken off; -1 where it is none."""
    try:
        value = from_json(text, allow_partial=broken_off)
    except ValueError:
        return -1
    for depth, step in enumerate(path):
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return depth
    return len(path)
