"""A monitor that runs in a thread, and what it publishes."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as KafkaPartition

from domain.messages import WriteSpeedReport
from monitor.runner import Monitor
from tests.patience import PATIENCE_S


class Reports:
    """Reads what the monitor publishes from now on."""

    def __init__(self, bootstrap_servers: str, topic: str, client: Mapping[str, str] = MappingProxyType({})) -> None:
        self._consumer = Consumer({**client, "bootstrap.servers": bootstrap_servers, "group.id": topic})
        self._consumer.assign([KafkaPartition(topic, 0, 0)])

    def next(self) -> WriteSpeedReport:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            message = self._consumer.poll(1.0)
            if message is not None and message.error() is None:
                return WriteSpeedReport.decode(message.value())
        raise TimeoutError("the monitor published nothing")

    def until(self, wanted: Callable[[WriteSpeedReport], bool]) -> list[WriteSpeedReport]:
        """All reports up to the first that is wanted."""
        deadline = time.monotonic() + PATIENCE_S
        reports = [self.next()]
        while not wanted(reports[-1]):
            assert time.monotonic() < deadline, f"the last report is {reports[-1]}"
            reports.append(self.next())
        return reports

    def close(self) -> None:
        self._consumer.close()


@contextmanager
def running(monitor: Monitor) -> Iterator[None]:
    """The monitor runs in a thread; that it dies is the test's failure."""
    stop = threading.Event()
    faults: list[BaseException] = []

    def run() -> None:
        try:
            monitor.run(stop)
        except BaseException as error:
            faults.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(PATIENCE_S)
    assert not thread.is_alive(), "the monitor did not stop"
    assert not faults, f"the monitor died: {faults[0]!r}"
