"""Appends rows to the tables of the lake, through a session of Spark.

An append is named by who writes (`writer`) and which of its batches it is (`version`): the lake takes a name once, so
what may have been written already can be written again without doubling a row. Versions of a writer only grow: the
lake passes over one that is not newer than the newest it has seen, without an error.

That is also how a writer is sealed: after an append of nothing under its name, with the highest version there is, the
lake refuses what that writer has under way, and passes over all that it sends later.

A record that its topic's table refuses goes to the dead letters under a name that is its own, whoever appends it: it is
there once though several processes come upon it, one after the other.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from itertools import cycle
from typing import Any

import pyarrow as pa
import structlog
from pyspark.errors import AnalysisException, PySparkException, PySparkTypeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructField

from consumer.decide.append_note import AppendNote, last_appended
from consumer.decide.columns import NO_SCHEMAS, Column
from consumer.decide.evolution import IncompatibleError, too_narrow
from consumer.decide.layout import AS_EVER, Layout, Layouts
from consumer.decide.location import (
    DEAD_LETTERS,
    NO_NAMES,
    dead_letters,
    in_sql,
    is_name,
    location,
    log_store_settings,
    of_one_writer,
)
from consumer.decide.reached import Reached
from consumer.decide.spans import Span, Term, terms
from consumer.session import (
    NO_CONF,
    LakeError,
    LakeTableError,
    brief,
    is_of_a_record,
    is_remote,
    let_go,
    naming,
    open_session,
    rows_of,
    unless_missing,
)
from consumer.sink import NO_EPOCHS, RefusedError
from consumer.table import SCHEMA, columns_in_sql, creation, last_rows

LAST_VERSION = 2**63 - 1
"""Higher than any that a writer appends under."""

NEWEST_ENTRIES = 1_000
"""Of a table's log: among these the last append of each partition is looked for whose reader has died."""

