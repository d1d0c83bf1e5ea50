"""Protobuf: any schema and its messages as columns, and what is none of them."""

from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import given
from hypothesis import strategies as st

from consumer.decide.evolution import in_sql
from consumer.decide.protobuf import MessageTypes
from consumer.decide.reader import Reader, Referred, UnreadableError
from tests.consumer.protobuf_records import as_registered, class_of, file, message

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
Kind = tuple[Any, str, st.SearchStrategy[Any]]
"""The type of a field, in SQL, and its values in Python."""

PLAIN: list[Kind] = [
    (Proto.TYPE_DOUBLE, "DOUBLE", st.floats(allow_nan=False)),
    (Proto.TYPE_FLOAT, "FLOAT", st.floats(width=32, allow_nan=False)),
    (Proto.TYPE_INT32, "INT", st.integers(-(2**31), 2**31 - 1)),
    (Proto.TYPE_SINT64, "BIGINT", st.integers(-(2**63), 2**63 - 1)),
    (Proto.TYPE_FIXED32, "BIGINT", st.integers(0, 2**32 - 1)),
    (Proto.TYPE_UINT64, "DECIMAL(20, 0)", st.integers(0, 2**64 - 1)),
    (Proto.TYPE_BOOL, "BOOLEAN", st.booleans()),
    (Proto.TYPE_STRING, "STRING", TEXTS),
    (Proto.TYPE_BYTES, "BINARY", st.binary(max_size=5)),
]
KEYS = [kind for kind in PLAIN if kind[1] not in ("DOUBLE", "FLOAT", "BINARY")]


def lists(kind: Kind) -> Kind:
    return [kind[0]], f"ARRAY<{kind[1]}>", st.lists(kind[2], max_size=3)


def maps(key: Kind, item: Kind) -> Kind:
    return {key[0]: item[0]}, f"MAP<{key[1]}, {item[1]}>", st.dictionaries(key[2], item[2], max_size=3)


plain = st.sampled_from(PLAIN)
kinds = plain | plain.map(lists) | st.builds(maps, st.sampled_from(KEYS), plain)


def reader_of(described: FileDescriptorProto, path: bytes = b"\x00", *references: Referred) -> Reader:
    return MessageTypes(as_registered(described), references).of(path)[1]


@given(st.data(), st.lists(kinds, min_size=1, max_size=5))
def test_any_schema_becomes_columns_that_hold_its_values(data: st.DataObject, chosen: list[Kind]) -> None:
    described = file(message("Value", **{f"f{place}": kind for place, (kind, _, _) in enumerate(chosen)}))
    reader = reader_of(described)
    assert [in_sql(field.type) for field in reader.fields] == [sql for _, sql, _ in chosen]
    drawn = {f"f{place}": data.draw(values) for place, (_, _, values) in enumerate(chosen)}
    encoded = class_of(described, "shop.Value")(**drawn).SerializeToString()
    (row,) = pa.array([reader.read(encoded)], pa.struct(reader.fields)).to_pylist()
    expected = {name: sorted(each.items()) if isinstance(each, dict) else each for name, each in drawn.items()}
    assert row == expected


def shop() -> FileDescriptorProto:
    described = file(
        message("Other", amount=Proto.TYPE_INT32),
        message(
            "Order",
            kind=".shop.Kind",
            lines=[".shop.Order.Line"],
            next=".shop.Order",
            at=".google.protobuf.Timestamp",
            took=".google.protobuf.Duration",
            rest=".google.protobuf.Struct",
            nothing=".google.protobuf.Empty",
            maybe=".google.protobuf.Int32Value",
            names={Proto.TYPE_STRING: ".shop.Other"},
        ),
    )
    described.message_type[1].nested_type.append(message("Line", sku=Proto.TYPE_STRING))
    kind = described.enum_type.add(name="Kind")
    for number, name in enumerate(("UNKNOWN", "SALE")):
        kind.value.add(name=name, number=number)
    return described


