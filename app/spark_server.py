"""A Spark Connect server with Delta Lake: what it is told, and how it is started."""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app import class_data
from app.java import Java
from app.pyspark_home import pyspark_home
from consumer import jvm

_LOOPBACK = "127.0.0.1"
ON_THIS_MACHINE = "local[*]"

_OF_THIS_MACHINE = ("-Djava.awt.headless=true", "-Djava.io.tmpdir=tmp")
_PROPERTIES = "spark.properties"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkServer:
    """A Spark Connect server that is to be started."""

    folder: Path
    """Takes its scratch files and its warehouse; where it is to run."""
    port: int
    """Where clients connect."""
    host: str = _LOOPBACK
    """The address to listen on."""
    java: Java
    jars: Sequence[Path]
    """Delta Lake's."""
    of_stores: Sequence[Path] = ()
    """Those of object stores: see `app.spark_needs.needs`."""
    heap_mb: int = 2048
    """The most that its Java heap takes, in MiB."""
    master: str = ON_THIS_MACHINE
    """Who does the work: by default this JVM's own threads; a cluster, whose workers see the folders of lakes under the
    same paths."""
    address: str = _LOOPBACK
    """Of this machine, by which a cluster's machines reach it."""
    conf: Mapping[str, str]
    """More of Spark's settings, which go before these here."""
    long_running: bool = False
    """Whether it is for hours, not minutes: it compiles as well as Java can, and takes its heap at once, most of it for
    what lives as short as a batch. Slower for minutes; faster from then on, and even. It also keeps statistics of the
    columns, by which queries of large tables pass over files."""
    archive: Path | None = None
    """Takes the classes that it has loaded, once it ends, for others to map (`app.class_data`)."""

    def prepare(self) -> list[str | Path]:
        """Writes what it needs into its folder, its settings so that only this user reads them; the command to run."""
        (self.folder / "tmp").mkdir(parents=True, exist_ok=True)
        file = self.folder / _PROPERTIES
        file.touch(mode=0o600)
        file.write_text("".join(f"{name}={_escaped(value)}\n" for name, value in self._settings().items()))
        return [
            pyspark_home() / "bin" / "spark-submit",
            "--class=org.apache.spark.sql.connect.service.SparkConnectServer",
            "--name=kcga",
            f"--properties-file={file}",
            "spark-internal",
        ]

    @property
    def environment(self) -> dict[str, str]:
        """Of its process."""
        return spark_environment(self.java, self.address)

    def _settings(self) -> dict[str, str]:
        for_hours = (f"-Xms{self.heap_mb}m", f"-Xmn{self.heap_mb * 2 // 3}m")
        fitting = for_hours if self.long_running else jvm.QUICK_START
        # What is archived has been verified: a JVM that verifies maps it, too.
        if self.archive is None:
            classes = (*jvm.UNVERIFIED, *class_data.jvm_options(self.jars))
        else:
            classes = (f"-XX:ArchiveClassesAtExit={self.archive}",)
        options = (*jvm.SAFE, *classes, *_OF_THIS_MACHINE, *fitting)
        return {
            "spark.master": self.master,
            "spark.driver.memory": f"{self.heap_mb}m",
            jvm.OPTIONS: shlex.join(options),
            "spark.driver.host": self.address,
            "spark.driver.bindAddress": self.address,
            "spark.executor.extraJavaOptions": shlex.join((*jvm.SAFE, *jvm.QUICK_START)),
            "spark.connect.grpc.binding.address": self.host,
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.ui.enabled": "false",
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
            "spark.local.dir": str(self.folder / "tmp"),
            "spark.scheduler.mode": "FAIR",
            # Over the default, 1 MB, each batch would stay in its session until the heap is full.
            "spark.sql.session.localRelationCacheThreshold": str(100 * 1024 * 1024),
            # A table's log is small here; the defaults, 200 and 50 tasks, cost more than they save.
            "spark.sql.shuffle.partitions": "4",
            "spark.databricks.delta.snapshotPartitions": "2",
            "spark.databricks.delta.stats.collect": str(self.long_running).lower(),
            # No file of checksums beside each of a table's log: for each Java would start processes (chmod, readlink).
            "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
            **self.conf,
            **class_data.jar_settings(self.jars, self.of_stores, self.master, self.conf),
        }


def spark_environment(java: Java, address: str = _LOOPBACK) -> dict[str, str]:
    """The environment of a process of Spark: kcga's own less the settings of any other Spark on this machine.

    Args:
        java: what runs it.
        address: of this machine, by which others reach it.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return inherited | {
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(pyspark_home()),
        "SPARK_LOCAL_IP": address,
        "PYSPARK_PYTHON": sys.executable,
    }


def _escaped(value: str) -> str:
    """As a file of Java's properties has it."""
    plain = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return "".join(char if char.isascii() else f"\\u{ord(char):04x}" for char in plain)