CREATION_PAUSES_S = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Before each further try: who loses the race to create a table finds it created, but in a catalog some time after its
folder is there."""

SEAL_TRIES = 5
"""Who loses the race to seal a writer finds it sealed; but the writer may have come in between, with an append."""

CONFLICT = ("DELTA_CONCURRENT_TRANSACTION",)
"""What Delta Lake calls it that something else was appended under the same name meanwhile."""

EVOLUTION_TRIES = 10
"""Who loses the race to give a table more columns, or wider ones, finds that it has others; each writer may win it
twice before."""

ANOTHER_SCHEMA = ("DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED")
"""What Delta Lake calls it that a table was created, or got other columns, or columns that may become wider, meanwhile,
for which nothing was done."""

OF_ANOTHER_TYPE = "DELTA_FAILED_TO_MERGE_FIELDS"
"""What Delta Lake calls it that a column is of another type than what is appended, and may not become wider."""

OF_DEAD_LETTERS = (Column("reason", "string", ()),)
"""What their table has beside the columns of every record."""

AS_IN_KAFKA = ["topic", "partition", "offset", "timestamp", "key", "value", "headers"]
"""The columns that are the same whoever reads a record when."""

log = structlog.get_logger(__name__)


class Lake:
    """The tables under one root, for one writer: what each method promises stands at `consumer.sink.Sink`.

    Args:
        sparks: `sc://host:port` of Spark Connect servers, each new session with the next of them; or a master.
        root: the folder, or the schema, of all tables.
        writer: who writes: no two processes ever under the same name.
        tables: where those of some topics are.
        columns: of the topics that have a schema.
        conf: Spark's settings, for a session of this process.
        layouts: of tables that are to be created.
    """

    def __init__(
        self,
        sparks: Sequence[str],
        root: str,
        writer: str,
        tables: Mapping[str, str] = NO_NAMES,
        columns: Mapping[str, Sequence[Column]] = NO_SCHEMAS,
        conf: Mapping[str, str] = NO_CONF,
        layouts: Layouts = AS_EVER,
    ) -> None:
        self._sparks = cycle(sparks)
        self._needs_log_store = of_one_writer(root, tables) if len(sparks) > 1 else ()
        """The schemes of tables that several servers write to, and that are safe with one only."""
        self._conf = conf
        self._root = root
        self._tables = tables
        self._columns = columns
        self._layouts = layouts
        self._writer = writer
        self._session: SparkSession | None = None
        self._created: set[str] = set()
        self._widens: set[str] = set()
        """Tables whose columns it has allowed to become wider: not before one has to, for not all programs can read
        such tables."""
        self._fits: dict[str, pa.Schema] = {}
        """Of tables by their names, the schema of what they took last."""
        self._told: set[str] = set()
        """Tables of which it was told that they have another layout."""
        self._asked: dict[str, int] = {}
        """The newest version under which anything was to be appended, by table."""
        self._sealed: set[tuple[str, str]] = set()
        """The tables and writers that are known to be sealed, as they are for ever."""

    def connect(self) -> None:
        """Opens a session: on a server in place of the one there was, whose requests are abandoned.

        A session of this process stays the one it is, and goes on with what it was asked.

        Raises:
            LakeError: Spark did not answer, or refused.
            SparkGoneError: this process cannot have a session any more.
        """
        spark = next(self._sparks)
        session = open_session(spark, self._conf)
        self._require_log_store(spark, session)
        self._created, self._fits = set(), {}
        former, self._session = self._session, session
        if former is not None and is_remote(spark):
            let_go(former)

    def append(self, topic: str, version: int, rows: pa.Table, epochs: Mapping[int, int] = NO_EPOCHS) -> None:
        with self._asking(topic) as (session, table):
            is_first = self._asked.get(table, 0) < version
            self._asked[table] = version
            note, columns = _note(self._writer, rows, epochs), self._columns.get(topic, ())
            try:
                self._append(session, table, columns, rows, self._writer, version, note)
            except Exception as error:  # a class of Spark Connect's, or of a JVM's
                if not is_of_a_record(error):
                    raise
                if is_first or not self._has_settled(session, table, columns, version, note):
                    raise RefusedError(f"{table}: {brief(error)}") from error

    def set_aside(self, topic: str, record: pa.Table, reason: str, epochs: Mapping[int, int] = NO_EPOCHS) -> None:
        """Appends the record to the dead letters, unless it is there already, whoever appended it."""
        table = dead_letters(self._root)
        row = record.select(SCHEMA.names).append_column("reason", pa.array([reason]))
        with self._asking_of(table) as session:
            name, note = f"{DEAD_LETTERS}/{_digest(row)}", _note(self._writer, row, epochs, topic)
            self._append(session, table, OF_DEAD_LETTERS, row, name, 1, note)
        place = {name: row[name][0].as_py() for name in ("partition", "offset")}
        log.warning("a record was set aside", topic=topic, **place, reason=reason)

    def bring(self, topic: str, rows: pa.Table) -> None:
        """Appends rows that were set aside to the table of `topic`, unless this writer has: once in its life. They say
        nothing of how far the table goes.

        Raises:
            RefusedError: the table refuses a record among them: none is there.
            LakeError: they may or may not have been appended; the same call again, by the same name, settles it.
        """
        with self._asking(topic) as (session, table):
            try:
                self._append(session, table, self._columns.get(topic, ()), rows, self._writer, 1)
            except Exception as error:  # a class of Spark Connect's, or of a JVM's
                if is_of_a_record(error):
                    raise RefusedError(f"{table}: {brief(error)}") from error
                raise

    def seal(self, topic: str, writer: str) -> None:
        with self._asking(topic) as (session, table):
            if (table, writer) in self._sealed:
                return
            self._take_name(session, table, self._columns.get(topic, ()), writer, LAST_VERSION)
            self._sealed.add((table, writer))
        log.info("a writer was sealed", writer=writer, table=table)

    def columns(self, topic: str) -> pa.StructType:
        """Those that its table has beside those of every record, but for types that only Spark has."""
        with self._asking(topic) as (session, table), unless_missing():
            fields = rows_of(session, table).schema.fields
            return pa.struct(_in_arrow(field for field in fields if field.name.lower() not in SCHEMA.names))
        return pa.struct([])

    def last_appended(self, topic: str, partitions: Collection[int]) -> dict[int, Reached]:
        """The last row of each of these partitions, all of whose writers are sealed.

        As the table's log tells it, in a second at most; those of which its newest entries do not tell are left out.

        Raises:
            LakeError: the lake does not answer.
        """
        with self._asking(topic) as (session, table):
            try:
                return last_appended(_notes(session, table), partitions)
            except AnalysisException as error:  # such as: there is no table
                log.info("a table does not tell what was appended last", table=table, reason=brief(error))
        return {}

    def last_set_aside(self, topic: str, partitions: Collection[int]) -> dict[int, Reached]:
        """The record of each of these partitions that was set aside last.

        As the log of the dead letters tells it; those of which its newest entries do not tell are left out.

        Raises:
            LakeError: the lake does not answer.
        """
        table = dead_letters(self._root)
        with self._asking_of(table) as session:
            try:
                return last_appended(_notes(session, table), partitions, topic)
            except AnalysisException:  # nothing was ever set aside
                return {}

    def last_offsets(self, topic: str, spans: Mapping[int, Span]) -> dict[int, int]:
        """The highest offset of each partition that has rows in the table of `topic`.

        Args:
            topic: whose table.
            spans: the partitions, and the offsets among which to look: what takes long is to read the files that have
                rows among them, 2 to 5 s for each 1,000.

        Returns:
            The highest that was found; what lies outside of the partition's span may be left out, and may not.

        Raises:
            LakeError: the lake does not tell.
        """
        if not spans:
            return {}
        condition = " OR ".join(map(_among, terms(spans)))
        with self._asking(topic) as (session, table), unless_missing():
            return _last(rows_of(session, table).where(condition))
        return {}

    def close(self) -> None:
        """Lets the session go."""
        former, self._session = self._session, None
        if former is not None:
            let_go(former)

    def _require_log_store(self, spark: str, session: SparkSession) -> None:
        for scheme in self._needs_log_store:
            if not any(session.conf.get(name, None) for name in log_store_settings(scheme)):
                let_go(session)
                raise LakeError(
                    f"{spark} is one of several servers, and on {scheme}:// Delta Lake would lose what two write at "
                    f"once: set {log_store_settings(scheme)[0]} there, or name one server"
                )

    @contextmanager
    def _asking(self, topic: str) -> Iterator[tuple[SparkSession, str]]:
        """The session and the table of `topic`; what goes wrong with them is a LakeError that names the table."""
        table = location(self._root, topic, self._tables)
        with self._asking_of(table) as session:
            yield session, table

    @contextmanager
    def _asking_of(self, table: str) -> Iterator[SparkSession]:
        session = self._session
        if session is None:
            raise LakeError("there is no Spark session")
        with naming(table):
            yield session

    def _has_settled(
        self, session: SparkSession, table: str, columns: Sequence[Column], version: int, note: str
    ) -> bool:
        """Whether rows with this note were appended under the version, which nothing is from now on.

        The request before, of which no answer came, may have found the table as it was, or find it as it will be.
        """
        self._take_name(session, table, columns, self._writer, version)
        return note in _notes(session, table)

    def _take_name(
        self, session: SparkSession, table: str, columns: Sequence[Column], writer: str, version: int
    ) -> None:
        """Nothing that `writer` appends to the table under this version, or an earlier one, takes effect any more."""
        _again_after(CONFLICT, SEAL_TRIES, lambda: self._append(session, table, columns, None, writer, version))

    def _append(
        self,
        session: SparkSession,
        table: str,
        columns: Sequence[Column],
        rows: pa.Table | None,
        writer: str,
        version: int,
        note: str | None = None,
    ) -> None:
        """None of rows takes the name alone."""
        if table not in self._created:
            layout = self._layouts.of(table)
            self._create(session, creation(table, columns, layout), table)
            self._created.add(table)
            if layout.chosen and table not in self._told and (other := other_layout(session, table, layout)):
                log.error("a table has another layout than settings say", reason=other[0], remedy=other[1])
                self._told.add(table)
        evolves = not columns and rows is not None and rows.num_columns > len(SCHEMA)
        data = session.createDataFrame([], columns_in_sql(columns)) if rows is None else session.createDataFrame(rows)
        options: dict[str, Any] = {"txnAppId": writer, "txnVersion": version}
        if columns or evolves:
            options["mergeSchema"] = "true"  # a schema may have got more columns
        if note is not None:
            options["userMetadata"] = note
        if is_name(table):
            schema = None if rows is None else rows.schema
            if schema is not None and self._fits.pop(table, None) != schema:
                self._require_room(session, table, schema, evolves=evolves)
            append_by_name = data.writeTo(in_sql(table)).options(**options)
            _again_after(ANOTHER_SCHEMA, EVOLUTION_TRIES, append_by_name.append)
            if schema is not None:
                self._fits[table] = schema
            return
        append_by_path = data.write.format("delta").mode("append").options(**options)
        append = partial(_again_after, ANOTHER_SCHEMA, EVOLUTION_TRIES, partial(append_by_path.save, table))
        try:
            append()
        except AnalysisException as error:
            if not evolves or table in self._widens or error.getCondition() != OF_ANOTHER_TYPE:
                raise
            self._let_widen(session, table)
            append()

    def _require_room(self, session: SparkSession, table: str, schema: pa.Schema, *, evolves: bool) -> None:
        """What is appended by a table's name, Spark casts to the types of columns that are narrower, and rounds it."""
        there = pa.struct(_in_arrow(rows_of(session, table).schema.fields))
        try:
            narrow = next(too_narrow(there, pa.struct(list(schema))), None)
        except IncompatibleError as error:
            raise LakeTableError(f"{table}: {error}") from error
        if narrow is not None and not evolves:
            raise LakeTableError(f"{table}: {narrow}")
        if narrow is not None:
            self._let_widen(session, table)

    def _let_widen(self, session: SparkSession, table: str) -> None:
        statement = f"ALTER TABLE {in_sql(table)} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
        _again_after(ANOTHER_SCHEMA, EVOLUTION_TRIES, partial(session.sql, statement))
        self._widens.add(table)

    def _create(self, session: SparkSession, statement: str, table: str) -> None:
        for pause_s in (*CREATION_PAUSES_S, None):
            try:
                session.sql(statement)
            except PySparkException as error:
                if pause_s is None:
                    raise
                log.info("a table is created again", table=table, reason=brief(error))
                time.sleep(pause_s)
            else:
                return