def test_messages_enumerations_and_well_known_types_have_columns_of_their_own() -> None:
    reader = reader_of(shop(), b"\x02\x02")
    assert {field.name: in_sql(field.type) for field in reader.fields} == {
        "kind": "STRING",
        "lines": "ARRAY<STRUCT<sku: STRING>>",
        "next": "STRING",
        "at": "TIMESTAMP",
        "took": "STRING",
        "rest": "STRING",
        "nothing": "STRING",
        "maybe": "INT",
        "names": "MAP<STRING, STRUCT<amount: INT>>",
    }
    order = class_of(shop(), "shop.Order")
    assert reader.read(order().SerializeToString()) == {
        "kind": "UNKNOWN",
        **dict.fromkeys(("next", "at", "took", "rest", "nothing", "maybe")),
        "lines": [],
        "names": [],
    }
    full = order(kind=1, lines=[{"sku": "a"}], next={"kind": 1}, maybe={"value": 0}, names={"n": {"amount": 7}})
    full.at.FromDatetime(datetime(2026, 1, 31, microsecond=5))
    full.took.FromMilliseconds(1_500)
    full.rest.update({"a": [1, None]})
    full.nothing.SetInParent()
    assert reader.read(full.SerializeToString()) == {
        "kind": "SALE",
        "lines": [{"sku": "a"}],
        "next": '{"kind": "SALE"}',
        "at": datetime(2026, 1, 31, microsecond=5, tzinfo=UTC),
        "took": '"1.500s"',
        "rest": '{"a": [1.0, null]}',
        "nothing": "{}",
        "maybe": 0,
        "names": [("n", {"amount": 7})],
    }
    assert reader.read(b"\x08\x63")["kind"] == "99", "a newer one than the schema knows"


def test_a_value_says_which_message_type_it_is_of() -> None:
    types = MessageTypes(as_registered(shop()))
    found = [types.of(value) for value in (b"\x00abc", b"\x02\x00abc", b"\x02\x02abc", b"\x04\x02\x00abc")]
    assert [(name, len(reader.fields), rest) for name, reader, rest in found] == [
        ("0", 1, b"abc"),
        ("0", 1, b"abc"),
        ("1", 9, b"abc"),
        ("1.0", 1, b"abc"),
    ]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (b"", "ends before it says which message type"),
        (b"\x80" * 20, "ends before it says which message type"),
        (b"\x04\x00", "ends before"),
        (b"\x02\x08", "no message type at 4"),
        (b"\x02\x01", "the place of a message type is -1"),
        (b"\x01", "named by -1 numbers"),
        (b"\xfe\xff\xff\xff\x0f", "named by 2147483647 numbers"),
    ],
)
def test_what_is_of_no_message_type_is_refused(value: bytes, says: str) -> None:
    with pytest.raises(UnreadableError, match=says):
        MessageTypes(as_registered(shop())).of(value)


def test_a_schema_may_import_others() -> None:
    item = file(message("Item", number=Proto.TYPE_UINT64))
    item.name = "item.proto"
    order = file(message("Order", item=".shop.Item"), imports=("item.proto",))
    reader = reader_of(order, b"\x00", Referred("item.proto", as_registered(item)))
    encoded = class_of(order, "shop.Order", item)(item={"number": 2**64 - 1}).SerializeToString()
    assert pa.array([reader.read(encoded)], pa.struct(reader.fields)).to_pylist() == [
        {"item": {"number": Decimal(2**64 - 1)}}
    ]
    with pytest.raises(UnreadableError, match="no file of Protobuf"):
        reader_of(order)


@pytest.mark.parametrize(
    "schema", ["", "syntax = 'proto3';", "////", as_registered(FileDescriptorProto())[:-4] + "AAAA"]
)
def test_what_describes_no_file_is_refused(schema: str) -> None:
    with pytest.raises(UnreadableError):
        MessageTypes(schema).of(b"\x00")


@given(st.binary(max_size=40))
def test_no_bytes_do_more_than_raise(value: bytes) -> None:
    types = MessageTypes(as_registered(shop()))
    with suppress(Exception):
        _, reader, rest = types.of(value)
        reader.read(rest)
