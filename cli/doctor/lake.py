"""Whether Spark answers and can write to the lake."""

from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures import wait as wait_for

from cli.doctor.finding import Finding
from cli.errors import KcgaError
from cli.own_spark import with_jars
from cli.settings import Settings
from consumer.location import location
from consumer.session import LakeError, brief, open_session, release
from consumer.threads import in_thread

LIMIT_S = 60.0
PROBE = "kcga-doctor~"
"""A table that no topic can have: `~` is in no topic's name."""


def check_lake(settings: Settings) -> Iterator[Finding]:
    try:
        consumer = with_jars(settings).consumer
    except KcgaError as error:
        yield Finding.fault(str(error), "name jars of Delta Lake in consumer.spark_conf")
        return
    table = location(consumer.lake_root, PROBE)

    def write() -> str:
        session = open_session(consumer.spark, consumer.spark_conf)
        try:
            version = str(session.version)
            session.range(1).write.format("delta").mode("overwrite").save(table)
        except Exception as error:  # whatever gRPC, Arrow and Spark raise
            raise LakeError(f"{table}: {brief(error)}") from error
        finally:
            release(session)
        return version

    writing: Future[str] = in_thread(write)
    wait_for([writing], LIMIT_S)
    if not writing.done():
        remedy = "correct consumer.spark_remote or spark_master, or start Spark there"
        yield Finding.fault(f"{consumer.spark} does not answer within {LIMIT_S:g} s", remedy)
        return
    try:
        version = writing.result()
    except LakeError as error:
        remedy = "correct where Spark is, and consumer.lake_root; does Spark have Delta Lake, and reach the root?"
        yield Finding.fault(str(error), remedy)
        return
    yield Finding(f"Spark {version} answers at {consumer.spark}")
    yield Finding(f"a row was written to {table}")
