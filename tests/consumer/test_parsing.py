import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.decide.columns import TYPES, Column, type_of
from consumer.decide.evolution import in_sql
from consumer.decide.parsing import UnparsableError, in_arrow, parsed, parsed_columns


def column(kind: str, *path: str) -> Column:
    return Column(name="c", type=kind, path=path or ("c",))


@pytest.mark.parametrize(
    ("kind", "given", "taken"),
    [
        ("string", "tea", "tea"),
        ("boolean", True, True),
        ("int", -(2**31), -(2**31)),
        ("bigint", 2**63 - 1, 2**63 - 1),
        ("double", 3, 3.0),
        ("double", 2.5, 2.5),
        ("timestamp", "2026-01-31T10:00:00.5+02:00", datetime(2026, 1, 31, 8, 0, 0, 500_000, tzinfo=UTC)),
        ("timestamp", "2026-01-31T10:00:00", datetime(2026, 1, 31, 10, tzinfo=UTC)),
        ("date", "2026-01-31", date(2026, 1, 31)),
        ("json", {"a": [1, "x"]}, '{"a": [1, "x"]}'),
        ("int", None, None),
        ("binary", "/w==", b"\xff"),
        ("decimal(4,2)", 12.5, Decimal("12.50")),
        ("decimal(4, 2)", "-12.50", Decimal("-12.50")),
        ("decimal(3,0)", 1e2, Decimal(100)),
        ("timestamp_s", 1_700_000_000, datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        ("timestamp_ms", -1, datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)),
        ("timestamp_us", 1, datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC)),
        ("array<int>", [1, None], [1, None]),
        ("map<string, array<date>>", {"a": ["2026-01-31"]}, {"a": [date(2026, 1, 31)]}),
        ("struct<a: int, b_2: struct<c: json>>", {"a": 1, "d": 2}, {"a": 1, "b_2": None}),
    ],
)
def test_a_field_becomes_a_value_of_its_column(kind: str, given: Any, taken: Any) -> None:
    assert parsed([column(kind)], json.dumps({"c": given}).encode()) == [taken]


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        ("string", b'{"c": 7}', "c is not a text: 7"),
        ("string", rb'{"c": "\ud800"}', "c is not a text"),
        ("boolean", b'{"c": 1}', "true or false: 1"),
        ("int", b'{"c": 2147483648}', "32 bits: 2147483648"),
        ("int", b'{"c": true}', "32 bits: true"),
        ("int", b'{"c": 1.5}', "32 bits: 1.5"),
        ("bigint", b'{"c": "7"}', '64 bits: "7"'),
        ("double", b'{"c": 1e999}', "a number"),
        ("double", b'{"c": NaN}', "no JSON: NaN"),
        ("timestamp", b'{"c": "yesterday"}', "ISO 8601"),
        ("timestamp", b'{"c": 1700000000}', "ISO 8601"),
        ("date", b'{"c": "2026-02-30"}', "a day"),
        ("binary", b'{"c": "/w="}', "base64"),
        ("decimal(4,2)", b'{"c": 100}', "c is not a number of 4 digits at most, 2 of them behind the point: 100"),
        ("decimal(4,2)", b'{"c": 0.001}', "behind the point: 0.001"),
        ("decimal(4,2)", b'{"c": "NaN"}', "behind the point"),
        ("decimal(4,2)", b'{"c": 1e999999999}', "behind the point"),
        ("timestamp_ms", b'{"c": 1000000000000000}', "milliseconds since 1970"),
        ("timestamp_s", b'{"c": 1.5}', "seconds since 1970"),
        ("array<int>", b'{"c": {}}', "c is not a list"),
        ("array<struct<a: int>>", b'{"c": [{}, {"a": "x"}]}', r'c\[1\]\.a is not an integer of 32 bits: "x"'),
        ("map<string, int>", b'{"c": {"k": 0.5}}', r"c\.k is not an integer of 32 bits: 0.5"),
        ("string", b"no json", "no JSON"),
        ("string", b"\xff\xfe\xfd", "no JSON"),
        ("string", b"[" * 100_000, "no JSON"),
        ("string", b"[1]", "no JSON object"),
        ("string", b"", "no JSON"),
    ],
)
def test_what_does_not_follow_the_schema_is_refused_with_what_would(kind: str, value: bytes, says: str) -> None:
    with pytest.raises(UnparsableError, match=says):
        parsed([column(kind)], value)


