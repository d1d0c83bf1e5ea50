"""A load whose speeds change from one moment to the next, when the program that measures says so."""

import time
from collections.abc import Callable, Mapping

from confluent_kafka import KafkaError, Message, Producer

from brokers.clients import ON_NEW_TOPICS
from domain.partitions import TopicPartition
from sandbox.background import Background

TICK_S = 0.02
RECORD_BYTES = 500
_NOTHING = bytes(RECORD_BYTES)
LONGEST_PAUSE_S = 0.5
"""What is due of a longer one (the machine stood still) is not made up for: at once it would be another load."""
ACKNOWLEDGED_WITHIN_S = 30.0
"""At the end: in ordinary times it takes a moment, and while a broker is replaced by another some more."""


def nothing(_: TopicPartition) -> bytes:
    """A value that says nothing, the same for each record."""
    return _NOTHING


class SteppedLoad(Background):
    """Writes to each partition at its speed from entering the context to leaving it.

    Args:
        bootstrap_servers: of the cluster.
        speeds: of each partition in bytes/s, at first.
        burst_s: what is due is written so often, all at once.
        value: of the next record of a partition; called for one after the other, in their order.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        speeds: Mapping[TopicPartition, float],
        burst_s: float = TICK_S,
        value: Callable[[TopicPartition], bytes] = nothing,
    ) -> None:
        super().__init__("stepped load")
        self._speeds = dict(speeds)
        self._burst_s = burst_s
        self._value = value
        self._written = self._acknowledged = 0
        self._producer = Producer(
            {
                **ON_NEW_TOPICS,
                "bootstrap.servers": bootstrap_servers,
                "enable.idempotence": True,
                "linger.ms": 20,
                "compression.type": "none",
                "log_level": 3,
                "on_delivery": self._count,
            }
        )

    @property
    def acknowledged(self) -> int:
        """How many records the brokers have told that they have."""
        return self._acknowledged

    @property
    def unacknowledged(self) -> int:
        """How many are with the client, or were refused."""
        return self._written - self._acknowledged

    def step(self, speeds: Mapping[TopicPartition, float]) -> float:
        """From now on these partitions have these speeds; returns the time in seconds since the epoch."""
        self._speeds = {**self._speeds, **speeds}
        return time.time()

    def _work(self) -> None:
        # Partitions begin spread over a record's time: records that come at once would be a wave in the sum.
        due = {partition: place / len(self._speeds) * RECORD_BYTES for place, partition in enumerate(self._speeds)}
        last = time.monotonic()
        while not self._stop.wait(self._burst_s):
            now = time.monotonic()
            for partition, speed in self._speeds.items():
                due[partition] += speed * min(now - last, self._burst_s + LONGEST_PAUSE_S)
                while due[partition] >= RECORD_BYTES:
                    record = self._value(partition)
                    due[partition] -= len(record)
                    self._producer.produce(partition.topic, record, partition=partition.partition)
                    self._written += 1
            self._producer.poll(0)
            last = now
        self._producer.flush(ACKNOWLEDGED_WITHIN_S)

    def _count(self, error: KafkaError | None, _: Message) -> None:
        self._acknowledged += error is None
