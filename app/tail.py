"""What kcga's topics hold: read from their ends backwards, or from a moment on, and no further than needed.

Records are aged by when the brokers took them in, as their clock has it, whatever their senders' say.
"""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Position

from app.access import client_config
from app.errors import KcgaError
from app.refusals import of_settings
from app.settings import Settings
from brokers.clients import NO_COMMITS, QUIET
from brokers.clocks import ahead_s
from brokers.errors import reason
from brokers.reading import SOON_AT_THE_END, bounds, records
from domain.group_view.clocks import TOLERATED_S

READERS = "kcga-tail-"
"""What the names of the readers' groups begin with; they commit nothing."""
CHUNK = 50
"""How many offsets are read at first, backwards; twice as many each further time."""
AT_ONCE = 5_000
REQUEST_TIMEOUT_S = 10.0
LOOK_EVERY_S = 0.005
LAST_FEW = 4
"""Offsets before any among which there is a record, if there is one at all, where a transaction takes two."""
LISTEN_S = 5.0
"""Longer than the components of a group that runs are silent."""


class Arrived(NamedTuple):
    """A record of a partition."""

    at: float
    """When the brokers took it in: by this machine's clock, once the two have been compared, in s since the epoch."""
    offset: int
    value: bytes


class Tail:
    """Reads partitions of the topics that the settings name; made by `tail`."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._brokers_ahead_s = 0.0
        """Their clock, of this machine's."""

    def compare_clocks(self, *partitions: tuple[str, int]) -> None:
        """Finds out how far the brokers' clock is ahead: before anything is read by its age.

        Where the newest record is not of just now, either their clock differs or nobody has spoken for a while. So the
        next record is waited for, which tells. If none comes, this machine's clock is taken for theirs.

        Args:
            partitions: on which much is said.

        Raises:
            KafkaException: the brokers do not answer.
        """
        ends = [(topic, partition, self._bounds(topic, partition)) for topic, partition in partitions]
        newest = [
            record.at
            for topic, partition, (low, high) in ends
            for record in self._between(topic, partition, max(low, high - LAST_FEW), high)
        ]
        if not newest or abs(max(newest) - time.time()) <= TOLERATED_S:
            return
        since = time.time()
        for record in self.arriving(*partitions, within_s=LISTEN_S):
            kind, timestamp_ms = record.timestamp()
            if kind == TIMESTAMP_LOG_APPEND_TIME:
                self._brokers_ahead_s = ahead_s(timestamp_ms / 1000, since, until=time.time())
                return

    def newest_first(self, topic: str, partition: int = 0) -> Iterator[Arrived]:
        """All records, from the newest back, read as far as they are looked at; none where there is no such topic.

        Raises:
            KafkaException: the brokers do not answer.
        """
        low, high = self._bounds(topic, partition)
        size = CHUNK
        while low < high:
            begin = max(low, high - size)
            yield from reversed(list(self._between(topic, partition, begin, high)))
            high, size = begin, 2 * size

    def since(self, topic: str, at: float, partition: int = 0, *, one_more: bool = False) -> Iterator[Arrived]:
        """The records that the brokers have had since `at`, in s since the epoch; none where there is no such topic.

        Args:
            topic: whose.
            at: since when.
            partition: of the topic.
            one_more: whether the last before them comes, too; others before it may.

        Raises:
            KafkaException: the brokers do not answer.
        """
        low, high = self._bounds(topic, partition)
        if low >= high:
            return
        asked = Position(topic, partition, max(0, int(1000 * (at + self._brokers_ahead_s))))
        (found,) = self._consumer.offsets_for_times([asked], REQUEST_TIMEOUT_S)
        begin = found.offset if found.offset >= 0 else high  # else everything is older
        yield from self._between(topic, partition, max(low, begin - LAST_FEW * one_more), high)

    def arriving(self, *partitions: tuple[str, int], within_s: float) -> Iterator[Message]:
        """What comes from now on, for so long, each record as it comes.

        Raises:
            KafkaException: the brokers do not answer.
        """
        until = time.monotonic() + within_s
        ends = [Position(topic, partition, self._bounds(topic, partition)[1]) for topic, partition in partitions]
        self._consumer.assign(ends)
        while time.monotonic() < until:
            for record in self._consumer.consume(AT_ONCE, LOOK_EVERY_S):
                if record.error() is None:
                    yield record

    def _bounds(self, topic: str, partition: int) -> tuple[int, int]:
        try:
            return bounds(self._consumer, Position(topic, partition), REQUEST_TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION):
                return 0, 0
            raise

    def _between(self, topic: str, partition: int, begin: int, end: int) -> Iterator[Arrived]:
        """The records at these offsets, the last one excluded."""
        for record in records(self._consumer, Position(topic, partition, begin), end, REQUEST_TIMEOUT_S):
            at = record.timestamp()[1] / 1000 - self._brokers_ahead_s
            yield Arrived(at, record.offset() or 0, record.value() or b"")


@contextmanager
def tail(settings: Settings) -> Iterator[Tail]:
    """What reads; its client is closed at the end.

    Raises:
        UsageError: the client's settings are wrong.
        KcgaError: the cluster does not answer.
    """
    kafka = settings.kafka
    config = client_config(kafka)
    complaints: list[KafkaError] = []
    with of_settings():
        consumer = Consumer(
            {
                "error_cb": complaints.append,
                **QUIET,
                **config,
                **SOON_AT_THE_END,
                "bootstrap.servers": kafka.bootstrap_servers,
                "client.id": "kcga-tail",
                "group.id": f"{READERS}{uuid.uuid4().hex}",
                **NO_COMMITS,
            }
        )
    try:
        yield Tail(consumer)
    except KafkaException as error:
        consumer.poll(0)  # only then does the client tell what it has to complain of
        why = reason(error.args[0], complaints)
        raise KcgaError(f"Kafka at {kafka.bootstrap_servers} cannot be read: {why}") from error
    finally:
        consumer.close()
