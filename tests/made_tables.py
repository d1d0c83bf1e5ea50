"""Tables as their owners make them: of other columns, or with a constraint."""

from pyspark.sql import SparkSession

from consumer.decide.location import in_sql
from consumer.table import creation


def make(session: SparkSession, table: str, columns: str) -> None:
    """An empty table of these columns, also in place of one."""
    nothing = session.createDataFrame([], columns).write.format("delta").partitionBy("ingest_date")
    nothing.mode("overwrite").option("overwriteSchema", "true").save(table)


def constrain(session: SparkSession, table: str, condition: str, name: str = "odd") -> None:
    """A table, made where there is none, that takes records only for which this holds."""
    session.sql(creation(table))
    session.sql(f"ALTER TABLE {in_sql(table)} ADD CONSTRAINT {name} CHECK ({condition})")
