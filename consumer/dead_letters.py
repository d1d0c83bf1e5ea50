"""Reads the records that tables refused, as they lie beside the tables."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from consumer.decide.location import dead_letters as location_of
from consumer.session import NO_CONF, rows_of, session_for, unless_missing


class DeadLetter(NamedTuple):
    """A record that the table of its topic refused."""

    topic: str
    partition: int
    offset: int
    timestamp: datetime | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[Mapping[str, str | bytes | None]] | None
    """Each with `key` and `value`."""
    reason: str
    """In Spark's words."""


def dead_letters(
    spark: str, lake_root: str, topics: Iterable[str], most: int, conf: Mapping[str, str] = NO_CONF
) -> list[DeadLetter]:
    """Of the dead letters of `topics` the first `most`, by topic, partition and offset.

    Args:
        spark: `sc://host:port` of a Spark Connect server, or a master.
        lake_root: the folder of all tables.
        topics: which.
        most: of all topics together.
        conf: Spark's settings, for a session of this process.

    Raises:
        LakeError: Spark does not answer.
    """
    table = location_of(lake_root)
    with session_for(spark, table, conf) as session, unless_missing():
        held = rows_of(session, table)
        found = held.where(held.topic.isin(*topics)).orderBy("topic", "partition", "offset").limit(most)
        return [DeadLetter(**row) for row in found.select(*DeadLetter._fields).toArrow().to_pylist()]
    return []
