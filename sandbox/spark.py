"""A real Spark Connect server of our own, with Delta Lake, on this machine: one JVM for all consumers.

It does the work itself, or has a standalone cluster do it that is there.
"""

import os
import re
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from app.child import Child
from app.errors import KcgaError, UsageError
from app.java import Java
from app.pyspark_home import pyspark_home
from consumer import jvm
from sandbox.ports import LOOPBACK
from sandbox.server import Server

_STOP_WITHIN_S = 20.0

_OF_THIS_MACHINE = ("-Djava.awt.headless=true", "-Djava.io.tmpdir=tmp")

_CLUSTER = re.compile(r"spark://[^/:,\s]+:\d{1,5}(,[^/:,\s]+:\d{1,5})*")
_ANSWERS_WITHIN_S = 10.0


class SparkConnectServer(Server):
    """A Spark Connect server.

    Args:
        folder: takes its scratch files, its warehouse and its log. To be removed only after `stop()`.
        jars: Delta Lake's jars (`obtain(DELTA)`).
        java: what runs it (`find_java()`).
        port: where clients connect; a free one if not given.
        heap_mb: the most its Java heap takes, in MiB.
        cluster: the masters of the cluster that does the work, as `spark://host:port[,host:port]`, whose workers see
            the folders of lakes under the same paths; none for this JVM's own threads.
        long_running: whether it is for hours, not minutes: it compiles as well as Java can, and takes its heap at once,
            most of it for what lives as short as a batch. Slower for minutes; faster from then on, and even. It also
            keeps statistics of the columns, by which queries of large tables pass over files.

    Raises:
        UsageError: `cluster` names none.
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
        cluster: str | None = None,
        long_running: bool = False,
    ) -> None:
        super().__init__(folder, port)
        self._jars = jars
        self._java = java
        self._heap_mb = heap_mb
        if cluster is not None and not _CLUSTER.fullmatch(cluster):
            raise UsageError(f"{cluster!r} names no Spark cluster: it must look like spark://host:7077")
        self._cluster = cluster
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
        address = LOOPBACK if self._cluster is None else _address_towards(self._cluster)
        return Child(
            self.title,
            [
                pyspark_home() / "bin" / "spark-submit",
                "--class=org.apache.spark.sql.connect.service.SparkConnectServer",
                "--name=kcga",
                *(f"--conf={name}={value}" for name, value in self._settings(port, address).items()),
                "spark-internal",
            ],
            self.log,
            folder=self._folder,
            environment=spark_environment(self._java, self._folder / "conf", address),
            stop_within_s=_STOP_WITHIN_S,
        )

    def _settings(self, port: int, address: str) -> dict[str, object]:
        return {
            "spark.master": self._cluster or "local[*]",
            "spark.driver.memory": f"{self._heap_mb}m",
            "spark.driver.extraJavaOptions": " ".join(self._jvm),
            "spark.driver.host": address,
            "spark.driver.bindAddress": address,
            "spark.executor.extraJavaOptions": " ".join((*jvm.SAFE, *jvm.QUICK_START)),
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


def spark_environment(java: Java, conf: Path, address: str = LOOPBACK) -> dict[str, str]:
    """The environment of a process of Spark: kcga's own less the settings of any other Spark on this machine.

    Args:
        java: what runs it.
        conf: its folder of settings.
        address: of this machine, by which others reach it.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return inherited | {
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(pyspark_home()),
        "SPARK_CONF_DIR": str(conf),
        "SPARK_LOCAL_IP": address,
        "PYSPARK_PYTHON": sys.executable,
    }


def _address_towards(cluster: str) -> str:
    """The address of this machine by which the cluster's machines reach it."""
    problem: Exception | None = None
    for master in cluster.removeprefix("spark://").split(","):
        host, _, port = master.partition(":")
        try:
            with socket.create_connection((host, int(port)), _ANSWERS_WITHIN_S) as connection:
                address: str = connection.getsockname()[0]
                return address
        except (OSError, OverflowError) as error:
            problem = error
    raise KcgaError(f"no Spark master answers at {cluster}: {problem}; does it run?") from problem
