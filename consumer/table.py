"""The table of a topic: its columns, and a topic's records as rows of it."""

from collections.abc import Sequence
from datetime import date

import pyarrow as pa

from consumer.batch import Record
from consumer.location import quoted

SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("ingest_date", pa.date32()),
        ("error", pa.string()),
    ]
)
"""The columns of every table. `error` says why a record could not be parsed; null where nothing was amiss."""

COLUMNS = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>, ingest_date DATE, error STRING"
)
"""The same in SQL."""


def creation(table: str) -> str:
    """The SQL statement that creates the table at this location where there is none.

    Statistics are kept of the columns that are asked for ranges, not of keys and values.
    """
    return (
        f"CREATE TABLE IF NOT EXISTS delta.`{quoted(table)}` ({COLUMNS}) USING DELTA PARTITIONED BY (ingest_date) "
        "TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'partition,offset,timestamp')"
    )


def rows(records: Sequence[Record], ingest_date: date) -> pa.Table:
    """Records of one topic as rows of its table."""
    count = len(records)
    columns = [
        pa.array([record.partition.topic for record in records], pa.string()),
        pa.array([record.partition.partition for record in records], pa.int32()),
        pa.array([record.offset for record in records], pa.int64()),
        pa.array([record.timestamp_ms for record in records], pa.timestamp("ms", tz="UTC")).cast(SCHEMA.types[3]),
        pa.array([record.key for record in records], pa.binary()),
        pa.array([record.value for record in records], pa.binary()),
        pa.array([_headers(record) for record in records], SCHEMA.types[6]),
        pa.repeat(pa.scalar(ingest_date, pa.date32()), count),
        pa.nulls(count, pa.string()),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _headers(record: Record) -> list[dict[str, str | bytes | None]] | None:
    return [{"key": key, "value": value} for key, value in record.headers] or None
