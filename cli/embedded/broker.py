"""A real Kafka broker of our own: one process that is broker and controller (KRaft), on this machine alone."""

import base64
import uuid
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from cli.embedded.child import Child
from cli.embedded.java import Java
from cli.embedded.ports import LOOPBACK, free_port, listens, require_free

READY_WITHIN_S = 120.0
"""5-7 s on a quiet machine, 25-33 s on a busy one."""

_STOP_WITHIN_S = 20.0

_JVM = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
    "-Dlog4j2.configurationFile=log4j2.properties",
)

_LOG4J = """\
status = warn
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %-5p %m (%c)%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""


class Broker:
    """A Kafka broker that lives as long as its context, or from `start()` to `stop()`.

    Args:
        folder: takes its data, settings and log; made if it does not exist. To be removed only after `stop()`.
        jars: Kafka's jars (`obtain(KAFKA)`).
        java: what runs it (`find_java()`).
        port: where clients connect; a free one if not given.
        heap_mb: the most its Java heap takes, in MiB.
    """

    def __init__(
        self, folder: Path, *, jars: Sequence[Path], java: Java, port: int | None = None, heap_mb: int = 512
    ) -> None:
        self._folder = folder.absolute()
        self._jars = jars
        self._java = java
        self._port = port
        self._heap_mb = heap_mb
        self._child: Child | None = None

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect; known once it is started."""
        if self._port is None:
            raise RuntimeError("the broker was not started")
        return f"{LOOPBACK}:{self._port}"

    @property
    def child(self) -> Child:
        """Its process."""
        if self._child is None:
            raise RuntimeError("the broker was not started")
        return self._child

    @property
    def log(self) -> Path:
        return self._folder / "broker.log"

    def start(self, ready_within_s: float = READY_WITHIN_S) -> None:
        """Starts it, and returns when topics can be created.

        Raises:
            KcgaError: the port is taken; it ended or was not ready in time, with the end of its log.
        """
        self._port = free_port() if self._port is None else require_free(self._port, "the Kafka broker")
        write_settings(self._folder, self._port, free_port())
        self._format_storage()
        self._child = Child(
            "the Kafka broker",
            [*self._jvm(), f"-Xmx{self._heap_mb}m", "kafka.Kafka", "server.properties"],
            self.log,
            folder=self._folder,
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

    def _jvm(self) -> list[str]:
        return [str(self._java.executable), *_JVM, "-cp", ":".join(map(str, self._jars))]

    def _format_storage(self) -> None:
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        command = [*self._jvm(), "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", "server.properties"]
        with Child(
            "Kafka's StorageTool", [*command, "--ignore-formatted"], self.log, folder=self._folder
        ) as format_storage:
            if format_storage.wait(READY_WITHIN_S) != 0:
                raise format_storage.error("the storage of the Kafka broker could not be formatted")

    def _is_ready(self) -> bool:
        if not listens(
            int(self.bootstrap_servers.rpartition(":")[2])
        ):  # so that the client has nothing to complain about
            return False
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        try:
            if not admin.list_topics(timeout=2).brokers:
                return False
            probe = NewTopic("probe", num_partitions=1, replication_factor=1)
            admin.create_topics([probe], validate_only=True, request_timeout=5)["probe"].result()
        except KafkaException:
            return False
        return True


def write_settings(folder: Path, port: int, controller_port: int) -> None:
    """Writes the settings of a broker whose working directory is `folder`; all paths in them are relative to it."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{LOOPBACK}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:{controller_port}",
        "log.dirs": "data",
        "auto.create.topics.enable": "false",
        "default.replication.factor": 1,
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 4,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        "log.cleaner.dedupe.buffer.size": 8 * 1024 * 1024,  # 128 MiB of the heap otherwise
    }
    (folder / "server.properties").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    (folder / "log4j2.properties").write_text(_LOG4J)
