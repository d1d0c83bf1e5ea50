"""Avro: any schema and its values as columns, and what is none of them."""

import json
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.decide.avro import avro_reader
from consumer.decide.evolution import in_sql
from consumer.decide.reader import Referred, UnreadableError
from tests.consumer.avro_records import encoded, record

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)

Field = tuple[Any, str, st.SearchStrategy[Any]]
"""The schema of a field, its type in SQL, and its values as Arrow gives them."""

PLAIN: list[Field] = [
    ("boolean", "BOOLEAN", st.booleans()),
    ("int", "INT", st.integers(-(2**31), 2**31 - 1)),
    ("long", "BIGINT", st.integers(-(2**63), 2**63 - 1)),
    ("float", "FLOAT", st.floats(width=32, allow_nan=False)),
    ("double", "DOUBLE", st.floats(allow_nan=False)),
    ("bytes", "BINARY", st.binary(max_size=5)),
    ({"type": "fixed", "name": "F3", "size": 3}, "BINARY", st.binary(min_size=3, max_size=3)),
    ("string", "STRING", TEXTS),
    ({"type": "string", "logicalType": "uuid"}, "STRING", TEXTS),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "STRING", st.sampled_from("AB")),
    ({"type": "int", "logicalType": "date"}, "DATE", st.dates()),
    ({"type": "int", "logicalType": "time-millis"}, "INT", st.integers(0, 86_399_999)),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, "BIGINT", st.integers(-(2**50), 2**50)),
    (
        {"type": "long", "logicalType": "timestamp-millis"},
        "TIMESTAMP",
        st.integers(-(10**13), 10**14).map(lambda ms: EPOCH + timedelta(milliseconds=ms)),
    ),
    (
        {"type": "long", "logicalType": "timestamp-micros"},
        "TIMESTAMP",
        st.datetimes(timezones=st.just(UTC)),
    ),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 3},
        "DECIMAL(38, 3)",
        st.integers(-(10**38) + 1, 10**38 - 1).map(lambda digits: Decimal(f"{digits}E-3")),
    ),
]


def _nested(inner: st.SearchStrategy[Field]) -> st.SearchStrategy[Field]:
    def lists(field: Field) -> Field:
        schema, sql, values = field
        return {"type": "array", "items": schema}, f"ARRAY<{sql}>", st.lists(values, max_size=3)

    def maps(field: Field) -> Field:
        schema, sql, values = field
        held = st.dictionaries(TEXTS, values, max_size=3).map(lambda found: list(found.items()))
        return {"type": "map", "values": schema}, f"MAP<STRING, {sql}>", held

    def optional(field: Field) -> Field:
        schema, sql, values = field
        return ["null", schema], sql, st.none() | values

    def records(fields: list[Field]) -> Field:
        schema = {"type": "record", "name": "R", "fields": _fields([schema for schema, _, _ in fields])}
        sql = ", ".join(f"f{place}: {sql}" for place, (_, sql, _) in enumerate(fields))
        values = {f"f{place}": values for place, (_, _, values) in enumerate(fields)}
        return schema, f"STRUCT<{sql}>", st.fixed_dictionaries(values)

    of_one = st.builds(lambda make, field: make(field), st.sampled_from([lists, maps]), inner)
    not_null = inner.filter(lambda field: not isinstance(field[0], list))
    return of_one | not_null.map(optional) | st.lists(inner, min_size=1, max_size=3).map(records)


def _fields(schemas: list[Any]) -> list[Any]:
    return [{"name": f"f{place}", "type": schema} for place, schema in enumerate(schemas)]


def named_apart(schema: Any, names: list[int]) -> Any:
    """With a name of its own for each type that has one."""
    if isinstance(schema, list):
        return [named_apart(each, names) for each in schema]
    if not isinstance(schema, dict):
        return schema
    copied = {key: named_apart(value, names) if key != "symbols" else value for key, value in schema.items()}
    if schema.get("type") in ("record", "fixed", "enum"):
        names.append(len(names))
        copied["name"] = f"{schema['name']}{len(names)}"
    return copied


def written(value: Any, schema: Any) -> Any:
    """As fastavro takes it: what Arrow has as pairs is a map there."""
    if isinstance(schema, list):
        return None if value is None else written(value, schema[1])
    if not isinstance(schema, dict):
        return value
    match schema["type"]:
        case "array":
            return [written(each, schema["items"]) for each in value]
        case "map":
            return {key: written(each, schema["values"]) for key, each in value}
        case "record":
            return {field["name"]: written(value[field["name"]], field["type"]) for field in schema["fields"]}
        case _:
            return value


fields = st.recursive(st.sampled_from(PLAIN), _nested, max_leaves=6)


