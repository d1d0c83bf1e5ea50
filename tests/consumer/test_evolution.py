import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from consumer.decide.columns import OF_EVERY_RECORD
from consumer.decide.evolution import (
    IncompatibleError,
    column_of,
    columns_of,
    field_of,
    merged,
    of_fields,
    too_narrow,
)

INT, BIGINT, FLOAT, DOUBLE, STRING = pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string()

plain = st.sampled_from([INT, BIGINT, FLOAT, DOUBLE, STRING, pa.binary(), pa.date32()]) | st.builds(
    lambda whole, scale: pa.decimal128(whole + scale, scale), st.integers(1, 25), st.integers(0, 12)
)


def structs(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(
        lambda fields: pa.struct(list(fields.items()))
    )


kinds = st.recursive(
    plain, lambda inner: structs(inner) | inner.map(pa.list_) | inner.map(lambda kind: pa.map_(STRING, kind))
)


@pytest.mark.parametrize(
    ("there", "new", "both"),
    [
        (INT, BIGINT, BIGINT),
        (DOUBLE, FLOAT, DOUBLE),
        (INT, DOUBLE, DOUBLE),
        (pa.decimal128(5, 2), pa.decimal128(7, 4), pa.decimal128(7, 4)),
        (pa.decimal128(5, 2), INT, pa.decimal128(12, 2)),
        (pa.list_(INT), pa.list_(BIGINT), pa.list_(BIGINT)),
        (pa.map_(STRING, INT), pa.map_(STRING, BIGINT), pa.map_(STRING, BIGINT)),
        (pa.struct([("a", INT)]), pa.struct([("b", STRING), ("a", BIGINT)]), pa.struct([("a", BIGINT), ("b", STRING)])),
    ],
)
def test_the_wider_type_takes_the_values_of_both(there: pa.DataType, new: pa.DataType, both: pa.DataType) -> None:
    assert merged(there, new) == both


@pytest.mark.parametrize(
    ("there", "new", "says"),
    [
        (INT, STRING, r"order\.a is STRING, and was INT"),
        (BIGINT, DOUBLE, r"order\.a is DOUBLE, and was BIGINT"),
        (pa.decimal128(38, 0), pa.decimal128(38, 1), r"DECIMAL\(38, 1\), and was DECIMAL\(38, 0\)"),
        (pa.list_(INT), pa.list_(STRING), r"order\.a\[\] is STRING, and was INT"),
        (pa.list_(INT), pa.struct([("b", INT)]), r"a is STRUCT<b: INT>, and was ARRAY<INT>"),
        (pa.struct([("b", INT)]), pa.struct([("b", STRING)]), r"order\.a\.b is STRING, and was INT"),
        (pa.struct([("b", INT)]), pa.struct([("B", INT)]), r"order\.a\.b and order\.a\.B would be the same column"),
    ],
)
def test_what_no_type_takes_is_named_with_both(there: pa.DataType, new: pa.DataType, says: str) -> None:
    with pytest.raises(IncompatibleError, match=says):
        merged(*(pa.struct([("order", pa.struct([("a", kind)]))]) for kind in (there, new)))


@example(pa.list_(pa.struct([("a", INT)])), pa.list_(pa.struct([("b", INT)])))
@given(kinds, kinds)
def test_what_takes_both_takes_each_of_them_and_is_the_same_whoever_comes_first(
    one: pa.DataType, other: pa.DataType
) -> None:
    try:
        both = merged(one, other)
    except IncompatibleError:
        with pytest.raises(IncompatibleError):
            merged(other, one)
        return
    assert merged(both, one) == merged(both, other) == both
    assert _sorted(merged(other, one)) == _sorted(both)
    assert merged(one, one) == one


def _sorted(kind: pa.DataType) -> pa.DataType:
    """With the fields of each struct in the order of their names."""
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _sorted(field.type)) for field in sorted(kind, key=lambda field: field.name)])
    if pa.types.is_list(kind):
        return pa.list_(_sorted(kind.value_type))
    return pa.map_(kind.key_type, _sorted(kind.item_type)) if pa.types.is_map(kind) else kind


def test_a_schema_has_its_own_columns_as_wide_as_those_that_are_there() -> None:
    there = pa.struct([("mine", STRING), ("a", BIGINT)])
    assert of_fields(pa.struct([("a", INT), ("b", INT)]), there) == pa.struct([("a", BIGINT), ("b", INT)])


def test_columns_that_are_too_narrow_are_named_and_others_not() -> None:
    there = pa.struct(
        [("A", INT), ("b", pa.struct([("c", pa.list_(FLOAT))])), ("m", pa.map_(STRING, INT)), ("d", DOUBLE)]
    )
    new = pa.struct(
        [
            ("a", BIGINT),
            ("b", pa.struct([("new", INT), ("c", pa.list_(DOUBLE))])),
            ("m", pa.map_(STRING, BIGINT)),
            ("d", INT),
            ("more", STRING),
        ]
    )
    assert list(too_narrow(there, new)) == [
        "a is BIGINT, and was INT",
        "b.c[] is DOUBLE, and was FLOAT",
        "m[] is BIGINT, and was INT",
    ]
    with pytest.raises(IncompatibleError, match="a is STRING, and was INT"):
        list(too_narrow(there, pa.struct([("a", STRING)])))


@given(kinds, kinds)
def test_what_takes_both_has_room_for_each(one: pa.DataType, other: pa.DataType) -> None:
    try:
        both = merged(one, other)
    except IncompatibleError:
        return
    assert list(too_narrow(both, one)) == list(too_narrow(both, other)) == []


def test_a_field_that_is_called_like_a_column_of_every_record_is_told_apart() -> None:
    assert columns_of([pa.field("Timestamp", INT), pa.field("a", INT)]) == pa.struct([("Timestamp_", INT), ("a", INT)])
    with pytest.raises(IncompatibleError, match="timestamp_ and timestamp_ would be the same"):
        columns_of([pa.field("timestamp", INT), pa.field("timestamp_", INT)])
    with pytest.raises(IncompatibleError, match="'a b' cannot be the name of a column"):
        columns_of([pa.field("x", pa.list_(pa.struct([("a b", INT)])))])


@given(st.sampled_from([*OF_EVERY_RECORD, "a", "a_", "timestamp__"]))
def test_which_field_a_column_has_is_told_by_its_name(field: str) -> None:
    assert field_of(column_of(field)) == field
