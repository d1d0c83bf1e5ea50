"""Tables as their owners make them: of other columns, or with a constraint."""

from pyspark.sql import SparkSession


def make(session: SparkSession, table: str, columns: str) -> None:
    """An empty table of these columns, also in place of one."""
    nothing = session.createDataFrame([], columns).write.format("delta").partitionBy("ingest_date")
    nothing.mode("overwrite").option("overwriteSchema", "true").save(table)


def refuse(session: SparkSession, table: str, condition: str) -> None:
    """Records for which this holds."""
    session.sql(f"ALTER TABLE delta.`{table}` ADD CONSTRAINT odd CHECK (NOT ({condition}))")
