"""Brokers that know of transactions what matters here, in memory: for tests of who may still commit or send.

Whoever initialises a producer of a transactional id fences the one that had it: nothing that this one still commits or
sends takes effect, and it learns that (seen on a real broker: tests/consumer/test_group_offsets.py).
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException


class Brokers:
    """What is committed, and what was sent."""

    def __init__(self) -> None:
        self.epochs: Counter[str] = Counter()
        """How many producers each transactional id has had."""
        self.committed: dict[tuple[str, int], Any] = {}
        self.sent: list[tuple[str, int, bytes]] = []

    def producer(self, config: Mapping[str, Any]) -> "Producer":
        return Producer(self, config["transactional.id"])

    def consumer(self, config: Mapping[str, Any]) -> "Consumer":
        del config
        return Consumer(self)


class Producer:
    def __init__(self, brokers: Brokers, transactional_id: str) -> None:
        self._brokers = brokers
        self._id = transactional_id
        self._epoch = 0
        self._positions: list[Any] = []
        self._messages: list[tuple[str, int, bytes]] = []

    def init_transactions(self, timeout: float) -> None:
        del timeout
        self._brokers.epochs[self._id] += 1
        self._epoch = self._brokers.epochs[self._id]

    def begin_transaction(self) -> None:
        self._positions, self._messages = [], []

    def send_offsets_to_transaction(self, positions: list[Any], group: object, timeout: float) -> None:
        del group, timeout
        self._require_newest()
        self._positions = positions

    def produce(self, topic: str, value: bytes, partition: int) -> None:
        self._messages.append((topic, partition, value))

    def commit_transaction(self, timeout: float) -> None:
        del timeout
        self._require_newest()
        self._brokers.committed.update({(each.topic, each.partition): each for each in self._positions})
        self._brokers.sent += self._messages

    def abort_transaction(self, timeout: float) -> None:
        del timeout
        self._require_newest()

    def _require_newest(self) -> None:
        if self._epoch < self._brokers.epochs[self._id]:
            raise KafkaException(KafkaError(KafkaError._FENCED, "fenced", fatal=True))


class Consumer:
    """Of topics without records."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers

    def committed(self, positions: list[Any], timeout: float) -> list[Any]:
        del timeout
        return [self._brokers.committed.get((each.topic, each.partition), each) for each in positions]

    def consumer_group_metadata(self) -> None: ...

    def get_watermark_offsets(self, partition: object, timeout: float) -> tuple[int, int]:
        del partition, timeout
        return 0, 0

    def assign(self, partitions: list[Any]) -> None: ...

    def close(self) -> None: ...
