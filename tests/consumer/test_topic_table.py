import re
from datetime import UTC, date, datetime

from hypothesis import given
from hypothesis import strategies as st

from consumer.decide.batch import Record
from consumer.decide.columns import Column
from consumer.decide.location import dead_letters, in_sql, is_name, location
from consumer.table import LATEST_MS, SCHEMA, creation, rows
from domain.partitions import TopicPartition

topic_names = st.text("abcXYZ019._-", min_size=1, max_size=20).filter(lambda name: name not in {".", ".."})
"""What Kafka accepts as the name of a topic."""


def test_a_table_lies_under_the_root_by_its_topics_name() -> None:
    assert location("gs://bucket/lake", "monitor.writeSpeed") == "gs://bucket/lake/monitor.writeSpeed"
    assert location("/", "data") == "/data"


@given(topic_names)
def test_no_table_is_hidden_from_hadoop(topic: str) -> None:
    assert location("/lake", topic).removeprefix("/lake/")[0] not in "_."


@given(st.lists(topic_names, unique=True))
def test_no_two_topics_share_a_table(topics: list[str]) -> None:
    assert len({location("/lake", topic) for topic in topics}) == len(topics)


@given(st.lists(topic_names, unique=True))
def test_no_two_topics_share_a_name_in_a_catalog(topics: list[str]) -> None:
    names = [location("main.lake", topic).removeprefix("main.lake.") for topic in topics]
    assert len({name.lower() for name in names}) == len(topics)
    assert all(re.fullmatch("[a-z0-9_]+", name) and is_name(f"main.lake.{name}") for name in names)


def test_a_topic_that_catalogs_take_as_a_name_is_one() -> None:
    assert location("main.lake", "orders_2026") == "main.lake.orders_2026"
    assert location("main.lake", "Orders").startswith("main.lake.orders_")
    assert dead_letters("main.lake") == "main.lake._dead_letters"
    assert in_sql("main.data-lake.orders") == "`main`.`data-lake`.`orders`"


def test_a_location_cannot_break_out_of_its_quotes() -> None:
    assert "delta.`/odd``root/data`" in creation("/odd`root/data")


def test_records_become_rows_with_everything_that_kafka_knows_of_them() -> None:
    partition = TopicPartition("data", 3)
    table = rows(
        [
            Record(partition, 7, 1_700_000_000_123, b"k", b"\xff\x00", (("h", b"1"), ("h", None))),
            Record(partition, 9, None, None, None, ()),
        ],
        ingest_date=date(2026, 1, 31),
    )
    assert table.schema == SCHEMA
    assert table.to_pylist() == [
        {
            "topic": "data",
            "partition": 3,
            "offset": 7,
            "timestamp": datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC),
            "key": b"k",
            "value": b"\xff\x00",
            "headers": [{"key": "h", "value": b"1"}, {"key": "h", "value": None}],
            "ingest_date": date(2026, 1, 31),
            "error": None,
        },
        {
            "topic": "data",
            "partition": 3,
            "offset": 9,
            "timestamp": None,
            "key": None,
            "value": None,
            "headers": None,
            "ingest_date": date(2026, 1, 31),
            "error": None,
        },
    ]


def test_a_schema_adds_columns_and_what_does_not_follow_it_is_kept_with_its_error() -> None:
    partition = TopicPartition("orders", 0)
    columns = (Column("amount", "double", ("amount",)),)
    table = rows(
        [
            Record(partition, 0, None, None, b'{"amount": 2}', ()),
            Record(partition, 1, None, None, b"poison", ()),
            Record(partition, 2, None, None, None, ()),
        ],
        date(2026, 1, 31),
        columns,
    )
    assert table.schema.names == [*SCHEMA.names, "amount"]
    assert table["amount"].to_pylist() == [2.0, None, None]
    assert table["value"].to_pylist() == [b'{"amount": 2}', b"poison", None]
    assert [error is None for error in table["error"].to_pylist()] == [True, False, True]
    assert "error STRING, `amount` DOUBLE" in creation("/lake/orders", columns)


def test_what_of_a_record_could_not_be_read_is_said_with_what_else_is_amiss() -> None:
    partition = TopicPartition("data", 0)
    records = [Record(partition, number, at, None, b"x", (), "no headers") for number, at in enumerate((1, -2))]
    assert rows(records, date(2026, 1, 31))["error"].to_pylist() == [
        "no headers",
        "its timestamp is none: -2 ms; no headers",
    ]


def test_a_timestamp_that_is_none_is_said_and_does_not_keep_the_record_out() -> None:
    partition = TopicPartition("data", 0)
    moments = (LATEST_MS, LATEST_MS + 1, 2**63 - 1, -2)
    table = rows([Record(partition, 0, moment, None, b"x", ()) for moment in moments], date(2026, 1, 31))
    assert table["timestamp"].null_count == 3
    assert table["error"].to_pylist()[:2] == [None, f"its timestamp is none: {LATEST_MS + 1} ms"]
