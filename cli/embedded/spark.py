"""A real Spark Connect server of our own, with Delta Lake, on this machine alone: one JVM for all consumers."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from cli.embedded.child import Child
from cli.embedded.java import Java
from cli.embedded.ports import LOOPBACK, free_port, listens, require_free
from cli.embedded.pyspark_home import pyspark_home

READY_WITHIN_S = 180.0

_STOP_WITHIN_S = 20.0

_JVM = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+ExitOnOutOfMemoryError -Djava.awt.headless=true -Djava.io.tmpdir=tmp"
)


class SparkConnectServer:
    """A Spark Connect server that lives as long as its context, or from `start()` to `stop()`.

    Args:
        folder: takes its scratch files, its warehouse and its log. To be removed only after `stop()`.
        jars: Delta Lake's jars (`obtain(DELTA)`).
        java: what runs it (`find_java()`).
        port: where clients connect; a free one if not given.
        heap_mb: the most its Java heap takes, in MiB.
    """

    def __init__(
        self, folder: Path, *, jars: Sequence[Path], java: Java, port: int | None = None, heap_mb: int = 2048
    ) -> None:
        self._folder = folder.absolute()
        self._jars = jars
        self._java = java
        self._port = port
        self._heap_mb = heap_mb
        self._child: Child | None = None

    @property
    def remote(self) -> str:
        """Where clients connect, as in `SparkSession.builder.remote(...)`; known once it is started."""
        if self._port is None:
            raise RuntimeError("Spark was not started")
        return f"sc://{LOOPBACK}:{self._port}"

    @property
    def child(self) -> Child:
        """Its process."""
        if self._child is None:
            raise RuntimeError("Spark was not started")
        return self._child

    @property
    def log(self) -> Path:
        return self._folder / "spark.log"

    def start(self, ready_within_s: float = READY_WITHIN_S) -> None:
        """Starts it, and returns when a client's query was answered.

        Raises:
            KcgaError: the port is taken; it ended or was not ready in time, with the end of its log.
        """
        self._port = free_port() if self._port is None else require_free(self._port, "Spark")
        for part in ("tmp", "conf"):
            (self._folder / part).mkdir(parents=True, exist_ok=True)
        home = pyspark_home()
        settings = [f"--conf={name}={value}" for name, value in self._settings().items()]
        self._child = Child(
            "Spark",
            [
                home / "bin" / "spark-submit",
                "--class=org.apache.spark.sql.connect.service.SparkConnectServer",
                "--name=kcga",
                *settings,
                "spark-internal",
            ],
            self.log,
            folder=self._folder,
            environment=self._environment(home),
            stop_within_s=_STOP_WITHIN_S,
        )
        try:
            self._child.start()
            self._child.wait_ready(self._is_ready, ready_within_s)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends it and waits for its end; then its folder may be removed. Does nothing if it does not run."""
        if self._child is not None:
            self._child.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

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

    def _settings(self) -> dict[str, object]:
        return {
            "spark.master": "local[*]",
            "spark.driver.memory": f"{self._heap_mb}m",
            "spark.driver.extraJavaOptions": _JVM,
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            "spark.connect.grpc.binding.address": LOOPBACK,
            "spark.connect.grpc.binding.port": self._port,
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
        }

    def _is_ready(self) -> bool:
        port = int(self.remote.rpartition(":")[2])
        if not listens(port):  # so that the client has nothing to complain about
            return False
        from pyspark.sql.connect.session import SparkSession

        session = SparkSession.builder.remote(self.remote).create()
        try:
            return bool(session.sql("select 1").collect())
        finally:
            session.stop()
