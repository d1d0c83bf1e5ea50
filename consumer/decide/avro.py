"""Avro: the columns of a schema, and its values.

Logical types that tables have no type for stay what they are made of: a time of day is a number, and so is a moment
without a time zone. A choice between several types is JSON text, and so is a record inside of one of its own kind.
"""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import MAX_PREC, Context, Decimal
from typing import Any

import fastavro
import fastavro._read_py
import pyarrow as pa
from fastavro.schema import SchemaParseException, UnknownType

from consumer.decide.columns import MOST_DIGITS
from consumer.decide.reader import WHOLE_VALUE, Reader, Referred, UnreadableError, as_text

Convert = Callable[[Any], Any]
"""What has been read, as Arrow takes it."""
Taken = tuple[pa.DataType | None, Convert | None]
"""The type of a column, none where there is nothing to be kept, and how its values are converted, if at all."""

_TYPES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_LOGICAL = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): pa.timestamp("us", tz="UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", tz="UTC"),
}
"""Those that are read as what they mean; a decimal is read as bytes, which are exact."""

_EXACT = Context(prec=MAX_PREC)
_AS_TEXT: Taken = pa.string(), as_text


def avro_reader(schema: str, references: Sequence[Referred] = ()) -> Reader:
    """Reads the values of a schema.

    Args:
        schema: in JSON.
        references: schemas whose types it names, each behind those that it names itself.

    Raises:
        UnreadableError: it is no schema of Avro.
    """
    compiler = _Compiler()
    try:
        for reference in references:
            compiler.parse(reference.schema)
        parsed = compiler.parse(schema)
        kind, convert = compiler.taken(parsed)
    except (SchemaParseException, UnknownType, ValueError, TypeError, LookupError, RecursionError) as error:
        raise UnreadableError(f"it is no schema of Avro: {type(error).__name__}: {error}") from error
    # What is compiled does not notice that records nest too deeply: it would end the process.
    read = (fastavro._read_py if compiler.is_recursive else fastavro).schemaless_reader
    is_record = kind is not None and pa.types.is_struct(kind)

    def decode(value: bytes) -> Mapping[str, Any]:
        encoded = io.BytesIO(value)
        found: Any = read(encoded, parsed, None)
        if encoded.tell() != len(value):
            raise ValueError(f"{len(value) - encoded.tell()} bytes are left over")
        found = found if convert is None else convert(found)
        return found if is_record else {WHOLE_VALUE: found}

    if kind is None:
        return Reader((), decode)
    return Reader(tuple(kind) if is_record else (pa.field(WHOLE_VALUE, kind),), decode)


class _Compiler:
    """Of one schema and those that it refers to."""

    def __init__(self) -> None:
        self.is_recursive = False
        self._named: dict[str, Any] = {}

    def parse(self, schema: str) -> Any:
        return fastavro.parse_schema(_renamed(json.loads(schema)), named_schemas=self._named)

    def taken(self, schema: Any, inside: tuple[str, ...] = ()) -> Taken:
        """Of what lies in records of these names."""
        if isinstance(schema, list):
            return self._choice(schema, inside)
        if isinstance(schema, str):
            return self.taken(self._named[schema], inside) if schema in self._named else (_TYPES.get(schema), None)
        match schema["type"]:
            case "record" | "error":
                return self._record(schema, inside)
            case "array":
                kind, convert = self.taken(schema["items"], inside)
                return _AS_TEXT if kind is None else (pa.list_(kind), convert and _in_list(convert))
            case "map":
                kind, convert = self.taken(schema["values"], inside)
                return _AS_TEXT if kind is None else (pa.map_(pa.string(), kind), convert and _in_map(convert))
            case "bytes" | "fixed" if schema.get(_LOGICAL_TYPE) == "decimal":
                return _decimal(schema["precision"], schema.get("scale", 0))
            case str(name) if name in _TYPES:
                return _LOGICAL.get((name, schema.get("logicalType", "")), _TYPES[name]), None
            case inner:
                return self.taken(inner, inside)

    def _choice(self, branches: Sequence[Any], inside: tuple[str, ...]) -> Taken:
        some = [branch for branch in branches if branch != "null"]
        if len(some) != 1:
            return (pa.string(), _unless_null(as_text)) if some else (None, None)
        kind, convert = self.taken(some[0], inside)
        return kind, convert and _unless_null(convert)

    def _record(self, schema: Mapping[str, Any], inside: tuple[str, ...]) -> Taken:
        if schema["name"] in inside:
            self.is_recursive = True
            return _AS_TEXT
        fields, converts = [], {}
        for field in schema["fields"]:
            kind, convert = self.taken(field["type"], (*inside, schema["name"]))
            if kind is not None:
                fields.append(pa.field(field["name"], kind))
            if convert is not None:
                converts[field["name"]] = convert
        if not fields:
            return (None, None) if not inside else _AS_TEXT
        return pa.struct(fields), _in_record(converts) if converts else None


_LOGICAL_TYPE = "kcga.logicalType"
"""Where a logical type is that is not to be converted by what reads."""


def _renamed(schema: Any) -> Any:
    """The schema, with the logical types put aside that are not read as what they mean."""
    if isinstance(schema, list):
        return [_renamed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    copied = {name: _renamed(inner) for name, inner in schema.items()}
    if "logicalType" in copied and (copied.get("type"), copied["logicalType"]) not in _LOGICAL:
        copied[_LOGICAL_TYPE] = copied.pop("logicalType")
    return copied


def _decimal(precision: int, scale: int) -> Taken:
    def exact(value: bytes) -> Decimal:
        return _EXACT.scaleb(Decimal(int.from_bytes(value, signed=True)), -scale)

    if not 0 <= scale <= precision <= MOST_DIGITS:
        return pa.string(), lambda value: str(exact(value))
    return pa.decimal128(precision, scale), exact


def _unless_null(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _in_list(convert: Convert) -> Convert:
    return lambda values: [convert(value) for value in values]


def _in_map(convert: Convert) -> Convert:
    return lambda values: {key: convert(value) for key, value in values.items()}


def _in_record(converts: Mapping[str, Convert]) -> Convert:
    def convert(record: dict[str, Any]) -> dict[str, Any]:
        for name, each in converts.items():
            record[name] = each(record[name])
        return record

    return convert
