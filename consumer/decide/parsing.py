"""The values of a topic as columns, by its schema; what does not follow it has an error in their place.

Values are JSON objects. A column takes a field of theirs; one that is absent or null is null. Nothing is converted that
could come out otherwise than it was meant: numbers are no texts, fractions no integers.
"""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

import pyarrow as pa

from consumer.decide.columns import Column, ColumnType, MisfitError, WrittenNumber


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


def in_arrow(kind: ColumnType) -> pa.DataType:
    """What a column is in Arrow."""
    if kind.digits is not None:
        return pa.decimal128(*kind.digits)
    if kind.fields is not None:
        return pa.struct([(name, in_arrow(inner)) for name, inner in kind.fields.items()])
    if kind.items is not None:
        items = in_arrow(kind.items)
        return pa.map_(pa.string(), items) if kind.sql.startswith("MAP") else pa.list_(items)
    return ARROW_TYPES[kind.sql]


def parsed(columns: Sequence[Column], value: bytes | None, *, is_exact: bool = True) -> list[Any]:
    """The value of each column; a record without a value has none.

    Args:
        columns: which.
        value: in JSON.
        is_exact: whether one of them keeps fractions as they are written.

    Raises:
        UnparsableError: the value does not follow the schema.
    """
    if value is None:
        return [None] * len(columns)
    try:
        document = loaded(value, is_exact=is_exact)
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
    is_exact = any(column.kind.is_exact for column in columns)
    for value in values:
        try:
            lines.append(parsed(columns, value, is_exact=is_exact))
            errors.append(None)
        except UnparsableError as error:
            lines.append([None] * len(columns))
            errors.append(str(error))
    arrays = [pa.array([line[place] for line in lines], in_arrow(column.kind)) for place, column in enumerate(columns)]
    return arrays, errors


def loaded(value: bytes, *, is_exact: bool = False) -> Any:
    """The JSON value; its fractions as they are written, where that matters."""
    if is_exact:
        return json.loads(value, parse_constant=_refuse, parse_float=WrittenNumber.of)
    return json.loads(value, parse_constant=_refuse)


def fitted(kind: ColumnType, document: Any) -> Any:
    """The value of this type that the JSON value is.

    Raises:
        UnparsableError: it is none.
    """
    if document is None:
        return None
    try:
        return kind.take(document)
    except (ValueError, TypeError, OverflowError) as error:
        raise _unparsable(kind, document, "", error) from error


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
        raise _unparsable(column.kind, found, ".".join(column.path), error) from error


def _unparsable(kind: ColumnType, found: Any, path: str, error: Exception) -> UnparsableError:
    if isinstance(error, MisfitError):
        where = f"{path}{error.where}".removeprefix(".")
        return UnparsableError(f"{where} is not {error.expects}: {_shown(error.found)}")
    return UnparsableError(f"{path or 'the value'} is not {kind.expects}: {_shown(found)}")


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is none of its numbers")
