"""Sessions of Spark: on a Spark Connect server, or of this process, which then has a JVM of its own.

Where Spark is, is one text: `sc://host:port` is a server's address, anything else a master (`local[2]`, `spark://...`).
"""

import atexit
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, cast

import structlog
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from consumer import jvm
from consumer.decide.location import in_sql, is_name
from consumer.settings import TOKEN
from consumer.sink import SinkError, SinkGoneError, TableError

log = structlog.get_logger(__name__)

NO_CONF: Mapping[str, str] = MappingProxyType({})

_OF_EACH_SESSION: Mapping[str, str] = MappingProxyType(
    {
        # Over this size a batch would stay with the server for as long as the session lives.
        "spark.sql.session.localRelationCacheThreshold": "104857600",
        "spark.sql.session.timeZone": "UTC",
        # A batch is sent once: a plan that was seen before would only be in the way, and in memory, with its rows.
        "spark.connect.session.planCache.enabled": "false",
        # A table's log is small: each of the 50 tasks to read it that are the default costs more than it saves.
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": "4",
        # Each task would write Java for its few rows, and look up whether that was compiled before: much of what an
        # append takes.
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        # What an append asks is small: to plan it again while it runs costs more than it can save.
        "spark.sql.adaptive.enabled": "false",
    }
)

