"""JSON Schema: any schema and its values as columns, and what is none of them."""

import json
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.decide.evolution import in_sql
from consumer.decide.json_schema import json_schema_reader
from consumer.decide.parsing import UnparsableError
from consumer.decide.reader import Reader, UnreadableError

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
Field = tuple[Any, str, st.SearchStrategy[tuple[Any, Any]]]
"""The schema of a field, its type in SQL, and its values in JSON and in Arrow."""


def same(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    return values.map(lambda value: (value, value))


PLAIN: list[Field] = [
    ({"type": "boolean"}, "BOOLEAN", same(st.booleans())),
    ({"type": ["integer", "null"]}, "BIGINT", same(st.none() | st.integers(-(2**63), 2**63 - 1))),
    ({"type": "number"}, "DOUBLE", same(st.floats(allow_nan=False, allow_infinity=False))),
    ({"type": "string"}, "STRING", same(TEXTS)),
    ({"enum": ["a", "b", None]}, "STRING", same(st.sampled_from(["a", "b", None]))),
    ({"type": "string", "format": "date"}, "DATE", st.dates().map(lambda day: (day.isoformat(), day))),
    (
        {"oneOf": [{"type": "null"}, {"type": "string", "format": "date-time"}]},
        "TIMESTAMP",
        st.datetimes(timezones=st.just(UTC)).map(lambda moment: (moment.isoformat(), moment)),
    ),
    ({"type": ["string", "integer"]}, "STRING", st.integers().map(lambda number: (number, json.dumps(number)))),
]


def _nested(inner: st.SearchStrategy[Field]) -> st.SearchStrategy[Field]:
    def lists(field: Field) -> Field:
        schema, sql, values = field
        both = st.lists(values, max_size=3).map(
            lambda found: ([each[0] for each in found], [each[1] for each in found])
        )
        return {"type": "array", "items": schema}, f"ARRAY<{sql}>", both

    def maps(field: Field) -> Field:
        schema, sql, values = field
        found = st.dictionaries(TEXTS, values, max_size=3)
        both = found.map(lambda held: ({k: v[0] for k, v in held.items()}, [(k, v[1]) for k, v in held.items()]))
        return {"type": "object", "additionalProperties": schema}, f"MAP<STRING, {sql}>", both

    return st.builds(lambda make, field: make(field), st.sampled_from([lists, maps]), inner) | st.lists(
        inner, min_size=1, max_size=3
    ).map(_of_object)


def _of_object(fields: list[Field]) -> Field:
    properties = {f"f{place}": schema for place, (schema, _, _) in enumerate(fields)}
    sql = ", ".join(f"f{place}: {sql}" for place, (_, sql, _) in enumerate(fields))
    values = st.fixed_dictionaries({f"f{place}": values for place, (_, _, values) in enumerate(fields)})
    both = values.map(lambda found: tuple({name: each[side] for name, each in found.items()} for side in (0, 1)))
    return {"type": "object", "properties": properties}, f"STRUCT<{sql}>", both  # type: ignore[return-value]


fields = st.recursive(st.sampled_from(PLAIN), _nested, max_leaves=6)


@given(st.data(), st.lists(fields, min_size=1, max_size=4).map(_of_object))
def test_any_schema_becomes_columns_that_hold_its_values(data: st.DataObject, chosen: Field) -> None:
    schema, sql, values = chosen
    reader = json_schema_reader(json.dumps(schema))
    assert in_sql(pa.struct(reader.fields)) == sql
    drawn = data.draw(st.lists(values, max_size=3))
    read = [reader.read(json.dumps(value).encode()) for value, _ in drawn]
    assert pa.array(read, pa.struct(reader.fields)).to_pylist() == [value for _, value in drawn]


def sql_of(schema: Any) -> dict[str, str]:
    return {field.name: in_sql(field.type) for field in of(schema).fields}


def of(schema: Any) -> Reader:
    return json_schema_reader(json.dumps(schema))


def test_a_value_that_is_no_object_is_one_field() -> None:
    assert sql_of({"type": "array", "items": {"type": "integer"}}) == {"value": "ARRAY<BIGINT>"}
    assert of({"type": "integer"}).read(b"7") == {"value": 7}
    assert of(True).read(b"[7]") == {"value": "[7]"}


def test_what_lies_elsewhere_in_the_schema_is_found_and_what_holds_itself_is_json() -> None:
    node = {"type": "object", "properties": {"day": {"$ref": "#/$defs/a~1day"}, "next": {"$ref": "#/$defs/node"}}}
    defined = {"a/day": {"type": "string", "format": "date"}, "node": node}
    schema = {"properties": {"first": {"$ref": "#/$defs/node"}, "far": {"$ref": "other.json"}}, "type": "object"}
    assert sql_of({**schema, "$defs": defined}) == {"first": "STRUCT<day: DATE, next: STRING>", "far": "STRING"}
    value = {"first": {"day": "2026-01-31", "next": {"day": "2026-02-01"}}}
    assert of({**schema, "$defs": defined}).read(json.dumps(value).encode()) == {
        "first": {"day": date(2026, 1, 31), "next": '{"day": "2026-02-01"}'},
        "far": None,
    }


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (b'{"at": "yesterday"}', "at is not a moment as ISO 8601 has it"),
        (b'{"lines": [{"n": 1}, {"n": 1.5}]}', r"lines\[1\]\.n is not an integer of 64 bits: 1.5"),
        (b"[]", "the value is not a JSON object"),
    ],
)
def test_a_value_that_does_not_follow_its_schema_is_refused_with_the_field(value: bytes, says: str) -> None:
    line = {"type": "object", "properties": {"n": {"type": "integer"}}}
    lines = {"type": "array", "items": line}
    schema = {"type": "object", "properties": {"at": {"type": "string", "format": "date-time"}, "lines": lines}}
    assert of(schema).read(b'{"at": "2026-01-31T00:00:00Z"}')["at"] == datetime(2026, 1, 31, tzinfo=UTC)
    with pytest.raises(UnparsableError, match=says):
        of(schema).read(value)


@pytest.mark.parametrize("value", [b"", b"\xff", b"NaN", b"[" * 100_000])
def test_what_is_no_json_is_refused(value: bytes) -> None:
    with pytest.raises((ValueError, RecursionError)):
        of({"type": "number"}).read(value)


@pytest.mark.parametrize(
    "schema", ["", "7", "[]", '{"$ref": "#/none"}', '{"anyOf": 7}', "[" * 100_000, '{"type": "array", "items": 7}']
)
def test_what_is_no_schema_is_refused(schema: str) -> None:
    if "items" in schema:
        assert json_schema_reader(schema).fields == (pa.field("value", pa.string()),)
        return
    with pytest.raises(UnreadableError, match="no JSON Schema"):
        json_schema_reader(schema)