def _again_after(conflicts: Collection[str], tries: int, act: Callable[[], object]) -> None:
    """Does what Delta Lake refuses because of what somebody else committed meanwhile, so often at most."""
    for tries_left in reversed(range(tries)):
        try:
            act()
        except Exception as error:  # a class of Spark Connect's, or of a JVM's
            if not tries_left or not any(conflict in str(error) for conflict in conflicts):
                raise
        else:
            return


def other_layout(session: SparkSession, table: str, layout: Layout) -> tuple[str, str] | None:
    """Where the table has another layout: which, and what would be right; None where it has this one."""
    (detail,) = session.sql(f"DESCRIBE DETAIL {in_sql(table)}").collect()
    other = Layout(tuple(detail["partitionColumns"]), tuple(detail["clusteringColumns"] or ()))
    if other.is_like(layout):
        return None
    remedy = f"set {other.settings}, as it has it, or create it anew"
    if not other.partition_by and not layout.partition_by:
        clause = layout.sql or "CLUSTER BY NONE"
        remedy = f"set {other.settings}, as it has it, or say ALTER TABLE {in_sql(table)} {clause}"
    return f"{table} is {other}, and was to be {layout}: it stays as it is", remedy


def _note(writer: str, rows: pa.Table, epochs: Mapping[int, int], topic: str | None = None) -> str:
    offsets = {number: last.offset for number, last in last_rows(rows, epochs).items()}
    return AppendNote(writer=writer, last_offsets=offsets, last_epochs=epochs, topic=topic).model_dump_json()


def _in_arrow(fields: Iterable[StructField]) -> Iterator[pa.Field]:
    for field in fields:
        with suppress(PySparkTypeError):
            yield pa.field(field.name, to_arrow_type(field.dataType, timezone="UTC"))


def _digest(row: pa.Table) -> str:
    """Of the record as it lies in Kafka: another one at the same place, of a log that was cut off, has another."""
    return sha256(repr(row.select(AS_IN_KAFKA).to_pylist()).encode()).hexdigest()


def _notes(session: SparkSession, table: str) -> list[str | None]:
    """Of the newest entries of the table's log, the newest first."""
    entries = session.sql(f"DESCRIBE HISTORY {in_sql(table)} LIMIT {NEWEST_ENTRIES}")
    return [row[0] for row in entries.select("userMetadata").collect()]


def _last(rows: DataFrame) -> dict[int, int]:
    return {row[0]: row[1] for row in rows.groupBy("partition").agg({"offset": "max"}).collect()}


def _among(term: Term) -> str:
    partitions = ", ".join(map(str, term.partitions))
    return f"(partition IN ({partitions}) AND offset BETWEEN {term.span.low} AND {term.span.high})"
