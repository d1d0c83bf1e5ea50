"""Brokers in memory, with what of transactions matters here: for tests of who may still commit or send.

Whoever initialises a producer of a transactional id fences the one that had it: nothing that this one still commits or
sends takes effect, and it learns that (as a real broker does in tests/consumer/test_group_offsets.py).
"""

import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Position

Key = tuple[str, int]


class Brokers:
    """What is committed, and what was sent."""

    def __init__(self) -> None:
        self.epochs: Counter[str] = Counter()
        """How many producers each transactional id has had."""
        self.forgotten: set[str] = set()
        """Transactional ids that have expired."""
        self.committed: dict[Key, Position] = {}
        self.records: defaultdict[Key, list[bytes]] = defaultdict(list)

    def producer(self, config: Mapping[str, Any]) -> "Producer":
        return Producer(self, config.get("transactional.id"))

    def consumer(self, config: Mapping[str, Any]) -> "Consumer":
        del config
        return Consumer(self)


class Producer:
    """One without a transactional id sends at once."""

    def __init__(self, brokers: Brokers, transactional_id: str | None) -> None:
        self._brokers = brokers
        self._id = transactional_id
        self._epoch = 0
        self._positions: list[Position] = []
        self._records: list[tuple[Key, bytes]] = []

    def init_transactions(self, timeout: float) -> None:
        del timeout
        assert self._id is not None
        self._brokers.epochs[self._id] += 1
        self._epoch = self._brokers.epochs[self._id]

    def begin_transaction(self) -> None:
        self._positions, self._records = [], []

    def send_offsets_to_transaction(self, positions: list[Position], group: object, timeout: float) -> None:
        del group, timeout
        self._require_newest()
        self._positions = positions

    def produce(self, topic: str, value: bytes, partition: int, on_delivery: object = None) -> None:
        del on_delivery
        self._records.append(((topic, partition), value))
        if self._id is None:
            self._send()

    def commit_transaction(self, timeout: float) -> None:
        del timeout
        self._require_newest()
        self._brokers.committed.update({(each.topic, each.partition): each for each in self._positions})
        self._send()

    def abort_transaction(self, timeout: float) -> None:
        del timeout
        self._require_newest()

    def flush(self) -> int:
        return 0

    def _send(self) -> None:
        for key, value in self._records:
            self._brokers.records[key].append(value)
        self._records = []

    def _require_newest(self) -> None:
        assert self._id is not None
        if self._id in self._brokers.forgotten:
            raise KafkaException(KafkaError(KafkaError.INVALID_PRODUCER_ID_MAPPING, "expired"))
        if self._epoch < self._brokers.epochs[self._id]:
            raise KafkaException(KafkaError(KafkaError._FENCED, "fenced", fatal=True))


class Message:
    def __init__(self, key: Key, offset: int, value: bytes) -> None:
        self._key = key
        self._offset = offset
        self._value = value

    def topic(self) -> str:
        return self._key[0]

    def partition(self) -> int:
        return self._key[1]

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return self._value

    def error(self) -> None: ...


class Consumer:
    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._next: dict[Key, int] = {}

    def assign(self, positions: list[Position]) -> None:
        self._next = {
            (each.topic, each.partition): 0 if each.offset == OFFSET_BEGINNING else each.offset for each in positions
        }

    def consume(self, most: int, timeout: float) -> list[Message]:
        deadline = time.monotonic() + timeout
        while True:
            messages = [
                Message(key, offset, value)
                for key, position in self._next.items()
                for offset, value in enumerate(self._brokers.records[key][position:], start=position)
            ][:most]
            for message in messages:
                self._next[message.topic(), message.partition()] = message.offset() + 1
            if messages or time.monotonic() > deadline:
                return messages
            time.sleep(0.005)

    def position(self, positions: list[Position]) -> list[Position]:
        return [Position(each.topic, each.partition, self._next[each.topic, each.partition]) for each in positions]

    def get_watermark_offsets(self, at: Position, timeout: float) -> tuple[int, int]:
        del timeout
        return 0, len(self._brokers.records[at.topic, at.partition])

    def committed(self, positions: list[Position], timeout: float) -> list[Position]:
        del timeout
        return [self._brokers.committed.get((each.topic, each.partition), each) for each in positions]

    def consumer_group_metadata(self) -> None: ...

    def close(self) -> None: ...
