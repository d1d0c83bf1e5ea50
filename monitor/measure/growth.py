"""Decides how many bytes were appended to a partition's log between two measurements of it, or that nobody can know.

Invariant: what is not known is None; it is never guessed, and never negative.

The stored bytes of a log, where brokers tell them, are exact, but they also shrink: retention deletes old segments,
compaction deletes records in the middle, and another replica may have deleted more, or less, than the old leader. So
their difference counts only where it is not negative, on one replica, and the log's start stood still. Otherwise the
records are counted, which no deletion changes, and each is taken to be as large as recent ones were on disk.

Where brokers tell no sizes, samples of what was appended stand in for them. What two sources tell is never mixed: where
one takes the place of the other, measuring begins anew.
"""

import math
from dataclasses import dataclass

from domain.partitions import OffsetRange
from domain.speeds import Method, Source
from monitor.measure.samples import Sample

RECORD_SIZE_MEMORY_S = 300.0
"""After this time an observation weighs 1/e of a new one in the smoothed size of a record. Sizes of records change
with deployments of producers, not with the second: ten windows give a steady average that still follows."""
SAMPLE_MEMORY_S = 10.0
"""The same for samples, which have a few batches each: steadier than the newest alone, and yet soon at another size."""


@dataclass(frozen=True, slots=True)
class LogMeasurement:
    """What the replica of a partition's leader held at one moment."""

    at: float
    """Seconds on a clock that never goes back."""
    topic_id: str
    """Which log: a topic that is created again has another."""
    leader: int
    """Whose replica was measured."""
    stored_bytes: int | None
    """None where the source is offsets."""
    offsets: OffsetRange | None = None
    """None where the broker told the size alone."""
    compacted: bool = False
    sample: Sample | None = None
    """Where the source is offsets: the newest of the log, if any was taken."""

    @property
    def source(self) -> Source:
        return Source.OFFSETS if self.stored_bytes is None else Source.LOG_DIRS


@dataclass(frozen=True, slots=True)
class Growth:
    """What was appended, in bytes on disk; 0 or more."""

    bytes: float
    method: Method


def growth(before: LogMeasurement, after: LogMeasurement, bytes_per_record: float | None) -> Growth | None:
    """What was appended from `before` to `after`.

    Args:
        before: the earlier measurement.
        after: the later one.
        bytes_per_record: the smoothed size of the partition's records on disk; None where it is not known yet.

    Returns:
        None where that cannot be told: another log or source, a log that was cut off at its end, or one that lost
        bytes while its records' size, or their number, is unknown.
    """
    if before.topic_id != after.topic_id:
        return None
    if before.stored_bytes is None or after.stored_bytes is None:
        return _sampled_growth(before, after) if before.source is after.source else None
    stored = after.stored_bytes - before.stored_bytes
    one_replica = before.leader == after.leader
    if before.offsets is None or after.offsets is None:
        return Growth(stored, Method.STORED_BYTES) if one_replica and stored >= 0 and not after.compacted else None
    records = after.offsets.end - before.offsets.end
    if records < 0:
        return None
    start_stood_still = before.offsets.start == after.offsets.start
    if one_replica and start_stood_still and not after.compacted and stored >= 0:
        return Growth(stored, Method.STORED_BYTES)
    if records == 0:
        return Growth(0, Method.END_OFFSETS)
    return None if bytes_per_record is None else Growth(records * bytes_per_record, Method.END_OFFSETS)


def _sampled_growth(before: LogMeasurement, after: LogMeasurement) -> Growth | None:
    if before.offsets is None or after.offsets is None:
        return None
    records = after.offsets.end - before.offsets.end
    if records == 0:
        return Growth(0, Method.END_OFFSETS)
    if records < 0 or after.sample is None:
        return None
    return Growth(records * after.sample.bytes / after.sample.records, Method.END_OFFSETS)


@dataclass(frozen=True, slots=True)
class RecordSize:
    """The size on disk of a partition's records, smoothed over time."""

    bytes: float = 0.0
    records: float = 0.0

    @classmethod
    def of(cls, first: LogMeasurement) -> "RecordSize":
        """What the first measurement of a log tells."""
        return cls() if first.sample is None else cls(*first.sample)

    @property
    def bytes_per_record(self) -> float | None:
        """None as long as no record was seen."""
        return self.bytes / self.records if self.records > 0 else None

    def observe(self, before: LogMeasurement, after: LogMeasurement) -> "RecordSize":
        """The size with these two measurements taken in: by the later one's sample, or where both bytes and records
        grew on one replica.

        That holds for compacted topics, too: the cleaner works once in a while, and then the bytes rarely grow.
        """
        elapsed_s = after.at - before.at
        if after.sample is not None:
            return self._with(*after.sample, math.exp(-elapsed_s / SAMPLE_MEMORY_S))
        if before.stored_bytes is None or after.stored_bytes is None:
            return self
        if before.offsets is None or after.offsets is None:
            return self
        stored = after.stored_bytes - before.stored_bytes
        records = after.offsets.end - before.offsets.end
        one_log = (before.topic_id, before.leader) == (after.topic_id, after.leader)
        if not one_log or before.offsets.start != after.offsets.start or stored <= 0 or records <= 0:
            return self
        return self._with(stored, records, math.exp(-elapsed_s / RECORD_SIZE_MEMORY_S))

    def _with(self, in_bytes: int, records: int, fading: float) -> "RecordSize":
        return RecordSize(bytes=self.bytes * fading + in_bytes, records=self.records * fading + records)
