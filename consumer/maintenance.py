"""Keeps the tables of the lake quick to read: many small files into few, and files that no table needs any more away.

Both may run while consumers write: neither is in an append's way, nor changes what positions are found.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from consumer.decide.location import quoted
from consumer.session import NO_CONF, session_for, unless_missing

SHORTEST_RETENTION_H = 168
"""Delta Lake's own: a file that a reader or a write under way still needs is younger."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """What became of the files of a table."""

    files_before: int
    files_after: int


def optimize(spark: str, table: str, conf: Mapping[str, str] = NO_CONF) -> Compaction | None:
    """Rewrites the small files of the table at this location as few large ones; none if there is no table.

    Raises:
        LakeError: Spark does not answer, or cannot.
    """
    with session_for(spark, table, conf) as session, unless_missing():
        before = _files(session, table)
        session.sql(f"OPTIMIZE delta.`{quoted(table)}`").collect()
        return Compaction(before, _files(session, table))
    return None


def vacuum(spark: str, table: str, retain_h: int = SHORTEST_RETENTION_H, conf: Mapping[str, str] = NO_CONF) -> bool:
    """Deletes files that the table at this location has not needed for so many hours; whether there is a table.

    Raises:
        LakeError: Spark does not answer, or cannot.
    """
    with session_for(spark, table, conf) as session, unless_missing():
        session.sql(f"VACUUM delta.`{quoted(table)}` RETAIN {retain_h} HOURS").collect()
        return True
    return False


def _files(session: SparkSession, table: str) -> int:
    (detail,) = session.sql(f"DESCRIBE DETAIL delta.`{quoted(table)}`").collect()
    return int(detail["numFiles"])
