"""The values of a topic as columns, by its schema; what does not follow it has an error in their place.

Values are JSON objects. A column takes a field of theirs; one that is absent or null is null. Nothing is converted that
could come out otherwise than it was meant: numbers are no texts, fractions no integers.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from types import MappingProxyType
from typing import Any, NoReturn

import pyarrow as pa

INT_BITS, BIGINT_BITS = 32, 64


class UnparsableError(ValueError):
    """A value that does not follow its schema; says where, and what would."""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """How a field becomes a value of a column."""

    sql: str
    arrow: pa.DataType
    expects: str
    take: Callable[[Any], Any]
    """The value, or a ValueError or TypeError of any kind."""


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError
    value.encode()  # JSON can escape halves of characters, which are none
    return value


def _boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise TypeError
    return value


def _integer(bits: int) -> Callable[[Any], Any]:
    def take(value: Any) -> Any:
        if type(value) is not int or not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise ValueError
        return value

    return take


def _double(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(number := float(value)):
        raise ValueError
    return number


def _timestamp(value: Any) -> datetime:
    moment = datetime.fromisoformat(value)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


TYPES: Mapping[str, ColumnType] = MappingProxyType(
    {
        "string": ColumnType("STRING", pa.string(), "a text", _text),
        "boolean": ColumnType("BOOLEAN", pa.bool_(), "true or false", _boolean),
        "int": ColumnType("INT", pa.int32(), "an integer of 32 bits", _integer(INT_BITS)),
        "bigint": ColumnType("BIGINT", pa.int64(), "an integer of 64 bits", _integer(BIGINT_BITS)),
        "double": ColumnType("DOUBLE", pa.float64(), "a number", _double),
        "timestamp": ColumnType("TIMESTAMP", pa.timestamp("us", tz="UTC"), "a moment as ISO 8601 has it", _timestamp),
        "date": ColumnType("DATE", pa.date32(), "a day as ISO 8601 has it", date.fromisoformat),
        "json": ColumnType("STRING", pa.string(), "anything", json.dumps),
    }
)
"""What columns can be. A moment without a time zone is in UTC; `json` keeps what there is, as text."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a topic's table."""

    name: str
    type: str
    """One of `TYPES`."""
    path: tuple[str, ...]
    """Of the field, from the outermost object inwards."""

    @property
    def kind(self) -> ColumnType:
        return TYPES[self.type]


NO_SCHEMAS: Mapping[str, Sequence[Column]] = MappingProxyType({})


def parsed(columns: Sequence[Column], value: bytes | None) -> list[Any]:
    """The value of each column; a record without a value has none.

    Raises:
        UnparsableError: the value does not follow the schema.
    """
    if value is None:
        return [None] * len(columns)
    try:
        document = json.loads(value, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise UnparsableError(f"the value is no JSON: {error}") from error
    if type(document) is not dict:
        raise UnparsableError("the value is no JSON object")
    return [_field(column, document) for column in columns]


def parsed_columns(
    columns: Sequence[Column], values: Sequence[bytes | None]
) -> tuple[list[pa.Array], list[str | None]]:
    """The columns of so many records, and the error of each that does not follow the schema: its columns are null."""
    lines: list[list[Any]] = []
    errors: list[str | None] = []
    for value in values:
        try:
            lines.append(parsed(columns, value))
            errors.append(None)
        except UnparsableError as error:
            lines.append([None] * len(columns))
            errors.append(str(error))
    arrays = [pa.array([line[place] for line in lines], column.kind.arrow) for place, column in enumerate(columns)]
    return arrays, errors


def _field(column: Column, document: Any) -> Any:
    found = document
    for depth, name in enumerate(column.path):
        if found is None:
            return None
        if type(found) is not dict:
            raise UnparsableError(f"{'.'.join(column.path[:depth])} is no JSON object")
        found = found.get(name)
    if found is None:
        return None
    try:
        return column.kind.take(found)
    except (ValueError, TypeError, OverflowError) as error:
        raise UnparsableError(f"{'.'.join(column.path)} is not {column.kind.expects}: {_shown(found)}") from error


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is none of its numbers")
