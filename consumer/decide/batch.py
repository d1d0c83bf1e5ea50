"""The records of one cycle, batched by topic, and the account of who read what and when."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from consumer.decide.reached import Reached
from domain.messages import Order, Read
from domain.partitions import TopicPartition


class Record(NamedTuple):
    """One record as it lies in Kafka."""

    partition: TopicPartition
    offset: int
    timestamp_ms: int | None
    """Since the epoch; none where the broker knows none."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    amiss: str | None = None
    """What of it could not be read; None where nothing is missing."""
    epoch: int | None = None
    """Of the leader that took it; none if unknown."""

    @property
    def bytes(self) -> int:
        """Of key and value, uncompressed."""
        return len(self.key or b"") + len(self.value or b"")


@dataclass(slots=True)
class _Span:
    """What a batch holds of one partition."""

    first: Reached
    last: Reached
    records: int
    first_read_at: float
    last_read_at: float


class Batch:
    """The records of one cycle. Grows while the cycle fetches, and is then written as a whole.

    Records of a partition come in ascending order of their offsets, as Kafka delivers them.
    """

    def __init__(self) -> None:
        self.by_topic: dict[str, list[Record]] = {}
        """Until they are taken."""
        self.bytes = 0
        self.records = 0
        self.largest_bytes = 0
        """Of a record."""
        self._spans: dict[TopicPartition, _Span] = {}

    def add(self, records: Iterable[Record], first_read_at: float, last_read_at: float) -> None:
        """Takes in `records`, which were received between two moments (seconds since the epoch)."""
        for record in records:
            self.by_topic.setdefault(record.partition.topic, []).append(record)
            size = record.bytes
            self.bytes += size
            self.records += 1
            self.largest_bytes = max(self.largest_bytes, size)
            span = self._spans.get(record.partition)
            if span is None:
                reached = Reached(record.offset, record.epoch)
                self._spans[record.partition] = _Span(reached, reached, 1, first_read_at, last_read_at)
            else:
                span.last = Reached(record.offset, record.epoch)
                span.last_read_at = last_read_at
                span.records += 1

    def __contains__(self, partition: TopicPartition) -> bool:
        """Whether it holds any record of the partition."""
        return partition in self._spans

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Lets go of all that it holds of these partitions, as if it had never been fetched."""
        dropped = self._spans.keys() & set(partitions)
        for topic in {partition.topic for partition in dropped}:
            records = self.by_topic.pop(topic)
            if kept := [record for record in records if record.partition not in dropped]:
                self.by_topic[topic] = kept
            self.bytes -= sum(record.bytes for record in records) - sum(record.bytes for record in kept)
            self.records -= len(records) - len(kept)
        for partition in dropped:
            del self._spans[partition]

    def drop_topic(self, topic: str) -> dict[TopicPartition, Reached]:
        """Lets go of all that it holds of the topic; where that began."""
        began = {partition: span.first for partition, span in self._spans.items() if partition.topic == topic}
        self.drop(began.keys())
        return began

    def split(self) -> dict[str, "Batch"]:
        """A batch for each topic; this one holds no records any more, its account stays."""
        batches: dict[str, Batch] = {}
        for topic, records in self.take().items():
            batches[topic] = batch = Batch()
            batch.by_topic = {topic: records}
            batch._spans = {partition: span for partition, span in self._spans.items() if partition.topic == topic}
            batch.records = len(records)
            sizes = [record.bytes for record in records]
            batch.bytes, batch.largest_bytes = sum(sizes), max(sizes)
        return batches

    def take(self) -> dict[str, list[Record]]:
        """The records by topic, which the batch holds no longer; its account stays."""
        taken, self.by_topic = self.by_topic, {}
        return taken

    def epochs(self, *, whole: bool) -> dict[int, int]:
        """Of the leaders that took the last record of each partition, as far as they are known; of a batch of one
        topic. Of a part of it, where one leader took all that it has of the partition."""
        return {
            partition.partition: span.last.epoch
            for partition, span in self._spans.items()
            if span.last.epoch is not None and (whole or span.first.epoch == span.last.epoch)
        }

    @property
    def record_bytes(self) -> float:
        """The mean, in a batch with records."""
        return self.bytes / self.records

    @property
    def positions(self) -> dict[TopicPartition, Reached]:
        """Where reading goes on after this batch: what is committed once it is written."""
        return {partition: span.last.next for partition, span in self._spans.items()}

    def reads(self, stints: Mapping[TopicPartition, Order]) -> tuple[Read, ...]:
        """What was read of each partition, in ascending order of the partitions; `stints` are those it was read in."""
        return tuple(
            Read(
                topic=partition.topic,
                partition=partition.partition,
                stint=stints[partition],
                first_offset=span.first.offset,
                last_offset=span.last.offset,
                records=span.records,
                first_read_at=span.first_read_at,
                last_read_at=span.last_read_at,
            )
            for partition, span in sorted(self._spans.items())
        )
