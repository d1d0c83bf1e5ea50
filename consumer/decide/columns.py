"""The columns of a topic's table: those of every record, and those that a schema parses out of its value.

Kept apart from what fills them: settings name columns, and whoever reads settings need not load Arrow for it.
"""

import json
import math
import re
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import cache
from types import MappingProxyType
from typing import Any

INT_BITS, BIGINT_BITS = 32, 64
MOST_DIGITS = 38
"""Of a decimal."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

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
    """The value, or a ValueError, TypeError or OverflowError of any kind."""
    fields: Mapping[str, "ColumnType"] | None = None
    """Of a struct."""
    items: "ColumnType | None" = None
    """Of an array, or the values of a map."""
    digits: tuple[int, int] | None = None
    """Of a decimal: all of them, and those behind the point."""

    @property
    def is_exact(self) -> bool:
        """Whether numbers with a fraction are to be kept as they are written."""
        within = [*(self.fields or {}).values(), *([self.items] if self.items else [])]
        return self.digits is not None or any(kind.is_exact for kind in within)


class MisfitError(ValueError):
    """A value within another that its type does not take."""

    def __init__(self, where: str, expects: str, found: Any) -> None:
        super().__init__(f"{where} is not {expects}")
        self.where, self.expects, self.found = where, expects, found


class WrittenNumber(float):
    """A number with a fraction, and how it is written."""

    text: str

    @classmethod
    def of(cls, text: str) -> "WrittenNumber":
        number = cls(text)
        number.text = text
        return number


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError
    value.encode()  # JSON can escape halves of characters, which are none
    return value


def _binary(value: Any) -> bytes:
    return b64decode(_text(value), validate=True)


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
    if not (type(value) is int or isinstance(value, float)) or not math.isfinite(number := float(value)):
        raise ValueError
    return number


def _timestamp(value: Any) -> datetime:
    moment = datetime.fromisoformat(value)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _since_epoch(unit_us: int) -> Callable[[Any], datetime]:
    def take(value: Any) -> datetime:
        if type(value) is not int:
            raise TypeError
        return EPOCH + timedelta(microseconds=value * unit_us)

    return take


TYPES: Mapping[str, ColumnType] = MappingProxyType(
    {
        "string": ColumnType("STRING", "a text", _text),
        "binary": ColumnType("BINARY", "a text in base64", _binary),
        "boolean": ColumnType("BOOLEAN", "true or false", _boolean),
        "int": ColumnType("INT", "an integer of 32 bits", _integer(INT_BITS)),
        "bigint": ColumnType("BIGINT", "an integer of 64 bits", _integer(BIGINT_BITS)),
        "double": ColumnType("DOUBLE", "a number", _double),
        "timestamp": ColumnType("TIMESTAMP", "a moment as ISO 8601 has it", _timestamp),
        "timestamp_s": ColumnType("TIMESTAMP", "a number of seconds since 1970", _since_epoch(1_000_000)),
        "timestamp_ms": ColumnType("TIMESTAMP", "a number of milliseconds since 1970", _since_epoch(1_000)),
        "timestamp_us": ColumnType("TIMESTAMP", "a number of microseconds since 1970", _since_epoch(1)),
        "date": ColumnType("DATE", "a day as ISO 8601 has it", date.fromisoformat),
        "json": ColumnType("STRING", "anything", json.dumps),
    }
)
"""What columns can be, beside decimals and what is made of others. A moment without a time zone is in UTC; `json` keeps
what there is, as text."""


def decimal_of(precision: int, scale: int) -> ColumnType:
    """Numbers of so many digits, so many of them behind the point; never rounded.

    Raises:
        ValueError: there is no such type.
    """
    if not 0 <= scale <= precision <= MOST_DIGITS or not precision:
        raise ValueError(f"a decimal has 1 to {MOST_DIGITS} digits, and no more behind the point")

    unit, exact = Decimal(1).scaleb(-scale), Context(prec=precision, traps=[Inexact, InvalidOperation])

    def take(value: Any) -> Decimal:
        text = value.text if isinstance(value, WrittenNumber) else value
        if type(text) not in (int, str):
            raise TypeError
        try:
            number = Decimal(text).quantize(unit, context=exact.copy())
        except ArithmeticError as error:
            raise ValueError from error
        if not number.is_finite():
            raise ValueError
        return number

    name = f"DECIMAL({precision}, {scale})"
    expects = f"a number of {precision} digits at most, {scale} of them behind the point"
    return ColumnType(name, expects, take, digits=(precision, scale))


def array_of(items: ColumnType) -> ColumnType:
    """Lists of these."""

    def take(value: Any) -> list[Any]:
        if type(value) is not list:
            raise TypeError
        return [_within(items, f"[{place}]", each) for place, each in enumerate(value)]

    return ColumnType(f"ARRAY<{items.sql}>", "a list", take, items=items)


def map_of(items: ColumnType) -> ColumnType:
    """Objects with any names, whose values are these."""

    def take(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise TypeError
        return {_text(name): _within(items, f".{name}", each) for name, each in value.items()}

    return ColumnType(f"MAP<STRING, {items.sql}>", "a JSON object", take, items=items)


def struct_of(fields: Mapping[str, ColumnType]) -> ColumnType:
    """Objects with these fields; what else they have is left out."""

    def take(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise TypeError
        return {name: _within(kind, f".{name}", value.get(name)) for name, kind in fields.items()}

    inner = ", ".join(f"`{name}`: {kind.sql}" for name, kind in fields.items())
    return ColumnType(f"STRUCT<{inner}>", "a JSON object", take, fields=fields)


def _within(kind: ColumnType, where: str, value: Any) -> Any:
    if value is None:
        return None
    try:
        return kind.take(value)
    except MisfitError as error:
        raise MisfitError(f"{where}{error.where}", error.expects, error.found) from error
    except (ValueError, TypeError, OverflowError) as error:
        raise MisfitError(where, kind.expects, value) from error


@cache
def type_of(text: str) -> ColumnType:
    """The type that settings name: one of `TYPES`, or one such as `array<struct<sku: string, price: decimal(9, 2)>>`.

    Raises:
        ValueError: it names none; says what would.
    """
    parts = re.findall(r"[A-Za-z_][\w-]*|\d+|[^\s]", text)
    kind, rest = _parsed(text, parts)
    if rest:
        raise ValueError(f"{text!r} goes on behind its end, with {''.join(rest)!r}")
    return kind


def _parsed(text: str, parts: list[str]) -> tuple[ColumnType, list[str]]:
    match parts:
        case ["decimal", "(", precision, ",", scale, ")", *rest] if (precision + scale).isdecimal():
            return decimal_of(int(precision), int(scale)), rest
        case ["array", "<", *rest]:
            items, rest = _parsed(text, rest)
            return array_of(items), _closed(text, rest)
        case ["map", "<", "string", ",", *rest]:
            items, rest = _parsed(text, rest)
            return map_of(items), _closed(text, rest)
        case ["struct", "<", *rest]:
            fields: dict[str, ColumnType] = {}
            while True:
                match rest:
                    case [name, ":", *rest] if re.fullmatch(r"[A-Za-z_][\w-]*", name):
                        if name.lower() in map(str.lower, fields):
                            raise ValueError(f"{text!r} has the field {name} twice")
                        fields[name], rest = _parsed(text, rest)
                    case _:
                        raise ValueError(f"{text!r} names no field where it must: struct<name: type, name: type>")
                if rest[:1] != [","]:
                    return struct_of(fields), _closed(text, rest)
                rest = rest[1:]
        case [name, *rest] if name in TYPES:
            return TYPES[name], rest
    made = "decimal(digits, behind the point), array<type>, map<string, type>, struct<name: type>"
    found = f"{text!r}" if parts == [text] else f"{''.join(parts[:1])!r} of {text!r}"
    raise ValueError(f"{found} is no type: it must be one of {', '.join(TYPES)}, {made}")


def _closed(text: str, rest: list[str]) -> list[str]:
    if rest[:1] != [">"]:
        raise ValueError(f"{text!r} has no > where it must")
    return rest[1:]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a topic's table."""

    name: str
    type: str
    """As `type_of` takes it."""
    path: tuple[str, ...]
    """Of the field, from the outermost object inwards."""

    @property
    def kind(self) -> ColumnType:
        return type_of(self.type)


NO_SCHEMAS: Mapping[str, Sequence[Column]] = MappingProxyType({})
