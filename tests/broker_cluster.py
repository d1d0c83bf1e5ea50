"""A Kafka cluster of three brokers, which goes on without any one of them."""

import os
import signal
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer
from confluent_kafka.admin import TopicMetadata

from app.child import Child
from app.jars import KAFKA, obtain
from app.java import Java
from sandbox.broker import Broker, Quorum
from sandbox.ports import LOOPBACK
from tests.fire.network import Line, Network
from tests.patience import PATIENCE_S

BROKERS = 3
HEAP_MB = 320


class BrokerCluster:
    """Brokers 1, 2 and 3: each topic has a replica on every one, and two must have what is acknowledged.

    Args:
        folder: takes a folder of each broker.
        java: what runs them.
        network: through which they are reached too.
    """

    def __init__(self, folder: Path, java: Java, network: Network | None = None) -> None:
        self._folder = folder
        self._java = java
        self._network = network
        self._quorum = Quorum.of(BROKERS)
        self._brokers = {number: self._broker(number) for number in range(1, BROKERS + 1)}
        self._addresses: tuple[str, ...] = ()
        self._away: set[int] = set()
        """Those that were killed and do not serve again yet."""

    def start(self) -> None:
        """Returns when all of them serve."""
        with ThreadPoolExecutor(BROKERS) as pool:
            list(pool.map(Broker.start, self._brokers.values()))
        self._addresses = tuple(broker.bootstrap_servers for broker in self._brokers.values())

    def stop(self) -> None:
        """Kills them all: to leave in good order takes a majority, which the last of them would wait for."""
        for broker in self._brokers.values():
            with suppress(RuntimeError, ProcessLookupError):  # it never began, or is dead already
                os.kill(broker.child.pid, signal.SIGKILL)
            broker.stop()

    @property
    def bootstrap_servers(self) -> str:
        """Of all brokers, whether they run or not; known once they are started."""
        return ",".join(self._addresses)

    @property
    def pids(self) -> dict[int, int]:
        """The process of each broker that was not killed, in ascending order."""
        return {number: broker.child.pid for number, broker in self._brokers.items() if number not in self._away}

    def kill(self, number: int) -> None:
        """Returns when it is dead."""
        os.kill(self.pids[number], signal.SIGKILL)
        self._away.add(number)
        self._brokers[number].stop()

    def begin_again(self, number: int) -> None:
        """Starts a broker that was killed, where it was and with what it had; returns when it serves."""
        port = int(self._addresses[number - 1].rpartition(":")[2])
        self._brokers[number] = self._broker(number, port)
        self._brokers[number].start()
        self._away.remove(number)

    def leader(self, topic: str) -> int:
        """Which broker leads partition 0 of the topic."""
        leader: int = _topics(self.bootstrap_servers)[topic].partitions[0].leader
        return leader

    def know(self, topics: Mapping[str, int]) -> bool:
        """Whether each broker has heard of so many partitions of the topics."""
        return all(_knows(address, topics) for address in self._addresses)

    def _broker(self, number: int, port: int | None = None) -> Broker:
        kind = Broker if self._network is None else partial(BrokerBehind, self._network.lines[number - 1])
        return kind(
            self._folder / f"broker-{number}",
            jars=obtain(KAFKA),
            java=self._java,
            port=port,
            heap_mb=HEAP_MB,
            quorum=self._quorum,
            number=number,
        )


class BrokerBehind(Broker):
    """A broker that is reached over a line too: whoever comes that way is led that way to the others."""

    def __init__(self, line: Line, folder: Path, **of_broker: Any) -> None:
        super().__init__(folder, **of_broker)
        self._line = line

    def _prepare(self, port: int) -> Child:
        child = super()._prepare(port)
        file = self._folder / "server.properties"
        settings = dict(line.split("=", 1) for line in file.read_text().splitlines())
        own, _, controllers = settings["listeners"].partition(",")
        settings["listeners"] = f"{own},{controllers},LINE://{LOOPBACK}:{self._line.to_port}"
        settings["advertised.listeners"] = f"{own},LINE://{LOOPBACK}:{self._line.from_port}"
        settings["listener.security.protocol.map"] = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LINE:PLAINTEXT"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return child


def _topics(bootstrap_servers: str) -> dict[str, TopicMetadata]:
    client = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "broker-cluster", "log_level": 0})
    try:
        topics: dict[str, TopicMetadata] = client.list_topics(timeout=PATIENCE_S).topics
    finally:
        client.close()
    return topics


def _knows(address: str, topics: Mapping[str, int]) -> bool:
    known = _topics(address)
    return all(topic in known and len(known[topic].partitions) >= count for topic, count in topics.items())
