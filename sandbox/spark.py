"""A real Spark Connect server of our own, with Delta Lake, on this machine: one JVM for all consumers.

It does the work itself, or has a standalone cluster do it that is there.
"""

import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from app.child import Child
from app.errors import KcgaError, UsageError
from app.java import Java
from app.spark_server import ON_THIS_MACHINE, SparkServer
from domain.partitions import TopicPartition
from sandbox.ports import LOOPBACK
from sandbox.server import Server

if TYPE_CHECKING:
    import pyarrow as pa

    from consumer.lake import Lake

_STOP_WITHIN_S = 20.0
_ARCHIVED_WITHIN_S = 1800.0
"""Two cores take a minute; a machine that is emulated takes many."""

_CLUSTER = re.compile(r"spark://[^/:,\s]+:\d{1,5}(,[^/:,\s]+:\d{1,5})*")
_ANSWERS_WITHIN_S = 10.0


class SparkConnectServer(Server):
    """A Spark Connect server.

    Args:
        folder: takes its scratch files, its warehouse and its log. To be removed only after `stop()`.
        jars: Delta Lake's (`obtain(DELTA)`).
        java: what runs it (`find_java()`).
        port: where clients connect; a free one if not given.
        heap_mb: the most its Java heap takes, in MiB.
        cluster: the masters of the cluster that does the work, as `spark://host:port[,host:port]`, whose workers see
            the folders of lakes under the same paths; none for this JVM's own threads.
        conf: more of Spark's settings.
        long_running: whether it is for hours, not minutes (`SparkServer.long_running`).
        of_stores: the jars of object stores (`app.spark_needs.needs`).
        archive: takes its classes once it ends (`SparkServer.archive`), which takes it a minute.

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
        conf: Mapping[str, str] = MappingProxyType({}),
        long_running: bool = False,
        of_stores: Sequence[Path] = (),
        archive: Path | None = None,
    ) -> None:
        super().__init__(folder, port)
        self._jars = jars
        self._java = java
        self._heap_mb = heap_mb
        if cluster is not None and not _CLUSTER.fullmatch(cluster):
            raise UsageError(f"{cluster!r} names no Spark cluster: it must look like spark://host:7077")
        self._cluster = cluster
        self._conf = conf
        self._long_running = long_running
        self._of_stores = of_stores
        self._archive = archive

    @property
    def remote(self) -> str:
        """Where clients connect, as in `SparkSession.builder.remote(...)`; known once it is started."""
        return f"sc://{self.address}"

    def _prepare(self, port: int) -> Child:
        server = SparkServer(
            folder=self._folder,
            port=port,
            java=self._java,
            jars=self._jars,
            heap_mb=self._heap_mb,
            master=self._cluster or ON_THIS_MACHINE,
            address=LOOPBACK if self._cluster is None else _address_towards(self._cluster),
            conf=self._conf,
            long_running=self._long_running,
            of_stores=self._of_stores,
            archive=self._archive,
        )
        return Child(
            self.title,
            server.prepare(),
            self.log,
            folder=self._folder,
            environment=server.environment,
            stop_within_s=_STOP_WITHIN_S if self._archive is None else _ARCHIVED_WITHIN_S,
        )

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


def warm_up(spark_remote: str, lake_root: Path) -> None:
    """Writes one row: the first write takes Spark several seconds more than all others, also where it is not timed."""
    with writing(spark_remote, lake_root, "warm-up") as lake:
        lake.append("warm-up", 1, one_row("warm-up", 0))


@contextmanager
def writing(spark_remote: str, lake_root: Path, writer: str) -> Iterator["Lake"]:
    """A lake to write to, as a consumer does.

    Raises:
        KcgaError: Spark does not write; also what is asked of it within the context.
    """
    from consumer.lake import Lake
    from consumer.session import LakeError

    lake = Lake([spark_remote], str(lake_root), writer)
    try:
        lake.connect()
        yield lake
    except LakeError as error:
        raise KcgaError(f"Spark cannot write to the lake: {error}") from error
    finally:
        lake.close()


def one_row(topic: str, offset: int) -> "pa.Table":
    """What an empty record comes to."""
    from consumer.decide.batch import Record
    from consumer.table import rows

    return rows([Record(TopicPartition(topic, 0), offset, None, None, b"", ())], datetime.now(UTC).date())


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
