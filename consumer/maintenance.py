"""Keeps the tables of the lake quick to read: many small files into few, and files that no table needs any more away.

Both may run while consumers write: neither is in an append's way, nor changes what positions are found.

Checkpoints of a table's log need no care: an append makes one after every so many commits (`consumer.table`).
"""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

import structlog
from pyspark.sql import SparkSession

from consumer.decide.location import in_sql
from consumer.decide.upkeep import Rounds
from consumer.session import NO_CONF, is_remote, naming, open_session, session_for, unless_missing
from consumer.settings import SHORTEST_RETENTION_H, ConsumerSettings, MaintenanceSettings
from consumer.sink import SinkError
from consumer.threads import in_thread
from domain.assignment import ConsumerId
from domain.partitions import TopicPartition

TOO_SHORT = "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"
"""What Delta Lake calls it that a table is to keep files for longer than it was told."""

_OF_A_VACUUM: Mapping[str, str] = MappingProxyType(
    {
        # Unless told so, Delta Lake passes over how long files are to be kept.
        "spark.databricks.delta.vacuum.retentionWindowIgnore.enabled": "false",
        # It would list the files in ten thousand tasks.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
    }
)
_BESIDE_WRITERS: Mapping[str, str] = MappingProxyType(
    {
        # One task at a time, and none that takes long: an append waits for no more than that.
        "spark.databricks.delta.optimize.maxThreads": "1",
        "spark.databricks.delta.optimize.maxFileSize": str(128 * 1024 * 1024),
        "spark.databricks.delta.optimize.minFileSize": str(128 * 1024 * 1024),
    }
)

log = structlog.get_logger(__name__)


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
    with session_for(spark, table, conf) as session:
        return _optimize(session, table)


def vacuum(spark: str, table: str, retain_h: int = SHORTEST_RETENTION_H, conf: Mapping[str, str] = NO_CONF) -> bool:
    """Deletes files that the table at this location has not needed for so many hours; whether there is a table.

    Where the table is to keep them for longer (`delta.deletedFileRetentionDuration`), for that long.

    Raises:
        LakeError: Spark does not answer, or cannot.
    """
    with session_for(spark, table, conf) as session:
        return _vacuum(session, table, retain_h)


class Upkeep:
    """Takes care of tables when it is their turn (`consumer.decide.upkeep`), one after the other.

    Should a table have two that do (one was frozen, and wakes up; their clocks differ), Delta Lake lets one of both
    have done the work. What fails is told, and tried again at the next moment.
    """

    def __init__(
        self, settings: ConsumerSettings, chosen: MaintenanceSettings, consumer: ConsumerId, at: float
    ) -> None:
        self._settings = settings
        self._chosen = chosen
        self._spark = settings.sparks_of(consumer)[0]
        self._rounds = Rounds(chosen, at)
        self._under_way: Future[None] | None = None

    def look(self, at: float, reads: Iterable[TopicPartition]) -> None:
        """Begins, if it is the turn of any.

        Args:
            at: in seconds since the epoch.
            reads: the partitions that this consumer reads.
        """
        under_way = self._under_way is not None and not self._under_way.done()
        turn = self._rounds.turn(at, reads, under_way=under_way)
        if turn is None:
            return
        if turn.reason is not None:
            log.warning("tables are not taken care of", reason=turn.reason)
            return
        self._under_way = in_thread(lambda: self._take_care(turn.topics))

    def _take_care(self, topics: Collection[str]) -> None:
        for topic in topics:
            table = self._settings.table(topic)
            begun = time.monotonic()
            try:
                done = self._take_care_of(table)
            except SinkError as error:
                log.warning("a table was not taken care of", topic=topic, reason=str(error))
            else:
                log.info("a table was taken care of", topic=topic, seconds=round(time.monotonic() - begun, 1), **done)

    def _take_care_of(self, table: str) -> dict[str, int]:
        chosen, done = self._chosen, dict[str, int]()
        with _session_beside(self._spark, table, self._settings.spark_conf) as session:
            for name, value in _BESIDE_WRITERS.items():
                session.conf.set(name, value)
            if chosen.optimize and (compaction := _optimize(session, table)) is not None:
                done = {"files_before": compaction.files_before, "files_after": compaction.files_after}
            if chosen.vacuum:
                _vacuum(session, table, chosen.retain_hours)
        return done


@contextmanager
def _session_beside(spark: str, table: str, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session of its own, also where this process has a JVM, whose end would end that."""
    if is_remote(spark):
        with session_for(spark, table, conf) as session:
            yield session
        return
    with naming(table):
        yield open_session(spark, conf).newSession()


def _optimize(session: SparkSession, table: str) -> Compaction | None:
    with unless_missing():
        before = _files(session, table)
        session.sql(f"OPTIMIZE {in_sql(table)}").collect()
        return Compaction(before, _files(session, table))
    return None


def _vacuum(session: SparkSession, table: str, retain_h: int) -> bool:
    for name, value in _OF_A_VACUUM.items():
        session.conf.set(name, value)
    statement = f"VACUUM {in_sql(table)}"
    with unless_missing():
        try:
            session.sql(f"{statement} RETAIN {retain_h} HOURS").collect()
        except Exception as error:  # a class of Spark Connect's, or of a JVM's
            if TOO_SHORT not in str(error):
                raise
            session.sql(statement).collect()
        return True
    return False


def _files(session: SparkSession, table: str) -> int:
    (detail,) = session.sql(f"DESCRIBE DETAIL {in_sql(table)}").collect()
    return int(detail["numFiles"])
