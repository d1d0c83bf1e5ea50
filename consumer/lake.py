"""Appends rows to the tables of the lake, through a session on a Spark Connect server.

An append is named by who writes (`writer`) and which of its batches it is (`version`): the lake takes a name once, so
what may have been written already can be written again without doubling a row. Versions of a writer only grow: the
lake passes over one that is not newer than the newest it has seen, without an error.

That is also how a writer is sealed: after an append of nothing under its name, with the highest version there is, the
lake refuses what that writer has under way, and passes over all that it sends later.
"""

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from operator import or_
from types import MappingProxyType

import pyarrow as pa
import structlog
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql.column import Column
from pyspark.sql.connect.functions import col as column
from pyspark.sql.connect.functions import max as max_of
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.dataframe import DataFrame

from consumer.location import NO_NAMES, location
from consumer.spans import Span, Term, terms
from consumer.table import COLUMNS, creation

SESSION_CONFIG: Mapping[str, str] = MappingProxyType(
    {
        # Over this size a batch would stay with the server for as long as the session lives.
        "spark.sql.session.localRelationCacheThreshold": "104857600",
        "spark.sql.session.timeZone": "UTC",
        # A table's log is small: the default of 50 tasks to read it costs more than they save.
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.shuffle.partitions": "4",
    }
)

LAST_VERSION = 2**63 - 1
"""Higher than any that a writer appends under."""

NO_TABLE = frozenset({"DELTA_TABLE_NOT_FOUND", "DELTA_MISSING_DELTA_TABLE", "PATH_NOT_FOUND"})
"""What Spark calls a table that does not exist."""

CREATION_TRIES = 3
"""Who loses the race to create a table finds it created."""

log = structlog.get_logger(__name__)


class LakeError(RuntimeError):
    """Spark did not do what it was asked; what that was may or may not have happened."""


class Lake:
    """The tables under one root, for one writer. Safe to use from several threads.

    Args:
        remote: the Spark Connect server, `sc://host:port`.
        root: the folder of all tables.
        writer: who writes: no two processes ever under the same name.
        tables: where those of some topics are.
    """

    def __init__(self, remote: str, root: str, writer: str, tables: Mapping[str, str] = NO_NAMES) -> None:
        self._remote = remote
        self._root = root
        self._tables = tables
        self._writer = writer
        self._session: SparkSession | None = None
        self._created: set[str] = set()

    def connect(self) -> None:
        """Opens a session in place of the one there was, whose requests are abandoned.

        Raises:
            LakeError: the server did not answer, or refused.
        """
        session = open_session(self._remote)
        self._created = set()
        former, self._session = self._session, session
        _let_go(former)

    def append(self, topic: str, version: int, rows: pa.Table) -> None:
        """Appends `rows` to the table of `topic`, unless this writer's `version` is there already.

        Raises:
            LakeError: they may or may not have been appended; the same call again settles it.
        """
        with self._asking(topic) as (session, table):
            self._append(session, session.createDataFrame(rows), topic, table, self._writer, version)

    def seal(self, topic: str, writer: str) -> None:
        """From now on nothing that `writer` appends to the table of `topic` takes effect.

        Raises:
            LakeError: that is not certain; the same call again settles it.
        """
        with self._asking(topic) as (session, table):
            self._append(session, session.createDataFrame([], COLUMNS), topic, table, writer, LAST_VERSION)
        log.info("sealed", writer=writer, table=table)

    def last_offsets(self, topic: str, spans: Mapping[int, Span | None]) -> dict[int, int]:
        """The highest offset of each partition that has rows in the table of `topic`.

        Args:
            topic: whose table.
            spans: the partitions, and the offsets among which to look; none for all, which takes long where the table
                has many files: about 1 s for each 1,000, against 0.3 s at any number.

        Returns:
            The highest that was found; what lies outside of the partition's span may be left out, and may not.

        Raises:
            LakeError: the lake does not tell.
        """
        bounded = {number: span for number, span in spans.items() if span is not None}
        conditions = [_among(term) for term in terms(bounded)]
        unbounded = sorted(spans.keys() - bounded.keys())
        found: dict[int, int] = {}
        with self._asking(topic) as (session, table):
            try:
                rows = session.read.format("delta").load(table)
                if conditions:
                    found |= _last_offsets(rows.where(reduce(or_, conditions)))
                if unbounded:
                    found |= _last_offsets(rows.where(column("partition").isin(unbounded)))
            except AnalysisException as error:
                if error.getCondition() not in NO_TABLE:
                    raise
        return found

    def close(self) -> None:
        """Lets the session go."""
        former, self._session = self._session, None
        _let_go(former)

    @contextmanager
    def _asking(self, topic: str) -> Iterator[tuple[SparkSession, str]]:
        """The session and the table of `topic`; what goes wrong with them is a LakeError that names the table."""
        session = self._session
        if session is None:
            raise LakeError("there is no Spark session")
        table = location(self._root, topic, self._tables)
        try:
            yield session, table
        except Exception as error:  # whatever gRPC, Arrow and Spark raise: to the caller it is one and the same
            raise LakeError(f"{table}: {brief(error)}") from error

    def _append(
        self, session: SparkSession, rows: DataFrame, topic: str, table: str, writer: str, version: int
    ) -> None:
        if topic not in self._created:
            self._create(session, table)
            self._created.add(topic)
        (rows.write.format("delta").mode("append").option("txnAppId", writer).option("txnVersion", version).save(table))

    def _create(self, session: SparkSession, table: str) -> None:
        for tries_left in reversed(range(CREATION_TRIES)):
            try:
                session.sql(creation(table))
            except PySparkException as error:
                if not tries_left:
                    raise
                log.info("creates the table again", table=table, reason=brief(error))
            else:
                return


def _among(term: Term) -> Column:
    return column("partition").isin(list(term.partitions)) & column("offset").between(term.span.low, term.span.high)


def _last_offsets(rows: DataFrame) -> dict[int, int]:
    return {row[0]: row[1] for row in rows.groupBy("partition").agg(max_of("offset")).collect()}


def open_session(remote: str) -> SparkSession:
    """A new session on the Spark Connect server, which has answered.

    Raises:
        LakeError: the server did not answer, or refused.
    """
    session = SparkSession(connection=remote)
    # The client's own policy keeps trying for 10 minutes, during which its caller could say nothing of it.
    session.client.set_retry_policies([])
    try:
        for name, value in SESSION_CONFIG.items():
            session.conf.set(name, value)
    except Exception as error:
        session.client.close()
        raise LakeError(f"no session on {remote}: {brief(error)}") from error
    return session


def release(session: SparkSession) -> None:
    """Ends the session, and with it whatever the server still does for it; as far as the server answers."""
    try:
        session.client.release_session()
    except Exception as error:
        log.info("a session was not released", reason=brief(error))
    finally:
        session.client.close()


def _let_go(session: SparkSession | None) -> None:
    """Releases the session without waiting for a server that may not answer."""
    if session is not None:
        threading.Thread(target=release, args=(session,), daemon=True).start()


def brief(error: BaseException) -> str:
    """What the error says in one line of at most 300 characters: of an error of gRPC its details, else its first."""
    text = str(error).strip()
    details = re.search(r'^\s*details = "(.*)"$', text, re.MULTILINE)
    line = details[1] if details else text.partition("\n")[0]
    return f"{type(error).__name__}: {line[:300]}" if line else type(error).__name__