def test_fields_may_lie_within_objects_and_may_be_absent() -> None:
    city = column("string", "address", "city")
    assert parsed([city], b'{"address": {"city": "Porto"}}') == ["Porto"]
    assert parsed([city], b'{"address": null}') == [None]
    assert parsed([city], b"{}") == [None]
    with pytest.raises(UnparsableError, match="address is no JSON object"):
        parsed([city], b'{"address": "Porto"}')


def test_a_record_without_a_value_has_no_fields_and_no_fault() -> None:
    assert parsed_columns([column("int")], [None])[1] == [None]


def test_a_record_that_cannot_be_parsed_does_not_keep_the_others_from_it() -> None:
    (numbers,), errors = parsed_columns([column("int")], [b'{"c": 1}', b"poison", b'{"c": 3}'])
    assert numbers.to_pylist() == [1, None, 3]
    assert [error is None for error in errors] == [True, False, True]


@given(st.lists(st.binary(max_size=30) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["c", "d"]), inner, max_size=2),
    max_leaves=6,
).map(lambda document: json.dumps({"c": document}).encode()), max_size=6))  # fmt: skip
def test_whatever_comes_has_a_row_and_a_value_or_an_error(values: list[bytes]) -> None:
    kinds = [*TYPES, "decimal(5,2)", "array<int>", "map<string, json>", "struct<c: string, d: array<double>>"]
    columns = [column(kind) for kind in kinds] + [column("string", "c", "d")]
    arrays, errors = parsed_columns(columns, values)
    assert [len(array) for array in arrays] == [len(values)] * len(columns)
    assert len(errors) == len(values)


def test_a_value_that_can_just_be_parsed_and_not_be_written_as_text_is_one_that_does_not_follow_the_schema() -> None:
    refused = 0
    for kind in ("json", "int"):
        for depth in range(500, 1_100):
            try:
                parsed([Column("a", kind, ("a",))], b'{"a":' + b"[" * depth + b"]" * depth + b"}")
            except UnparsableError:
                refused += 1
    assert refused > 0


def test_the_type_of_a_column_may_be_made_of_others() -> None:
    kind = type_of("struct<when: timestamp_ms, lines: array<struct<price: decimal(9, 2)>>, more: map<string,int>>")
    assert kind.sql == (
        "STRUCT<`when`: TIMESTAMP, `lines`: ARRAY<STRUCT<`price`: DECIMAL(9, 2)>>, `more`: MAP<STRING, INT>>"
    )
    assert in_sql(in_arrow(kind)) == kind.sql.replace("`", "")
    assert kind.is_exact
    assert not type_of("array<double>").is_exact


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "'' is no type: it must be one of string, "),
        ("number", "'number' is no type"),
        ("array<number>", "'number' of 'array<number>' is no type"),
        ("array<int", "has no > where it must"),
        ("array<int>>", "goes on behind its end, with '>'"),
        ("map<int, int>", "'map' of 'map<int, int>' is no type"),
        ("struct<>", "names no field where it must"),
        ("struct<a int>", "names no field where it must"),
        ("struct<a: int, A: int>", "has the field A twice"),
        ("decimal(39, 0)", "1 to 38 digits"),
        ("decimal(2, 3)", "no more behind the point"),
        ("decimal", "'decimal' is no type"),
    ],
)
def test_what_is_no_type_is_refused_with_what_would_be_one(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        type_of(text)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3) | st.integers(), st.booleans())
def test_a_decimal_is_the_number_that_is_written_or_none(number: Decimal, as_text: bool) -> None:
    written = f'"{number}"' if as_text else str(number)
    try:
        (taken,) = parsed([column("decimal(9,2)")], f'{{"c": {written}}}'.encode())
    except UnparsableError:
        assert abs(number) >= 10**7 or number != round(Decimal(number), 2)
    else:
        assert taken == number
