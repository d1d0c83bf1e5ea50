"""Whether Spark answers and can write to the lake."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextlib import suppress
from dataclasses import dataclass

from pyspark.sql import SparkSession

from app.errors import KcgaError
from app.settings import Settings
from app.spark_needs import with_jars
from cli.doctor.finding import Finding
from cli.topics import topics_to_read
from consumer.command_sink import CommandSink
from consumer.decide.location import in_sql, is_name, location
from consumer.lake import other_layout
from consumer.session import LakeError, brief, session_for, unless_missing
from consumer.settings import ConsumerSettings
from consumer.sink import SinkError
from consumer.threads import in_thread

LIMIT_S = 60.0
PROBE = "kcga-doctor~"
"""What the name of the table that is written begins with. No topic can have it: `~` is in no topic's name."""


@dataclass(frozen=True, slots=True)
class _Written:
    spark_version: str
    left: str | None
    """Why the table is still there; None if it is not."""


def check_lake(settings: Settings) -> Iterator[Finding]:
    if settings.consumer.sink == "command":
        yield from _check_command(settings.consumer.command)
        return
    try:
        consumer = with_jars(settings).consumer
    except KcgaError as error:
        yield Finding.fault(str(error), "name jars of Delta Lake in consumer.spark_conf")
        return
    schemas = (table.rpartition(".")[0] for table in consumer.places.values() if is_name(table))
    roots = dict.fromkeys((consumer.lake_root, *schemas))
    for spark in consumer.sparks:
        for root in roots:
            yield from _check(spark, root, consumer.spark_conf)
    yield from _check_layouts(settings, consumer)


def _check_command(command: Sequence[str]) -> Iterator[Finding]:
    sink = CommandSink(command, "kcga-doctor", f"kcga-doctor/{uuid.uuid4().hex}", LIMIT_S)
    try:
        sink.connect()
    except SinkError as error:
        yield Finding.fault(str(error), "correct consumer.command; kcga sink check tells more")
    else:
        yield Finding(f"{command[0]} begins, and answers")
    finally:
        sink.close()


def _check(spark: str, root: str, conf: Mapping[str, str]) -> Iterator[Finding]:
    table = location(root, f"{PROBE}{uuid.uuid4().hex}")

    def write() -> _Written:
        with session_for(spark, table, conf) as session:
            version = str(session.version)
            if is_name(table):
                session.range(1).writeTo(in_sql(table)).using("delta").create()
            else:
                session.range(1).write.format("delta").save(table)
            return _Written(version, left=_remove(session, table))

    writing: Future[_Written] = in_thread(write)
    wait_for([writing], LIMIT_S)
    if not writing.done():
        remedy = "correct consumer.spark_remote or spark_master, or start Spark there"
        yield Finding.fault(f"{spark} does not answer within {LIMIT_S:g} s", remedy)
        return
    try:
        written = writing.result()
    except LakeError as error:
        remedy = "correct where Spark is, and consumer.lake_root; does Spark have Delta Lake, and reach the root?"
        yield Finding.fault(str(error), remedy)
        return
    yield Finding(f"Spark {written.spark_version} answers at {spark}")
    if written.left is None:
        yield Finding(f"a row was written to {table}, and removed again")
    else:
        yield Finding.note(f"a row was written to {table}, and could not be removed: {written.left}", "remove it")


def _check_layouts(settings: Settings, consumer: ConsumerSettings) -> Iterator[Finding]:
    """Tables that are there, and have another layout than is set."""
    layouts, topics = consumer.layouts, set(consumer.tables)
    if layouts.by_default.chosen:
        with suppress(KcgaError):  # which is told where Kafka is looked at
            topics |= set(topics_to_read(settings))
    chosen = {table: layouts.of(table) for table in map(consumer.table, sorted(topics)) if layouts.of(table).chosen}
    if not chosen:
        return

    def look() -> list[tuple[str, str]]:
        others = []
        with session_for(consumer.spark, consumer.lake_root, consumer.spark_conf) as session:
            for table, layout in chosen.items():
                with unless_missing():
                    others.append(other_layout(session, table, layout))
        return [other for other in others if other is not None]

    looking = in_thread(look)
    wait_for([looking], LIMIT_S)
    if not looking.done():
        remedy = "ask again, when Spark has less to do"
        yield Finding.note(f"the layouts of tables were not told within {LIMIT_S:g} s", remedy)
        return
    with suppress(LakeError):  # which was told before
        yield from (Finding.fault(what, remedy) for what, remedy in looking.result())


def _remove(session: SparkSession, table: str) -> str | None:
    """Removes the table with all its files; returns why that failed, or None.

    Of one without a name: of all that SQL can say, only the end of a database removes a folder, so it becomes one.
    """
    database = f"kcga_doctor_{uuid.uuid4().hex}"
    try:
        if is_name(table):
            session.sql(f"DROP TABLE {in_sql(table)}")
            return None
        session.sql(f"CREATE DATABASE {database} LOCATION {_literal(table)}")
        session.sql(f"DROP DATABASE {database}")
    except Exception as error:  # as above
        return brief(error)
    return None


def _literal(text: str) -> str:
    """As SQL takes it; a parameter is refused at such a place."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
