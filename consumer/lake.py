"""Appends rows to the tables of the lake, through a session on a Spark Connect server.

An append is named by who writes (`writer`) and which of its batches it is (`version`): the lake takes a name once, so
what may have been written already can be written again without doubling a row. Versions of a writer only grow: the
lake passes over one that is not newer than the newest it has seen, without an error.
"""

import re
import threading
from collections.abc import Mapping
from types import MappingProxyType

import pyarrow as pa
import structlog
from pyspark.errors import PySparkException
from pyspark.sql.connect.session import SparkSession

from consumer.table import creation, location

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
    """

    def __init__(self, remote: str, root: str, writer: str) -> None:
        self._remote = remote
        self._root = root
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
        session = self._session
        if session is None:
            raise LakeError("there is no Spark session")
        table = location(self._root, topic)
        try:
            if topic not in self._created:
                self._create(session, table)
                self._created.add(topic)
            (
                session.createDataFrame(rows)
                .write.format("delta")
                .mode("append")
                .option("txnAppId", self._writer)
                .option("txnVersion", version)
                .save(table)
            )
        except Exception as error:  # whatever gRPC, Arrow and Spark raise: to the caller it is one and the same
            raise LakeError(f"{table}: {brief(error)}") from error

    def close(self) -> None:
        """Lets the session go."""
        former, self._session = self._session, None
        _let_go(former)

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
