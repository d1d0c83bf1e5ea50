"""The jars of Delta Lake for consumers with a JVM of their own."""

from app.jars import DELTA, obtain
from app.settings import Settings

_NAMED_BY = ("spark.jars", "spark.jars.packages")


def with_jars(settings: Settings) -> Settings:
    """The settings with kcga's own jars of Delta Lake, if Spark needs and the settings name none.

    Raises:
        KcgaError: they are not to be had.
    """
    consumer = settings.consumer
    if consumer.spark_master is None or any(name in consumer.spark_conf for name in _NAMED_BY):
        return settings
    conf = {**consumer.spark_conf, "spark.jars": ",".join(map(str, obtain(DELTA)))}
    return settings.model_copy(update={"consumer": consumer.model_copy(update={"spark_conf": conf})})
