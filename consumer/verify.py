"""What the lake holds of each partition: the account by which loss and doubling are found."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from consumer.decide.location import NO_NAMES, location, quoted
from consumer.session import NO_CONF, session_for, unless_missing
from domain.partitions import TopicPartition

_ACCOUNT = "partition, count(offset), count(DISTINCT offset), min(offset), max(offset)"


@dataclass(frozen=True, slots=True, order=True)
class PartitionAccount:
    """The rows of one partition."""

    rows: int
    distinct_offsets: int
    first_offset: int
    last_offset: int

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
    """The account of each partition of `topics` that has a row; topics without a table have none.

    Args:
        spark: `sc://host:port` of a Spark Connect server, or a master.
        lake_root: the folder of all tables.
        topics: which.
        tables: where those of some topics are.
        conf: Spark's settings, for a session of this process.

    Raises:
        LakeError: Spark does not answer.
    """
    with session_for(spark, lake_root, conf) as session:
        return {
            partition: account
            for topic in sorted(set(topics))
            for partition, account in _accounts(session, topic, location(lake_root, topic, tables))
        }


def _accounts(session: SparkSession, topic: str, table: str) -> list[tuple[TopicPartition, PartitionAccount]]:
    with unless_missing():
        found = session.sql(f"SELECT {_ACCOUNT} FROM delta.`{quoted(table)}` GROUP BY partition").collect()  # noqa: S608
        return sorted((TopicPartition(topic, row[0]), PartitionAccount(*row[1:])) for row in found)
    return []
