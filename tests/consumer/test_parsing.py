import json
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.decide.columns import TYPES, Column
from consumer.decide.parsing import UnparsableError, parsed, parsed_columns


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
    columns = [column(kind) for kind in TYPES] + [column("string", "c", "d")]
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
