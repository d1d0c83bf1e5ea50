"""Brings dead letters to the tables that refused them, once these are mended.

The records that are replayed together are marked by one commit to the dead letters, with a name that no other replay
has. Under that name they are appended to the topic's table, which takes a name once, and by that name they are deleted
from the dead letters. Whatever is interrupted is gone on with by the next replay, with the same records under the same
name: each is in the table once. An append says nothing in the table's log of how far it goes: it is behind what
consumers have appended.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from consumer.decide.batch import Record
from consumer.decide.columns import NO_SCHEMAS, Column
from consumer.decide.layout import AS_EVER, Layouts
from consumer.decide.location import NO_NAMES, in_sql
from consumer.decide.location import dead_letters as location_of
from consumer.decoding import Decoding
from consumer.lake import Lake
from consumer.session import NO_CONF, rows_of, session_for, unless_missing
from consumer.table import rows
from domain.partitions import TopicPartition

MARK = "replay"
"""The column of the dead letters that has the name of the replay."""
AT_ONCE = 1_000
"""So many records are replayed together, at most."""


def replay(
    spark: str,
    lake_root: str,
    topic: str,
    *,
    tables: Mapping[str, str] = NO_NAMES,
    columns: Mapping[str, Sequence[Column]] = NO_SCHEMAS,
    conf: Mapping[str, str] = NO_CONF,
    decoding: Decoding | None = None,
    layouts: Layouts = AS_EVER,
    step: Callable[[str], None] = lambda _: None,
) -> int:
    """Brings all dead letters of the topic to its table, and returns how many those were.

    Args:
        spark: `sc://host:port` of a Spark Connect server, or a master.
        lake_root: the folder of all tables.
        topic: whose table is mended.
        tables: where those of some topics are.
        columns: of the topics that have a schema.
        conf: Spark's settings, for a session of this process.
        decoding: makes columns of values that have their schemas in a registry.
        layouts: of tables that are to be created.
        step: is told of each step before it is taken.

    Raises:
        RefusedError: the table refuses a record still; none of the batch that it is in is there.
        RegistryError: a schema registry does not answer; as below.
        LakeError: Spark does not answer, or the table takes nothing; the same call again goes on.
    """
    letters, replayed = location_of(lake_root), 0
    with session_for(spark, letters, conf) as session, unless_missing():
        _make_markable(session, letters)
        while (name := _marked(session, letters, topic)) is not None:
            step("append")
            held = rows_of(session, letters).where(f"{MARK} = '{name}'")
            found = held.orderBy("partition", "offset").toArrow()
            records = [_record(row) for row in found.to_pylist()]
            batch = rows(records, datetime.now(UTC).date(), columns.get(topic, ()))
            lake = Lake([spark], lake_root, f"{MARK}/{name}", tables, columns, conf, layouts)
            lake.connect()
            try:
                lake.bring(topic, batch if decoding is None else decoding.decoded(topic, batch, lake.columns))
            finally:
                lake.close()
            step("delete")
            session.sql(f"DELETE FROM {in_sql(letters)} WHERE {MARK} = '{name}'").collect()  # noqa: S608
            replayed += len(records)
    return replayed


def _make_markable(session: SparkSession, letters: str) -> None:
    if MARK not in rows_of(session, letters).columns:
        session.sql(f"ALTER TABLE {in_sql(letters)} ADD COLUMNS ({MARK} STRING)")


def _marked(session: SparkSession, letters: str, topic: str) -> str | None:
    """The name of a replay that was not finished; or else a new one, of the first records; none if there are none."""
    everything = rows_of(session, letters)
    held = everything.where(everything.topic == topic)
    unfinished = held.where(held[MARK].isNotNull()).select(MARK).limit(1).collect()
    if unfinished:
        return str(unfinished[0][0])
    first = held.orderBy("partition", "offset").select("partition", "offset").limit(AT_ONCE).collect()
    if not first:
        return None
    partition, name = first[0][0], uuid4().hex
    last = max(row[1] for row in first if row[0] == partition)
    there = f"topic = '{topic}' AND partition = {partition} AND offset <= {last}"  # a topic of Kafka's has no quotes
    session.sql(f"UPDATE {in_sql(letters)} SET {MARK} = '{name}' WHERE {there}").collect()  # noqa: S608
    return name


def _record(row: Mapping[str, Any]) -> Record:
    moment = row["timestamp"]
    return Record(
        partition=TopicPartition(row["topic"], row["partition"]),
        offset=row["offset"],
        timestamp_ms=None if moment is None else round(1000 * moment.timestamp()),
        key=row["key"],
        value=row["value"],
        headers=tuple((each["key"], each["value"]) for each in row["headers"] or ()),
        amiss=row["error"],
    )
