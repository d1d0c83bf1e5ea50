"""Sends messages of kcga's topics again, later: what a network that doubles and delays would do."""

import heapq
import time
from collections import deque
from collections.abc import Iterable
from random import Random

from confluent_kafka import OFFSET_END, Consumer, Producer
from confluent_kafka import TopicPartition as Position

REMEMBERED = 300
AT_ONE_TIME = 30


class Echo:
    """Listens to topics from now on, and repeats what it heard when it is told to.

    Args:
        bootstrap_servers: of the cluster.
        topics: how many partitions each has.
        seed: of which messages, and how late.
    """

    def __init__(self, bootstrap_servers: str, topics: dict[str, int], seed: int) -> None:
        self._chance = Random(seed)
        self._heard: deque[tuple[str, int, bytes]] = deque(maxlen=REMEMBERED)
        self._due: list[tuple[float, int, tuple[str, int, bytes]]] = []
        self._repeated = 0
        client = {"bootstrap.servers": bootstrap_servers, "log_level": 0}
        self._producer = Producer(client)
        self._consumer = Consumer({**client, "group.id": "echo", "enable.auto.commit": False})
        self._consumer.assign(
            [Position(topic, number, OFFSET_END) for topic, count in topics.items() for number in range(count)]
        )

    def repeat(self, within_s: float) -> None:
        """Has some of the messages come again at moments of the next `within_s` seconds."""
        heard = list(self._heard)
        for record in self._chance.sample(heard, min(AT_ONE_TIME, len(heard))):
            self._repeated += 1
            heapq.heappush(self._due, (time.monotonic() + self._chance.uniform(0, within_s), self._repeated, record))

    def work(self) -> None:
        """Hears what has come, and sends what is due; does not wait."""
        self._heard.extend(self._records())
        while self._due and self._due[0][0] <= time.monotonic():
            _, _, (topic, partition, value) = heapq.heappop(self._due)
            self._producer.produce(topic, value, partition=partition)
        self._producer.poll(0)

    def close(self) -> None:
        self._producer.flush(5)
        self._consumer.close()

    def _records(self) -> Iterable[tuple[str, int, bytes]]:
        for record in self._consumer.consume(500, 0):
            topic, partition, value = record.topic(), record.partition(), record.value()
            if record.error() is None and topic is not None and partition is not None and value is not None:
                yield topic, partition, value
