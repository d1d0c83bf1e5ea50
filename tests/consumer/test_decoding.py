"""Rows that get the columns of their values, and what is refused of them."""

from collections.abc import Callable, Iterator
from datetime import date

import pyarrow as pa
import pytest

from consumer.decide.batch import Record
from consumer.decide.columns import Column
from consumer.decoding import Decoding, DecodingSink
from consumer.registry import Registry
from consumer.sink import RefusedError, RegistryError, SinkError, TableError
from consumer.table import SCHEMA, rows
from domain.partitions import TopicPartition
from tests.consumer.avro_records import encoded, record
from tests.schema_registry import SchemaRegistry, framed, schema_registry

OLD, NEW = record(key="int", amount="int"), record(amount="long", user="string")


@pytest.fixture
def server() -> Iterator[SchemaRegistry]:
    with schema_registry() as server:
        server.add(OLD)
        server.add(NEW)
        server.add(record(amount="string"))
        yield server


@pytest.fixture
def decoding(server: SchemaRegistry) -> Decoding:
    return Decoding(Registry(server.url, {}), {"data"}, {"plain"})


def there(*columns: tuple[str, pa.DataType]) -> Callable[[str], pa.StructType]:
    return lambda _: pa.struct(columns)


def batch(*values: bytes | None, topic: str = "data", columns: tuple[Column, ...] = ()) -> pa.Table:
    partition = TopicPartition(topic, 0)
    records = [Record(partition, offset, 1, b"k", value, ()) for offset, value in enumerate(values)]
    return rows(records, date(2026, 1, 31), columns)


OLD_VALUE = framed(1, encoded(OLD, {"key": 3, "amount": 5}))
NEW_VALUE = framed(2, encoded(NEW, {"amount": 2**40, "user": "me"}))


def test_values_of_several_schemas_share_columns_in_their_own_order(decoding: Decoding) -> None:
    table = decoding.decoded("data", batch(NEW_VALUE, OLD_VALUE, None), there())
    assert table.select(SCHEMA.names).equals(batch(NEW_VALUE, OLD_VALUE, None))
    assert table.drop_columns(SCHEMA.names).to_pylist() == [
        {"amount": 2**40, "user": "me", "key_": None},
        {"amount": 5, "user": None, "key_": 3},
        {"amount": None, "user": None, "key_": None},
    ]


def test_columns_are_as_wide_as_those_that_are_there_and_others_are_left_alone(decoding: Decoding) -> None:
    table = decoding.decoded("data", batch(OLD_VALUE), there(("amount", pa.float64()), ("mine", pa.string())))
    assert table.schema.names == [*SCHEMA.names, "key_", "amount"]
    assert table["amount"].to_pylist() == [5.0]
    assert decoding.decoded("data", batch(None), there()).equals(batch(None))
    assert decoding.decoded("other", batch(b"any"), there()).equals(batch(b"any"))


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (b"{}", "not in the format of a schema registry"),
        (framed(1, b"\x02"), "does not follow schema 1: "),
        (framed(2, b"\x02\x02a\x00"), "does not follow schema 2: ValueError: 1 bytes are left over"),
        (framed(3, b"\x02a"), "schema 3: amount is STRING, and was INT"),
        (framed(1, b"\x00\x80\x80\x80\x80\x80\x01"), "no place in its columns: amount is not INT: "),
    ],
)
def test_a_value_that_cannot_be_a_row_is_refused_with_the_reason(decoding: Decoding, value: bytes, says: str) -> None:
    with pytest.raises(RefusedError, match=says) as told:
        decoding.decoded("data", batch(OLD_VALUE, value, OLD_VALUE), there(("amount", pa.int32())))
    assert told.value.place == 1


def test_a_value_is_left_out_where_its_columns_hold_it(decoding: Decoding) -> None:
    columns = (Column("amount", "int", ("amount",)),)
    whole = batch(b'{"amount": 5}', b'{"amount": "no"}', b"none", topic="plain", columns=columns)
    table = decoding.decoded("plain", whole, there())
    assert table["value"].to_pylist() == [None, b'{"amount": "no"}', b"none"]
    assert table["amount"].to_pylist() == [5, None, None]
    assert table.schema == whole.schema


class ATable:
    """A sink whose columns others change, and that takes an append only where it fits them."""

    def __init__(self) -> None:
        self.amount: pa.DataType = pa.int32()
        self.takes_nothing = False
        self.refused = 0
        self.rows: list[pa.Table] = []

    def columns(self, _: str) -> pa.StructType:
        return pa.struct([("amount", self.amount)])

    def append(self, _topic: str, _version: int, rows: pa.Table, _epochs: object) -> None:
        if self.takes_nothing or rows.schema.field("amount").type != self.amount:
            self.refused += 1
            raise TableError("another type")
        self.rows.append(rows)

    def nothing(self, *_: object) -> None: ...

    connect = set_aside = seal = last_appended = last_set_aside = last_offsets = close = nothing


@pytest.mark.parametrize("wider", [pa.int64(), pa.float64()])
def test_columns_that_another_has_made_wider_are_no_refusal(decoding: Decoding, wider: pa.DataType) -> None:
    table = ATable()
    sink = DecodingSink(table, decoding)  # type: ignore[arg-type]
    sink.append("data", 1, batch(OLD_VALUE))
    table.amount = wider
    sink.append("data", 2, batch(OLD_VALUE))
    assert [rows.schema.field("amount").type for rows in table.rows] == [pa.int32(), wider]


def test_what_a_table_refuses_with_the_columns_that_it_has_is_refused(decoding: Decoding) -> None:
    table = ATable()
    sink = DecodingSink(table, decoding)  # type: ignore[arg-type]
    table.takes_nothing = True
    for _ in range(2):
        with pytest.raises(TableError):
            sink.append("data", 1, batch(OLD_VALUE))
    assert table.refused == 2, "once each, for there was nothing to do otherwise"
    table.takes_nothing, table.amount = False, pa.string()
    with pytest.raises(RefusedError, match="amount is INT, and was STRING"):
        sink.append("data", 1, batch(OLD_VALUE))
    assert table.rows == []


def test_where_the_registry_does_not_answer_the_sink_is_asked_nothing(
    server: SchemaRegistry, decoding: Decoding
) -> None:
    table, server.answer = ATable(), (503, b"later")
    sink = DecodingSink(table, decoding)  # type: ignore[arg-type]
    with pytest.raises(RegistryError) as told:
        sink.append("data", 1, batch(OLD_VALUE))
    assert not isinstance(told.value, SinkError), "so that it is known that nothing came of it"
    assert table.rows == []
