"""A load whose speeds change from one moment to the next, when the program that measures says so."""

import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from confluent_kafka import Producer

from domain.partitions import TopicPartition

TICK_S = 0.02
RECORD_BYTES = 500


class SteppedLoad:
    """Writes to each partition at its speed from entering the context to leaving it.

    Args:
        bootstrap_servers: of the cluster.
        speeds: of each partition in bytes/s, at first.
        burst_s: what is due is written so often, all at once.
    """

    def __init__(self, bootstrap_servers: str, speeds: Mapping[TopicPartition, float], burst_s: float = TICK_S) -> None:
        self._speeds = dict(speeds)
        self._burst_s = burst_s
        self._producer = Producer(
            {"bootstrap.servers": bootstrap_servers, "acks": "all", "linger.ms": 20, "compression.type": "none"}
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write, name="stepped load", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._producer.flush(10)

    def step(self, speeds: Mapping[TopicPartition, float]) -> float:
        """From now on these partitions have these speeds; returns the time in seconds since the epoch."""
        self._speeds = {**self._speeds, **speeds}
        return time.time()

    def _write(self) -> None:
        # Partitions begin spread over a record's time: records that come at once would be a wave in the sum.
        due = {partition: place / len(self._speeds) * RECORD_BYTES for place, partition in enumerate(self._speeds)}
        record, last = bytes(RECORD_BYTES), time.monotonic()
        while not self._stop.wait(self._burst_s):
            now = time.monotonic()
            for partition, speed in self._speeds.items():
                due[partition] += speed * (now - last)
                while due[partition] >= RECORD_BYTES:
                    due[partition] -= RECORD_BYTES
                    self._producer.produce(partition.topic, record, partition=partition.partition)
            self._producer.poll(0)
            last = now
