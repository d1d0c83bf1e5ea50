"""The table of a topic: its columns, and a topic's records as rows of it."""

from collections.abc import Mapping, Sequence
from datetime import date

import pyarrow as pa

from consumer.decide.batch import Record
from consumer.decide.columns import OF_EVERY_RECORD, Column
from consumer.decide.layout import BY_DAY, Layout
from consumer.decide.location import in_sql, quoted
from consumer.decide.parsing import ARROW_TYPES, in_arrow, parsed_columns
from consumer.decide.reached import Reached

SCHEMA = pa.schema([(name, ARROW_TYPES[sql]) for name, sql in OF_EVERY_RECORD.items()])
"""The columns of every table; those of a topic's schema follow."""

COLUMNS = ", ".join(f"{name} {sql}" for name, sql in OF_EVERY_RECORD.items())
"""The same in SQL."""

_TOLD = ("partition", "offset", "timestamp")
"""The columns of which a table's log tells what ranges its files have."""

LATEST_MS = 253_402_300_799_999
"""The end of the year 9999: timestamps beyond it are no dates to most who read them."""


def columns_in_sql(columns: Sequence[Column]) -> str:
    """The columns of a table, those of a schema last."""
    return COLUMNS + "".join(f", `{quoted(column.name)}` {column.kind.sql}" for column in columns)


def creation(table: str, columns: Sequence[Column] = (), layout: Layout = BY_DAY) -> str:
    """The SQL statement that creates the table at this location where there is none.

    Statistics are kept of the columns that are asked for ranges, or that rows are clustered by, not of keys and values.
    A checkpoint of the log takes as long as some appends, and longer the more files a table has: one in 50 commits, not
    in 10, keeps cycles even.
    """
    told = [*_TOLD, *(f"`{quoted(name)}`" for name in layout.cluster_by if name.lower() not in _TOLD)]
    told_of = ",".join(told).replace("\\", "\\\\").replace("'", "\\'")
    return (
        f"CREATE TABLE IF NOT EXISTS {in_sql(table)} ({columns_in_sql(columns)}) USING DELTA {layout.sql} "
        f"TBLPROPERTIES ('delta.dataSkippingStatsColumns' = '{told_of}', 'delta.checkpointInterval' = '50')"
    )


def rows(records: Sequence[Record], ingest_date: date, columns: Sequence[Column] = ()) -> pa.Table:
    """Records of one topic as rows of its table, with the columns of the topic's schema."""
    count = len(records)
    arrays, errors = parsed_columns(columns, [record.value for record in records]) if columns else ([], [None] * count)
    moments = [_moment(record) for record in records]
    for place, (record, moment) in enumerate(zip(records, moments, strict=True)):
        if moment != record.timestamp_ms or record.amiss is not None:
            of_time = f"its timestamp is none: {record.timestamp_ms} ms" if moment != record.timestamp_ms else None
            errors[place] = "; ".join(filter(None, (errors[place], of_time, record.amiss)))
    kept = [
        pa.array([record.partition.topic for record in records], pa.string()),
        pa.array([record.partition.partition for record in records], pa.int32()),
        pa.array([record.offset for record in records], pa.int64()),
        pa.array(moments, pa.timestamp("ms", tz="UTC")).cast(SCHEMA.types[3]),
        pa.array([record.key for record in records], pa.binary()),
        pa.array([record.value for record in records], pa.binary()),
        pa.array([_headers(record) for record in records], SCHEMA.types[6]),
        pa.repeat(pa.scalar(ingest_date, pa.date32()), count),
        pa.array(errors, pa.string()),
    ]
    fields = [*SCHEMA, *(pa.field(column.name, in_arrow(column.kind)) for column in columns)]
    return pa.Table.from_arrays([*kept, *arrays], schema=pa.schema(fields))


def last_rows(rows: pa.Table, epochs: Mapping[int, int]) -> dict[int, Reached]:
    """The last row of each partition of the topic whose rows these are.

    Args:
        rows: of one topic.
        epochs: of the leaders that took those, by partition, as far as they are known.
    """
    last = rows.group_by("partition").aggregate([("offset", "max")])
    offsets = zip(last["partition"].to_pylist(), last["offset_max"].to_pylist(), strict=True)
    return {number: Reached(offset, epochs.get(number)) for number, offset in offsets}


def _moment(record: Record) -> int | None:
    """The record's timestamp, unless it is none: producers may set any number."""
    timestamp_ms = record.timestamp_ms
    return None if timestamp_ms is None or not 0 <= timestamp_ms <= LATEST_MS else timestamp_ms


def _headers(record: Record) -> list[dict[str, str | bytes | None]] | None:
    return [{"key": key, "value": value} for key, value in record.headers] or None
