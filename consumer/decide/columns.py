"""The columns of a topic's table: those of every record, and those that a schema parses out of its value.

Kept apart from what fills them: settings name columns, and whoever reads settings need not load Arrow for it.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from types import MappingProxyType
from typing import Any

INT_BITS, BIGINT_BITS = 32, 64

OF_EVERY_RECORD: Mapping[str, str] = MappingProxyType(
    {
        "topic": "STRING",
        "partition": "INT",
        "offset": "BIGINT",
        "timestamp": "TIMESTAMP",
        "key": "BINARY",
        "value": "BINARY",
        "headers": "ARRAY<STRUCT<key: STRING, value: BINARY>>",
        "ingest_date": "DATE",
        "error": "STRING",
    }
)
"""The columns of every table and their types in SQL; those of a topic's schema follow. `error` says why a record could
not be parsed, or what of it could not be kept; null where nothing was amiss."""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """How a field becomes a value of a column."""

    sql: str
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
        "string": ColumnType("STRING", "a text", _text),
        "boolean": ColumnType("BOOLEAN", "true or false", _boolean),
        "int": ColumnType("INT", "an integer of 32 bits", _integer(INT_BITS)),
        "bigint": ColumnType("BIGINT", "an integer of 64 bits", _integer(BIGINT_BITS)),
        "double": ColumnType("DOUBLE", "a number", _double),
        "timestamp": ColumnType("TIMESTAMP", "a moment as ISO 8601 has it", _timestamp),
        "date": ColumnType("DATE", "a day as ISO 8601 has it", date.fromisoformat),
        "json": ColumnType("STRING", "anything", json.dumps),
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
