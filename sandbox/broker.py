"""A real Kafka broker of our own: a process that is broker and controller (KRaft), alone or with others of its kind, on
this machine."""

import base64
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from app.child import Child
from app.java import Java
from brokers.clients import QUIET
from consumer import jvm
from sandbox.ports import LOOPBACK, free_port
from sandbox.security import BrokerSecurity
from sandbox.server import READY_WITHIN_S, Server

_STOP_WITHIN_S = 20.0

_JVM = (
    *jvm.SAFE,
    *jvm.UNVERIFIED,
    "-XX:TieredStopAtLevel=1",
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


@dataclass(frozen=True, slots=True)
class Quorum:
    """The brokers of one cluster. Topics have a replica on each, up to three, and all but one must be in sync."""

    cluster_id: str
    controller_ports: tuple[int, ...]
    """Where they talk to one another: of the brokers 1, 2 and so on."""

    @classmethod
    def of(cls, brokers: int) -> "Quorum":
        """A new cluster of so many."""
        # One id in 64 would begin with -, and be taken for an option.
        cluster_id = "k" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]
        return cls(cluster_id, tuple(free_port() for _ in range(brokers)))


class Broker(Server):
    """A Kafka broker. A folder that was another's before, since stopped, has that one's topics.

    Args:
        folder: takes its data, settings and log; made if it does not exist. To be removed only after `stop()`.
        jars: Kafka's jars (`obtain(KAFKA)`).
        java: what runs it (`find_java()`).
        port: where clients connect; a free one if not given.
        heap_mb: the most its Java heap takes, in MiB.
        quorum: the cluster that it belongs to, which is ready once most of its brokers are started; one of its own if
            not given.
        number: which broker of the quorum it is, from 1 on.
        security: who may do what; everybody everything, in plain text, where there is none.
    """

    title = "the Kafka broker"

    def __init__(
        self,
        folder: Path,
        *,
        jars: Sequence[Path],
        java: Java,
        port: int | None = None,
        heap_mb: int = 512,
        quorum: Quorum | None = None,
        number: int = 1,
        security: BrokerSecurity | None = None,
    ) -> None:
        super().__init__(folder, port)
        self._quorum = quorum
        self._number = number
        self._security = security
        of_security = () if security is None else security.jvm
        self._jvm = [str(java.executable), *_JVM, *of_security, f"-Xmx{heap_mb}m", "-cp", ":".join(map(str, jars))]

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect; known once it is started."""
        return self.address

    def _prepare(self, port: int) -> Child:
        quorum = self._quorum or Quorum.of(1)
        (self._folder / "server.properties").write_text(_settings(port, quorum, self._number, self._security))
        (self._folder / "log4j2.properties").write_text(_LOG4J)
        if not (self._folder / "data" / "meta.properties").exists():
            self._format_storage(quorum.cluster_id)
        command = [*self._jvm, "kafka.Kafka", "server.properties"]
        return Child(self.title, command, self.log, folder=self._folder, stop_within_s=_STOP_WITHIN_S)

    def _format_storage(self, cluster_id: str) -> None:
        command = [*self._jvm, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", "server.properties"]
        if self._security is not None:
            command += ["--add-scram", self._security.scram]
        with self._run(Child("Kafka's StorageTool", command, self.log, folder=self._folder)) as formatting:
            if formatting.wait(READY_WITHIN_S) != 0:
                raise formatting.error(f"the storage of {self.title} could not be formatted")

    def _answers(self) -> bool:
        access = {} if self._security is None else self._security.administrator
        admin = AdminClient({**access, **QUIET, "bootstrap.servers": self.bootstrap_servers})
        probe = NewTopic("probe", num_partitions=1, replication_factor=1)
        try:
            admin.create_topics([probe], validate_only=True, request_timeout=5)[probe.topic].result()
        except KafkaException:
            return False
        return True


def _settings(port: int, quorum: Quorum, number: int, security: BrokerSecurity | None) -> str:
    """The settings of a broker whose working directory is its folder: the paths in them are relative."""
    voters = ",".join(f"{voter}@{LOOPBACK}:{at}" for voter, at in enumerate(quorum.controller_ports, start=1))
    controller_port = quorum.controller_ports[number - 1]
    replicas = min(3, len(quorum.controller_ports))
    in_sync = max(1, replicas - 1)
    protocol = "PLAINTEXT" if security is None else "SASL_SSL"
    settings = {
        "process.roles": "broker,controller",
        "node.id": number,
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{protocol}://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:{controller_port}",
        "log.dirs": "data",
        "auto.create.topics.enable": "false",
        "default.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": replicas,
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": 4,
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
        "group.initial.rebalance.delay.ms": 0,
        "log.cleaner.dedupe.buffer.size": 8 * 1024 * 1024,  # 128 MiB of the heap otherwise
        **({} if security is None else security.broker_settings()),
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())
