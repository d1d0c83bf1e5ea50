"""The message on `monitor.writeSpeed`."""

from typing import Literal, Self

from pydantic import field_validator

from domain.messages.codec import EpochSeconds, Message, PartitionRef, SpeedBytesPerS
from domain.speeds import WriteSpeeds


class PartitionSpeed(PartitionRef):
    """One partition's write speed in bytes/s; null where it could not be measured."""

    speed: SpeedBytesPerS | None


class WriteSpeedReport(Message):
    """The write speeds of all partitions of interest, each named once."""

    kind: Literal["write_speed"] = "write_speed"
    measured_at: EpochSeconds
    partitions: tuple[PartitionSpeed, ...]

    @field_validator("partitions")
    @classmethod
    def _each_once(cls, partitions: tuple[PartitionSpeed, ...]) -> tuple[PartitionSpeed, ...]:
        seen = set()
        for entry in partitions:
            if entry.key in seen:
                raise ValueError(f"{entry.key} is named twice")
            seen.add(entry.key)
        return partitions

    @classmethod
    def of(cls, speeds: WriteSpeeds) -> Self:
        known = dict(speeds.bytes_per_s)
        return cls(
            measured_at=speeds.measured_at,
            partitions=tuple(
                PartitionSpeed(topic=partition.topic, partition=partition.partition, speed=known.get(partition))
                for partition in sorted(speeds.unknown | known.keys())
            ),
        )

    @property
    def speeds(self) -> WriteSpeeds:
        return WriteSpeeds(
            measured_at=self.measured_at,
            bytes_per_s={entry.key: entry.speed for entry in self.partitions if entry.speed is not None},
            unknown=frozenset(entry.key for entry in self.partitions if entry.speed is None),
        )
