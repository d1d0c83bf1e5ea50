"""The values of a topic as columns, by its schema; what does not follow it has an error in their place.

Values are JSON objects. A column takes a field of theirs; one that is absent or null is null. Nothing is converted that
could come out otherwise than it was meant: numbers are no texts, fractions no integers.
"""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

import pyarrow as pa

from consumer.decide.columns import Column


class UnparsableError(ValueError):
    """A value that does not follow its schema; says where, and what would."""


ARROW_TYPES: Mapping[str, pa.DataType] = MappingProxyType(
    {
        "STRING": pa.string(),
        "BOOLEAN": pa.bool_(),
        "INT": pa.int32(),
        "BIGINT": pa.int64(),
        "DOUBLE": pa.float64(),
        "TIMESTAMP": pa.timestamp("us", tz="UTC"),
        "DATE": pa.date32(),
        "BINARY": pa.binary(),
        "ARRAY<STRUCT<key: STRING, value: BINARY>>": pa.list_(
            pa.struct([("key", pa.string()), ("value", pa.binary())])
        ),
    }
)
"""What each type of SQL is in Arrow."""


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
    try:
        return [_field(column, document) for column in columns]
    except RecursionError as error:  # what could just be parsed may be too deep to be written as text
        raise UnparsableError("the value is nested too deeply") from error


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
    arrays = [
        pa.array([line[place] for line in lines], ARROW_TYPES[column.kind.sql]) for place, column in enumerate(columns)
    ]
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
