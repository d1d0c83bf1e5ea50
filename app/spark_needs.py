"""What Spark needs for the tables of a lake, by where they are: jars, and settings that go with them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from app.class_data import jar_settings, jvm_options
from app.jars import DELTA, GCS, S3, JarSet, obtain
from app.log_store import CLASS, log_store
from app.settings import Settings
from consumer import jvm
from consumer.decide.location import S3A

_CREDENTIALS = (
    "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider",
    "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
)
"""What the settings say; else the SDK's own chain, which knows roles of service accounts, too. Hadoop's does not."""


@dataclass(frozen=True, slots=True)
class _Store:
    """An object store."""

    jars: JarSet
    conf: Mapping[str, str]
    log_store: bool = False
    """Whether Delta Lake's own log store there is for one JVM that writes."""


_STORES: Mapping[str, _Store] = MappingProxyType(
    {
        S3A: _Store(
            S3,
            {
                f"spark.delta.logStore.{S3A}.impl": CLASS,
                "spark.hadoop.fs.s3a.aws.credentials.provider": ",".join(_CREDENTIALS),
            },
            log_store=True,
        ),
        "gs": _Store(
            GCS,
            {
                "spark.hadoop.fs.gs.impl": "org.apache.hadoop.fs.gs.GoogleHadoopFileSystem",
                "spark.hadoop.fs.AbstractFileSystem.gs.impl": "org.apache.hadoop.fs.gs.Gs",
            },
        ),
    }
)
"""By the scheme of their URLs."""


@dataclass(frozen=True, slots=True)
class SparkNeeds:
    """What a Spark, whether a server or of a consumer's own, has to be given."""

    delta: tuple[Path, ...]
    """The jars of Delta Lake."""
    of_stores: tuple[Path, ...]
    """Those of the stores."""
    conf: Mapping[str, str]
    """Spark's settings, which one's own come before."""


def needs(schemes: Collection[str]) -> SparkNeeds:
    """Delta Lake, and what the schemes of tables need besides.

    Raises:
        KcgaError: jars are not to be had.
    """
    delta = obtain(DELTA)
    of_stores, conf = list[Path](), dict[str, str]()
    for store in (_STORES[scheme] for scheme in schemes if scheme in _STORES):
        connector = obtain(store.jars)
        of_stores += connector
        conf |= store.conf
        if store.log_store:
            of_stores.append(log_store((*delta, *connector)))
    return SparkNeeds(delta, tuple(of_stores), conf)


def with_jars(settings: Settings) -> Settings:
    """The settings with kcga's own jars, and what goes with them, if consumers need and the settings name none.

    Raises:
        KcgaError: they are not to be had.
    """
    consumer = settings.consumer
    if consumer.spark_master is None or consumer.names_jars:
        return settings
    needed = needs(consumer.schemes)
    options = jvm.of_a_consumer(*jvm_options(needed.delta))
    jars = jar_settings(needed.delta, needed.of_stores, consumer.spark_master, consumer.spark_conf)
    conf = {**needed.conf, **options, **consumer.spark_conf, **jars}
    return settings.model_copy(update={"consumer": consumer.model_copy(update={"spark_conf": conf})})