_OF_AN_OWN_JVM: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "in-memory",
        **jvm.of_a_consumer(),
        "spark.scheduler.mode": "FAIR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
)
_OF_THIS_MACHINE: Mapping[str, str] = MappingProxyType(
    {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
)

_NO_TABLE = frozenset(
    {"DELTA_TABLE_NOT_FOUND", "DELTA_MISSING_DELTA_TABLE", "PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND"}
)
"""What Spark calls a table that does not exist."""


_OF_A_VALUE = ("22", "23")
"""How the states begin that SQL has for a value that is none, and for a constraint that one violates."""

_OF_A_TABLE = ("0A", "22", "23", "56")
"""The same of what a table does not take at all, beside what analysis finds: what it does not support, values of other
types, what its constraints do not allow. Not of class 42: Delta Lake says so of a store that makes no folder, too."""

_NO_VALUES = "DELTA_MISSING_NOT_NULL_COLUMN_VALUE"
"""What Delta Lake calls it that a column that may not be null is none of those that are written."""


class LakeError(SinkError):
    """Spark did not do what it was asked; what that was may or may not have happened."""


class LakeTableError(TableError, LakeError):
    """A table of the lake is at fault."""


class SparkGoneError(SinkGoneError, LakeError):
    """The JVM of this process has ended: only a new process has another."""


def is_remote(spark: str) -> bool:
    """Whether Spark is on a server, and not of this process."""
    return spark.startswith("sc://")


def open_session(spark: str, conf: Mapping[str, str] = NO_CONF) -> SparkSession:
    """A session that has answered: a new one on a server; of this process always the same.

    Args:
        spark: `sc://host:port` or a master.
        conf: Spark's settings, for a session of this process; of a server's only the token that it asks for.

    Raises:
        LakeError: Spark did not answer, or refused.
    """
    return _on_server(spark, conf.get(TOKEN)) if is_remote(spark) else _of_this_process(spark, conf)


def release(session: SparkSession) -> None:
    """Ends the session, and with it whatever Spark still does for it; as far as it answers."""
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    try:
        if not isinstance(session, RemoteSession):
            session.stop()
            return
        try:
            session.client.release_session()
        finally:
            _close(session.client)
    except Exception as error:
        log.info("a session was not released", reason=brief(error))


def _close(client: Any) -> None:
    atexit.unregister(client.close)
    client.close()


def let_go(session: SparkSession) -> None:
    """Releases the session without waiting for a Spark that may not answer."""
    threading.Thread(target=release, args=(session,), daemon=True).start()


def brief(error: BaseException) -> str:
    """What the error says in one line of at most 300 characters: of an error of gRPC its details, else its first."""
    text = str(_of_jvm(error) or error).strip()
    details = re.search(r'^\s*details = "(.*)"$', text, re.MULTILINE)
    line = details[1] if details else text.partition("\n")[0]
    return f"{type(error).__name__}: {line[:300]}" if line else type(error).__name__


def is_of_a_record(error: BaseException) -> bool:
    """Whether an append failed because of what a record holds: a constraint, a length or a computed column of the table
    does not take it.

    By the state that the standard of SQL gives such errors. Spark has the same for tables that could take no record at
    all: analysis, which comes before any record is looked at, and a column without which there can be no row.
    """
    told: Any = _of_jvm(error) or error
    if isinstance(error, AnalysisException) or not hasattr(told, "getSqlState"):
        return False
    return _state(told) in _OF_A_VALUE and told.getCondition() != _NO_VALUES


def is_of_a_table(error: BaseException) -> bool:
    """Whether a table is at fault, and not what may pass: the network, a store, a server, somebody else's commit."""
    return isinstance(error, AnalysisException) or _state(_of_jvm(error) or error) in _OF_A_TABLE


def _state(told: Any) -> str:
    """The class of what SQL's standard calls its state; empty where it has none."""
    return str(told.getSqlState() or "")[:2] if hasattr(told, "getSqlState") else ""


def _of_jvm(error: BaseException) -> Any:
    """What was thrown in the JVM of this process, where PySpark has no class for it."""
    return getattr(error, "java_exception", None)


@contextmanager
def naming(table: str) -> Iterator[None]:
    """Within it the table is used: what goes wrong is a LakeError that names it; a LakeTableError where that is at
    fault."""
    try:
        yield
    except SinkError:
        raise
    except Exception as error:  # whatever gRPC, Arrow and Spark raise: to the caller it is one and the same
        kind = LakeTableError if is_of_a_table(error) else LakeError
        raise kind(f"{table}: {brief(error)}") from error


@contextmanager
def session_for(spark: str, table: str, conf: Mapping[str, str] = NO_CONF) -> Iterator[SparkSession]:
    """A session that is released at the end.

    Raises:
        LakeError: Spark does not answer, or refuses; also what is asked of it.
    """
    session = open_session(spark, conf)
    try:
        with naming(table):
            yield session
    finally:
        release(session)


def rows_of(session: SparkSession, table: str) -> DataFrame:
    """What the table holds."""
    return session.table(in_sql(table)) if is_name(table) else session.read.format("delta").load(table)


@contextmanager
def unless_missing() -> Iterator[None]:
    """Within it a table is used: it ends there if there is none."""
    try:
        yield
    except AnalysisException as error:
        if error.getCondition() not in _NO_TABLE:
            raise


def _on_server(remote: str, token: str | None) -> SparkSession:
    # Imported here: a process with a JVM of its own does not need it.
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    channel = DefaultChannelBuilder(remote)
    if token is not None:
        # Spark's client sends what it takes for a token by TLS alone, which Spark's server does not speak.
        channel.set("authorization", f"Bearer {token}")
    session = RemoteSession(connection=channel)
    # The client's own policy keeps trying for 10 minutes, during which its caller could say nothing of it.
    session.client.set_retry_policies([])
    # Else it is closed by what Python does last, when no thread of gRPC's runs that this waits for.
    atexit.register(session.client.close)
    try:
        for name, value in _OF_EACH_SESSION.items():
            session.conf.set(name, value)
    except Exception as error:
        _close(session.client)
        raise LakeError(f"no session on {remote}: {brief(error)}") from error
    return cast(SparkSession, session)  # another class, with the same methods


def _of_this_process(master: str, conf: Mapping[str, str]) -> SparkSession:
    of_this_machine = _OF_THIS_MACHINE if master.startswith("local") else NO_CONF
    settings: dict[str, bool | float | int | str | None] = {
        **_OF_AN_OWN_JVM,
        **of_this_machine,
        **_OF_EACH_SESSION,
        **conf,
    }
    builder = SparkSession.builder.master(master).appName("kcga").config("spark.api.mode", "classic")
    try:
        session = builder.config(map=settings).getOrCreate()
    except Exception as error:  # whatever the launch of a JVM, py4j and Spark raise
        raise LakeError(f"no session of its own on {master}: {brief(error)}") from error
    try:
        session.sparkContext.setLogLevel("ERROR")  # it warns at each append that a batch is large
        session.sql("SELECT 1").collect()
    except Exception as error:
        raise SparkGoneError(f"the session on {master} has ended: {brief(error)}") from error
    return session
