"""What the lake holds of each partition: the account by which loss and doubling are found."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from consumer.decide.location import NO_NAMES, dead_letters, in_sql, location
from consumer.session import NO_CONF, rows_of, session_for, unless_missing
from domain.partitions import TopicPartition

_ACCOUNT = "partition, count(offset), count(DISTINCT offset), min(offset), max(offset), count_if(set_aside)"


@dataclass(frozen=True, slots=True, order=True)
class PartitionAccount:
    """The rows of one partition."""

    rows: int
    distinct_offsets: int
    first_offset: int
    last_offset: int
    dead_letters: int = 0
    """So many of the rows are in the table of the dead letters."""

    @property
    def doubled(self) -> int:
        """Rows too many."""
        return self.rows - self.distinct_offsets

    @property
    def missing(self) -> int:
        """Offsets between the first and the last that have no row. In a topic that is compacted, or written in
        transactions, such offsets may never have held a record."""
        return self.last_offset - self.first_offset + 1 - self.distinct_offsets


def verify(
    spark: str,
    lake_root: str,
    topics: Iterable[str],
    tables: Mapping[str, str] = NO_NAMES,
    conf: Mapping[str, str] = NO_CONF,
) -> dict[TopicPartition, PartitionAccount]:
    """The account of each partition of `topics` that has a row, in its topic's table or among the dead letters; topics
    without a table have none.

    Args:
        spark: `sc://host:port` of a Spark Connect server, or a master.
        lake_root: the folder of all tables.
        topics: which.
        tables: where those of some topics are.
        conf: Spark's settings, for a session of this process.

    Raises:
        LakeError: Spark does not answer.
    """
    aside = dead_letters(lake_root)
    with session_for(spark, lake_root, conf) as session:
        letters = aside if _is_there(session, aside) else None
        return {
            partition: account
            for topic in sorted(set(topics))
            for partition, account in _accounts(session, topic, location(lake_root, topic, tables), letters)
        }


def _is_there(session: SparkSession, table: str) -> bool:
    with unless_missing():
        return bool(rows_of(session, table).columns)
    return False


def _accounts(
    session: SparkSession, topic: str, table: str, letters: str | None
) -> list[tuple[TopicPartition, PartitionAccount]]:
    rows = f"SELECT partition, offset, false AS set_aside FROM {in_sql(table)}"  # noqa: S608
    if letters is not None:
        of_topic = f"topic = CAST(X'{topic.encode().hex()}' AS STRING)"
        rows += f" UNION ALL SELECT partition, offset, true FROM {in_sql(letters)} WHERE {of_topic}"  # noqa: S608
    with unless_missing():
        found = session.sql(f"SELECT {_ACCOUNT} FROM ({rows}) GROUP BY partition").collect()  # noqa: S608
        return sorted((TopicPartition(topic, row[0]), PartitionAccount(*row[1:])) for row in found)
    return []
