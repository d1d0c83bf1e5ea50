"""The message on `monitor.writeSpeed`."""

from collections import Counter
from typing import Literal, Self

from pydantic import field_validator

from domain.messages.codec import (
    Amount,
    Count,
    EpochSeconds,
    Message,
    Part,
    PartitionRef,
    SpeedBytesPerS,
    Topic,
    Words,
)
from domain.partitions import TopicPartition
from domain.speeds import Lag, MeasuredBy, Method, Origin, WriteSpeeds


class PartitionSpeed(PartitionRef):
    """One partition's write speed, where that comes from, and what the group has yet to read of it."""

    speed: SpeedBytesPerS | None
    """In bytes/s; null where it could not be measured."""
    method: Method | None = None
    """How the speed was measured; null where there is none."""
    age_s: Amount | None = None
    """How old the newest measurement in the speed was at `measured_at`; null where there is none."""
    lag_records: Count | None = None
    """What is written and not committed by the group yet; null where it is not known, which is not 0."""
    lag_bytes: Amount | None = None
    """The same in bytes on the brokers' disks."""
    lag_s: Amount | None = None
    """The same in seconds of writing at the present speed; null where that is 0 or not known."""

    @classmethod
    def told(cls, partition: TopicPartition, speeds: WriteSpeeds) -> Self:
        """What `speeds` has on a partition."""
        origin, lag = speeds.origins.get(partition), speeds.lags.get(partition)
        return cls(
            topic=partition.topic,
            partition=partition.partition,
            speed=speeds.bytes_per_s.get(partition),
            method=origin.method if origin else None,
            age_s=origin.age_s if origin else None,
            lag_records=lag.records if lag else None,
            lag_bytes=lag.bytes if lag else None,
            lag_s=lag.seconds if lag else None,
        )


class TopicsOfSource(Part):
    """What tells the speeds of some topics."""

    source: Words
    """`log_dirs` (what logs take on the brokers' disks) or `offsets` (end offsets, and samples of records)."""
    topics: tuple[Topic, ...]
    because: Words = ""
    """Why it is this source; empty where it is the best."""


class WriteSpeedReport(Message):
    """The write speeds of all partitions of interest, each named once."""

    kind: Literal["write_speed"] = "write_speed"
    measured_at: EpochSeconds
    partitions: tuple[PartitionSpeed, ...]
    gone: tuple[PartitionRef, ...] = ()
    """Partitions that were deleted, or are of interest no more. One that is only not named is neither."""
    sources: tuple[TopicsOfSource, ...] = ()
    """What tells the speeds; not said by version 0.1."""
    window_s: Amount | None = None
    """Over which the speeds are means, once that is full; not said by version 0.1."""

    @field_validator("partitions")
    @classmethod
    def _each_once(cls, partitions: tuple[PartitionSpeed, ...]) -> tuple[PartitionSpeed, ...]:
        names = Counter((entry.topic, entry.partition) for entry in partitions)
        if len(names) < len(partitions):
            ((twice, _),) = names.most_common(1)
            raise ValueError(f"{TopicPartition(*twice)} is named twice")
        return partitions

    @classmethod
    def of(cls, speeds: WriteSpeeds) -> Self:
        return cls(
            measured_at=speeds.measured_at,
            partitions=tuple(
                PartitionSpeed.told(partition, speeds)
                for partition in sorted(speeds.unknown | speeds.bytes_per_s.keys())
            ),
            gone=tuple(map(PartitionRef.of, sorted(speeds.gone))),
            sources=tuple(TopicsOfSource(**each._asdict()) for each in speeds.sources),
            window_s=speeds.window_s,
        )

    @property
    def speeds(self) -> WriteSpeeds:
        bytes_per_s, unknown = dict[TopicPartition, float](), set[TopicPartition]()
        origins, lags = dict[TopicPartition, Origin](), dict[TopicPartition, Lag]()
        for entry in self.partitions:
            partition = entry.key
            if entry.speed is None:
                unknown.add(partition)
            else:
                bytes_per_s[partition] = entry.speed
            if entry.method is not None and entry.age_s is not None:
                origins[partition] = Origin(entry.method, entry.age_s)
            if entry.lag_records is not None and entry.lag_bytes is not None:
                lags[partition] = Lag(entry.lag_records, entry.lag_bytes, entry.lag_s)
        gone = frozenset(entry.key for entry in self.gone) - {entry.key for entry in self.partitions}
        sources = tuple(MeasuredBy(each.source, each.topics, each.because) for each in self.sources)
        return WriteSpeeds(
            self.measured_at, bytes_per_s, frozenset(unknown), origins, lags, gone, sources, self.window_s
        )
