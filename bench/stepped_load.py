"""A load whose speeds change from one moment to the next, when the program that measures says so."""

import time
from collections.abc import Mapping

from confluent_kafka import KafkaError, Message, Producer

from cli.background import Background
from domain.partitions import TopicPartition

TICK_S = 0.02
RECORD_BYTES = 500


class SteppedLoad(Background):
    """Writes to each partition at its speed from entering the context to leaving it.

    Args:
        bootstrap_servers: of the cluster.
        speeds: of each partition in bytes/s, at first.
        burst_s: what is due is written so often, all at once.
    """

    def __init__(self, bootstrap_servers: str, speeds: Mapping[TopicPartition, float], burst_s: float = TICK_S) -> None:
        super().__init__("stepped load")
        self.delivered = 0
        """Records that the brokers have acknowledged."""
        self.undelivered = 0
        self._speeds = dict(speeds)
        self._burst_s = burst_s
        self._producer = Producer(
            {"bootstrap.servers": bootstrap_servers, "acks": "all", "linger.ms": 20, "compression.type": "none"}
        )

    def step(self, speeds: Mapping[TopicPartition, float]) -> float:
        """From now on these partitions have these speeds; returns the time in seconds since the epoch."""
        self._speeds = {**self._speeds, **speeds}
        return time.time()

    def _work(self) -> None:
        # Partitions begin spread over a record's time: records that come at once would be a wave in the sum.
        due = {partition: place / len(self._speeds) * RECORD_BYTES for place, partition in enumerate(self._speeds)}
        record, last = bytes(RECORD_BYTES), time.monotonic()
        while not self._stop.wait(self._burst_s):
            now = time.monotonic()
            for partition, speed in self._speeds.items():
                due[partition] += speed * (now - last)
                while due[partition] >= RECORD_BYTES:
                    due[partition] -= RECORD_BYTES
                    self._producer.produce(
                        partition.topic, record, partition=partition.partition, on_delivery=self._count
                    )
            self._producer.poll(0)
            last = now
        self._producer.flush(10)

    def _count(self, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self.delivered += 1
        else:
            self.undelivered += 1
