"""A real Spark Connect server of our own, with Delta Lake, on this machine alone: one JVM for all consumers."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from app.child import Child
from app.java import Java
from app.pyspark_home import pyspark_home
from consumer import jvm
from sandbox.ports import LOOPBACK
from sandbox.server import Server

_STOP_WITHIN_S = 20.0

_OF_THIS_MACHINE = ("-Djava.awt.headless=true", "-Djava.io.tmpdir=tmp")


class SparkConnectServer(Server):
    """A Spark Connect server.

    Args:
        folder: takes its scratch files, its warehouse and its log. To be removed only after `stop()`.
        jars: Delta Lake's jars (`obtain(DELTA)`).
        java: what runs it (`find_java()`).
        port: where clients connect; a free one if not given.
        heap_mb: the most its Java heap takes, in MiB.
        long_running: whether it is for hours, not minutes: it compiles as well as Java can, and takes its heap at once,
            most of it for what lives as short as a batch. Slower for minutes; faster from then on, and even. It also
            keeps statistics of the columns, by which queries of large tables pass over files.
    """

    title = "Spark"

    def __init__(
        self,
        folder: Path,
        *,
        jars: Sequence[Path],
        java: Java,
        port: int | None = None,
        heap_mb: int = 2048,
        long_running: bool = False,
    ) -> None:
        super().__init__(folder, port)
        self._jars = jars
        self._java = java
        self._heap_mb = heap_mb
        self._keeps_statistics = long_running
        for_hours = (f"-Xms{heap_mb}m", f"-Xmn{heap_mb * 2 // 3}m")
        self._jvm = (*jvm.SAFE, *jvm.UNVERIFIED, *_OF_THIS_MACHINE, *(for_hours if long_running else jvm.QUICK_START))

    @property
    def remote(self) -> str:
        """Where clients connect, as in `SparkSession.builder.remote(...)`; known once it is started."""
        return f"sc://{self.address}"

    def _prepare(self, port: int) -> Child:
        for part in ("tmp", "conf"):
            (self._folder / part).mkdir(exist_ok=True)
        home = pyspark_home()
        return Child(
            self.title,
            [
                home / "bin" / "spark-submit",
                "--class=org.apache.spark.sql.connect.service.SparkConnectServer",
                "--name=kcga",
                *(f"--conf={name}={value}" for name, value in self._settings(port).items()),
                "spark-internal",
            ],
            self.log,
            folder=self._folder,
            environment=self._environment(home),
            stop_within_s=_STOP_WITHIN_S,
        )

    def _environment(self, home: Path) -> dict[str, str]:
        """kcga's own environment less the settings of any other Spark on this machine."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
        return inherited | {
            "JAVA_HOME": str(self._java.home),
            "SPARK_HOME": str(home),
            "SPARK_CONF_DIR": str(self._folder / "conf"),
            "SPARK_LOCAL_IP": LOOPBACK,
            "PYSPARK_PYTHON": sys.executable,
        }

    def _settings(self, port: int) -> dict[str, object]:
        return {
            "spark.master": "local[*]",
            "spark.driver.memory": f"{self._heap_mb}m",
            "spark.driver.extraJavaOptions": " ".join(self._jvm),
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            "spark.connect.grpc.binding.address": LOOPBACK,
            "spark.connect.grpc.binding.port": port,
            "spark.ui.enabled": "false",
            "spark.jars": ",".join(map(str, self._jars)),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.warehouse.dir": self._folder / "warehouse",
            "spark.local.dir": self._folder / "tmp",
            "spark.scheduler.mode": "FAIR",
            # Over the default, 1 MB, each batch would stay in its session until the heap is full.
            "spark.sql.session.localRelationCacheThreshold": 100 * 1024 * 1024,
            # A table's log is small here; the defaults, 200 and 50 tasks, cost more than they save.
            "spark.sql.shuffle.partitions": 4,
            "spark.databricks.delta.snapshotPartitions": 2,
            "spark.databricks.delta.stats.collect": str(self._keeps_statistics).lower(),
            # No file of checksums beside each of a table's log: for each Java would start processes (chmod, readlink).
            "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
        }

    def _answers(self) -> bool:
        # Imported only now: the client takes seconds to import, in which Spark starts.
        from pyspark.errors import PySparkException

        from consumer.session import LakeError, open_session, release

        try:
            session = open_session(self.remote)
        except LakeError:
            return False
        try:
            return bool(session.sql("select 1").collect())
        except PySparkException:
            return False
        finally:
            release(session)
