"""Decides which records are looked at to learn how large those of a partition are, and what a look at them tells.

Brokers hand out batches as they lie on their disks: compressed, with the size of the batch and the number of its
records in a header that is not. So a sample tells what DescribeLogDirs would have counted, and nothing is unpacked.
"""

import struct
from collections.abc import Mapping
from typing import NamedTuple

from domain.partitions import OffsetRange, TopicPartition

SAMPLE_BYTES = 32_768
"""Of a partition at once: two batches of a Java producer, as large as it makes them unless told otherwise."""
AT_ONCE = 128
"""So many partitions of a broker at a time, which are 4 MiB; the others have their turn next."""
RECENT_RECORDS = 1_000
"""So far from its end a log is looked at where nothing is known of it. The last record alone may be a mere marker."""

_HEADER = struct.Struct(">qiibIhi")
"""Of a batch, its beginning: base offset, length of what follows that, leader epoch, magic, checksum, attributes, and
the offset of the last record from the base."""
_BEFORE_LENGTH_COUNTS = 12
_MAGIC = 2
"""The format since Kafka 0.11; the ones before it have no such header."""
_GOLDEN = 0.618_033_988_749_895
"""Multiples of it, without their whole part, are spread evenly, however many there are, and follow no producer's
rhythm."""


class Sample(NamedTuple):
    """Batches of a log: what they take on the broker's disk, and how many records they have; both more than 0."""

    bytes: int
    records: int
    """Offsets, strictly, as end offsets count: those of transactions' markers, too."""


def sample_of(fetched: bytes, end: int = 2**63) -> Sample | None:
    """The batches in what was fetched, the last one included if its header is all there; None where there is none.

    Args:
        fetched: from the beginning of a batch on; cut off anywhere.
        end: batches that begin there, or later, do not count.
    """
    in_bytes = records = at = 0
    while at + _HEADER.size <= len(fetched):
        base, length, _epoch, magic, _checksum, _attributes, last = _HEADER.unpack_from(fetched, at)
        if magic != _MAGIC or base >= end or length <= 0 or last < 0:
            break
        at += _BEFORE_LENGTH_COUNTS + length
        in_bytes, records = at, records + last + 1
    return Sample(in_bytes, records) if records else None


class _Look(NamedTuple):
    end: int
    """Of the log when it was looked at."""
    sample: Sample


class Sampling:
    """The samples of one broker's partitions: each from what was appended since the one before."""

    def __init__(self) -> None:
        self._looks: dict[TopicPartition, _Look] = {}
        self._asked: frozenset[TopicPartition] = frozenset()
        self._turn = 0

    def starts(self, held: Mapping[TopicPartition, OffsetRange]) -> dict[TopicPartition, int]:
        """The offset that the next sample begins at in each log that is to be looked at.

        All that was appended is looked at where it is no more than a sample; otherwise a part of it, which lies
        elsewhere each time. A log that has not grown is left alone once its records' size is known.
        """
        self._turn += 1
        share = self._turn * _GOLDEN % 1
        found = {
            partition: start
            for partition, log in held.items()
            if (start := _start(log, self._looks.get(partition), share)) is not None
        }
        ordered = sorted(found)
        first = self._turn * AT_ONCE % len(ordered) if len(ordered) > AT_ONCE else 0
        self._asked = frozenset((ordered[first:] + ordered[:first])[:AT_ONCE])
        return {partition: found[partition] for partition in self._asked}

    def take(
        self, held: Mapping[TopicPartition, OffsetRange], fetched: Mapping[TopicPartition, bytes]
    ) -> dict[TopicPartition, Sample]:
        """The newest sample of each log, once that is taken in which was fetched from where `starts(held)` said.

        A log that was to be looked at, and of which nothing came, has none: what is there by now is not known.
        """
        for partition in self._asked:
            sample = sample_of(fetched.get(partition, b""), held[partition].end)
            if sample is None:
                self._looks.pop(partition, None)
            else:
                self._looks[partition] = _Look(held[partition].end, sample)
        return {
            partition: look.sample
            for partition, log in held.items()
            if (look := self._looks.get(partition)) is not None and look.end <= log.end
        }


def _start(log: OffsetRange, before: _Look | None, share: float) -> int | None:
    if log.empty:
        return None
    if before is None or before.end > log.end:
        return max(log.start, log.end - RECENT_RECORDS)
    if before.end == log.end:
        return None
    since = max(log.start, before.end)
    spare = log.end - since - SAMPLE_BYTES * before.sample.records / before.sample.bytes
    return since + int(share * spare) if spare > 0 else since
