"""The services that all tests of a run share, whichever of its processes a test runs in.

The first test that asks for one starts it, in the process that the run began with; that process stops it at the end.
"""

import secrets
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from multiprocessing.managers import BaseManager
from pathlib import Path
from typing import Protocol

from app.jars import DELTA, KAFKA, obtain
from app.java import find_java
from sandbox.broker import Broker
from sandbox.spark import SparkConnectServer

SPARK_HEAP_MB = 4096
"""Many tests write at once."""


@dataclass(frozen=True, slots=True)
class SharedBroker:
    """A Kafka broker: names of topics and groups must be `unique_name`s."""

    bootstrap_servers: str


@dataclass(frozen=True, slots=True)
class SharedSpark:
    """A Spark Connect server: tables must lie in `lake_root`."""

    remote: str


class Services(Protocol):
    """Both return when the service serves.

    Raises:
        KcgaError: it cannot be started.
    """

    def broker(self) -> SharedBroker: ...
    def spark(self) -> SharedSpark: ...


class OwnServices:
    """Services of this process."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._starts_broker, self._starts_spark = threading.Lock(), threading.Lock()

    def broker(self) -> SharedBroker:
        with self._starts_broker:
            return SharedBroker(self._broker.bootstrap_servers)

    def spark(self) -> SharedSpark:
        with self._starts_spark:
            return SharedSpark(self._spark.remote)

    def close(self) -> None:
        """Stops what was started."""
        self._stack.close()

    def serve(self) -> tuple[str, bytes]:
        """Lets processes of this user ask for them: where, and the key that opens it."""
        key = secrets.token_bytes(16)
        server = _manager(lambda: self)(authkey=key).get_server()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return str(server.address), key

    @cached_property
    def _broker(self) -> Broker:
        return self._stack.enter_context(Broker(self._folder("broker"), jars=obtain(KAFKA), java=find_java()))

    @cached_property
    def _spark(self) -> SparkConnectServer:
        """It serves all of a run: after the first 600 appends, compiling as well as Java can has paid for itself."""
        server = SparkConnectServer(
            self._folder("spark"), jars=obtain(DELTA), java=find_java(), heap_mb=SPARK_HEAP_MB, long_running=True
        )
        return self._stack.enter_context(server)

    def _folder(self, name: str) -> Path:
        return Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix=f"kcga-tests-{name}-")))


def services_of(address: str, key: bytes) -> Services:
    """The services of the process that serves them there."""
    manager = _manager(None)(address=address, authkey=key)
    manager.connect()
    services: Services = manager.services()  # type: ignore[attr-defined]
    return services


def _manager(serves: Callable[[], OwnServices] | None) -> type[BaseManager]:
    class Manager(BaseManager):
        pass

    Manager.register("services", serves, exposed=["broker", "spark"])
    return Manager
