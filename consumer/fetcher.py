"""Reads the records of the partitions that are held, and commits how far they were written.

A partition is wanted from its start to its stop. Between these it is either read, or it cannot be for the moment (it
does not exist, a broker is away, access is refused): then it has a fault, and is looked at again from time to time.
Its position is always looked up anew, in the group's commits, where nothing was committed at its beginning: whoever
read it before may have gone on since.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import structlog
from confluent_kafka import OFFSET_BEGINNING, TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Position

from consumer.backoff import pause_s
from consumer.batch import Record
from consumer.kafka import REQUEST_LIMIT_S, FatalKafkaError, brief, commit
from domain.partitions import TopicPartition

LINGER_S = 0.02
"""How long a request waits for more records once it has the first: keeps a slow partition from one request a record."""
DELETED_AFTER_REFUSALS = 6
"""A partition that the brokers have called unknown at so many commits in a row is taken for deleted."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one request received, and between which moments (seconds since the epoch)."""

    records: tuple[Record, ...]
    first_at: float
    last_at: float


class Fetcher:
    """Reads partitions and commits positions, for one consumer group.

    Args:
        config: of the client, from `consumer.kafka.fetching_config`.
    """

    def __init__(self, config: Mapping[str, object]) -> None:
        self._consumer = Consumer({**config, "error_cb": self._take_client_error})
        self._wanted: set[TopicPartition] = set()
        self._read: set[TopicPartition] = set()
        self._interned: dict[tuple[str, int], TopicPartition] = {}
        self._faults: dict[TopicPartition, str] = {}
        self._refusals: dict[TopicPartition, int] = {}
        self._doubtful = False
        self._look_again_at = 0.0
        self._failures = 0

    @property
    def fault(self) -> str | None:
        """Why a wanted partition is not read: the first in ascending order, and how many more; none if all are."""
        if not self._faults:
            return None
        partition = min(self._faults)
        more = f" (and {len(self._faults) - 1} more)" if len(self._faults) > 1 else ""
        return f"{partition}: {self._faults[partition]}{more}"

    def start(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads them from now on, each from the position that is committed at this moment."""
        self._wanted.update(partitions)
        self._look_again_at = 0.0
        self.settle()

    def stop(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads them no more. What was fetched of them and not handed out yet is dropped."""
        stopped = set(partitions)
        self._wanted -= stopped
        for partition in stopped:
            self._faults.pop(partition, None)
        self._unassign(stopped & self._read)

    def settle(self) -> None:
        """Begins to read what is wanted and not read yet, where that is possible by now.

        To be called when nothing that was handed out awaits its commit: positions are taken from the commits.
        """
        if time.monotonic() < self._look_again_at or (self._wanted == self._read and not self._doubtful):
            return
        looked_at = self._wanted if self._doubtful else self._wanted - self._read
        try:
            absent = self._absent(sorted(looked_at))
            self._doubtful = False
            for partition, reason in absent.items():
                self._set_fault(partition, reason)
            self._unassign(self._read & absent.keys())
            self._begin_to_read(sorted(looked_at - self._read - absent.keys()))
        except KafkaException as error:
            for partition in self._wanted - self._read:
                self._set_fault(partition, f"its position is not to be had: {brief(error)}")
        self._failures = 0 if self._wanted == self._read else self._failures + 1
        self._look_again_at = time.monotonic() + pause_s(max(self._failures, 1))

    def fetch(self, most_records: int, wait_s: float) -> Fetched:
        """The next records, waiting so long for the first of them.

        Raises:
            FatalKafkaError: the client can do nothing more.
        """
        first = self._consumer.poll(wait_s)
        first_at = last_at = time.time()
        if first is None:
            return Fetched((), first_at, last_at)
        messages = [first]
        if most_records > 1:
            messages += self._consumer.consume(most_records - 1, LINGER_S)
            last_at = time.time()
        records = []
        for message in messages:
            error = message.error()
            if error is None:
                records.append(self._record(message))
            else:
                self._take_error(message, error)
        return Fetched(tuple(records), first_at, last_at)

    def commit(self, next_offsets: Mapping[TopicPartition, int]) -> None:
        """Commits where reading goes on, and returns when the brokers have it.

        Of a partition that was deleted meanwhile there is nothing to commit.

        Raises:
            KafkaException: they are not known to have it.
            FatalKafkaError: the client can do nothing more.
        """
        positions = [
            Position(partition.topic, partition.partition, offset) for partition, offset in next_offsets.items()
        ]
        refused = commit(self._consumer, positions) if positions else {}
        for key, error in refused.items():
            partition = TopicPartition(*key)
            self._refusals[partition] = self._refusals.get(partition, 0) + 1
            unknown = error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
            # A broker that has just begun may not know a partition yet: only the word of several tries is believed.
            if not (unknown and self._refusals[partition] >= DELETED_AFTER_REFUSALS):
                raise KafkaException(error)
            log.warning("deleted: not committed", partition=str(partition), offset=next_offsets[partition])
        for partition in next_offsets:
            self._refusals.pop(partition, None)

    def close(self) -> None:
        self._consumer.close()

    def _record(self, message: Message) -> Record:
        topic, number, offset = message.topic(), message.partition(), message.offset()
        if topic is None or number is None or offset is None:
            raise FatalKafkaError(f"a record without a place: {topic}-{number} at {offset}")
        partition = self._interned.get((topic, number))
        if partition is None:
            partition = self._interned[topic, number] = TopicPartition(topic, number)
        kind, timestamp_ms = message.timestamp()
        headers: Any = message.headers()
        return Record(
            partition,
            offset,
            timestamp_ms if kind != TIMESTAMP_NOT_AVAILABLE else None,
            message.key(),
            message.value(),
            tuple(headers) if headers else (),
        )

    def _take_error(self, message: Message, error: KafkaError) -> None:
        """An error stops the reading of its partition until that can be read again; one of a topic, of all of its."""
        if error.fatal():
            raise FatalKafkaError(error.str())
        topic, number = message.topic(), message.partition()
        partitions = {read for read in self._read if read.topic == topic and number in (read.partition, -1, None)}
        if not partitions:
            log.warning("kafka client", error=error.str(), code=error.name())
        for partition in partitions:
            self._set_fault(partition, error.str())
        self._unassign(partitions)
        self._look_again_at = time.monotonic() + pause_s(1)

    def _take_client_error(self, error: KafkaError) -> None:
        """What the client tells outside of the records: also that a partition has ceased to exist, but not which."""
        log.warning("kafka client", error=error.str(), code=error.name())
        if error.code() in (KafkaError._UNKNOWN_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART):
            self._doubtful = True

    def _begin_to_read(self, partitions: Sequence[TopicPartition]) -> None:
        """Reads each from where the group's commits say.

        Raises:
            KafkaException: that cannot be told for one of them; none of them is read.
        """
        if not partitions:
            return
        asked = [Position(partition.topic, partition.partition) for partition in partitions]
        committed = self._consumer.committed(asked, timeout=REQUEST_LIMIT_S)
        for position in committed:
            if position.error is not None:
                raise KafkaException(position.error)
            if position.offset < 0:
                position.offset = OFFSET_BEGINNING
        self._consumer.incremental_assign(committed)
        for position in committed:
            partition = TopicPartition(position.topic, position.partition)
            self._read.add(partition)
            self._faults.pop(partition, None)
            log.info("reads", partition=str(partition), offset=max(position.offset, 0))

    def _unassign(self, partitions: set[TopicPartition]) -> None:
        if partitions:
            self._consumer.incremental_unassign([Position(held.topic, held.partition) for held in sorted(partitions)])
            self._read -= partitions

    def _set_fault(self, partition: TopicPartition, fault: str) -> None:
        if self._faults.get(partition) != fault:
            log.warning("cannot be read", partition=str(partition), reason=fault)
        self._faults[partition] = fault

    def _absent(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, str]:
        """Those that the brokers do not have, and what they say of it: the client takes them without a word.

        Raises:
            KafkaException: no broker answers.
        """
        absent = {}
        for topic, of_topic in groupby(partitions, key=lambda partition: partition.topic):
            metadata = self._consumer.list_topics(topic, timeout=REQUEST_LIMIT_S).topics[topic]
            for partition in of_topic:
                if metadata.error is not None:
                    absent[partition] = metadata.error.str()
                elif partition.partition not in metadata.partitions:
                    absent[partition] = f"does not exist: the topic has {len(metadata.partitions)} partitions"
        return absent