@given(st.data(), st.lists(fields, min_size=1, max_size=4))
def test_any_schema_becomes_columns_that_hold_its_values(data: st.DataObject, chosen: list[Field]) -> None:
    schema = named_apart({"type": "record", "name": "Top", "fields": _fields([each[0] for each in chosen])}, [])
    reader = avro_reader(json.dumps(schema))
    assert [in_sql(field.type) for field in reader.fields] == [sql for _, sql, _ in chosen]
    row = st.fixed_dictionaries({f"f{place}": values for place, (_, _, values) in enumerate(chosen)})
    values = data.draw(st.lists(row, max_size=3))
    read = [reader.read(encoded(schema, written(value, schema))) for value in values]
    assert pa.array(read, pa.struct(reader.fields)).to_pylist() == values


def test_a_value_that_is_no_record_is_one_field() -> None:
    reader = avro_reader('"long"')
    assert [(field.name, in_sql(field.type)) for field in reader.fields] == [("value", "BIGINT")]
    assert reader.read(encoded("long", 7)) == {"value": 7}


def test_a_choice_between_types_is_json() -> None:
    schema = record(either=["null", "long", {"type": "array", "items": "bytes"}])
    reader = avro_reader(json.dumps(schema))
    assert [in_sql(field.type) for field in reader.fields] == ["STRING"]
    found = [reader.read(encoded(schema, {"either": value}))["either"] for value in (7, [b"\xff"], None)]
    assert found == ["7", '["/w=="]', None]


def test_a_record_within_its_own_kind_is_json_however_deep_it_is() -> None:
    schema = record(number="int", next=["null", "Value"])
    reader = avro_reader(json.dumps(schema))
    assert [in_sql(field.type) for field in reader.fields] == ["INT", "STRING"]
    value = {"number": 1, "next": {"number": 2, "next": None}}
    assert reader.read(encoded(schema, value)) == {"number": 1, "next": '{"number": 2, "next": null}'}
    with pytest.raises(RecursionError):
        reader.read(b"\x02\x02" * 100_000 + b"\x02\x00")


def test_what_holds_nothing_has_no_column() -> None:
    schema = record(nothing="null", some="int")
    assert [field.name for field in avro_reader(json.dumps(schema)).fields] == ["some"]
    assert avro_reader(json.dumps(record())).fields == ()


def test_a_decimal_is_exact_and_one_too_long_is_text() -> None:
    schema = record(long={"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 2})
    reader = avro_reader(json.dumps(schema))
    assert [in_sql(field.type) for field in reader.fields] == ["STRING"]
    assert reader.read(encoded(schema, {"long": Decimal("9" * 58 + ".25")})) == {"long": "9" * 58 + ".25"}
    short = record(short={"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 0})
    too_large = avro_reader(json.dumps(short)).read(b"\x04" + (12_345).to_bytes(2, "big"))
    assert too_large == {"short": Decimal(12_345)}, "no number is made up: its column refuses it"


def test_a_schema_may_refer_to_others() -> None:
    item = {"type": "record", "name": "shop.Item", "fields": [{"name": "day", "type": _day()}]}
    order = {"type": "record", "name": "Order", "fields": [{"name": "item", "type": "shop.Item"}]}
    reader = avro_reader(json.dumps(order), [Referred("shop.Item", json.dumps(item))])
    assert [in_sql(field.type) for field in reader.fields] == ["STRUCT<day: DATE>"]
    assert reader.read(encoded([item, order], {"item": {"day": date(1970, 1, 3)}})[1:])["item"] == {
        "day": date(1970, 1, 3)
    }


def _day() -> dict[str, str]:
    return {"type": "int", "logicalType": "date"}


@pytest.mark.parametrize("value", [b"", b"\x02", b"\x0e\x0e", b"\x80" * 20, b"\x02\x05\xff\xff"])
def test_bytes_that_are_no_value_of_the_schema_are_refused(value: bytes) -> None:
    reader = avro_reader(json.dumps(record(number="int", text="string")))
    with pytest.raises((EOFError, ValueError, IndexError, OverflowError)):
        reader.read(value)


@given(st.binary(max_size=40))
def test_no_bytes_do_more_than_raise(value: bytes) -> None:
    schema = record(number="int", texts={"type": "array", "items": "string"}, more={"type": "map", "values": "double"})
    reader = avro_reader(json.dumps(schema))
    with suppress(Exception):
        reader.read(value)


@pytest.mark.parametrize(
    "schema", ["", "[" * 100_000, '"no type"', "{}", '{"type": "record"}', "7", "null", '{"type": "array"}']
)
def test_what_is_no_schema_is_refused(schema: str) -> None:
    with pytest.raises(UnreadableError, match="no schema of Avro"):
        avro_reader(schema)
