"""The proof that a partition has one reader at a time, from what the consumers recorded of their reads.

A stint is the time during which one process of one consumer reads one partition under one start command: from the
first record that it fetched to the last. The most stints of a partition that have any moment in common are the most
readers that it had at one time. Both ends of a stint belong to it. The times are those of the consumers' clocks.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise

from domain.assignment import ConsumerId
from domain.messages import ConsumerReport, Order
from domain.partitions import TopicPartition


@dataclass(frozen=True, slots=True, order=True)
class Stint:
    """Who reads which partition; ordered by partition, then consumer, incarnation and command."""

    partition: TopicPartition
    consumer: ConsumerId
    incarnation: str
    start: Order
    """The start command."""

    def __str__(self) -> str:
        command = f"command {self.start.epoch}.{self.start.sequence}"
        return f"consumer {self.consumer} (process {self.incarnation}, {command})"


@dataclass(frozen=True, slots=True)
class Interval:
    """From the first read to the last, in seconds since the epoch; both belong to it."""

    first: float
    last: float

    def hull(self, other: "Interval") -> "Interval":
        """The smallest interval that holds both."""
        return Interval(min(self.first, other.first), max(self.last, other.last))


@dataclass(frozen=True, slots=True)
class MostReaders:
    """The highest number of readers that a partition had at one time, and where that was seen first."""

    readers: tuple[Stint, ...] = ()
    """In ascending order; empty where nothing was read."""
    at: float | None = None
    """Seconds since the epoch."""

    @property
    def count(self) -> int:
        return len(self.readers)


class ReadLog:
    """The stints that the consumers' reports tell of; reports may come late, twice, or in any order."""

    def __init__(self, reports: Iterable[ConsumerReport] = ()) -> None:
        self._stints: dict[Stint, Interval] = {}
        for report in reports:
            self.add(report)

    @property
    def stints(self) -> Mapping[Stint, Interval]:
        return dict(self._stints)

    def add(self, report: ConsumerReport) -> None:
        """Takes a report in; reads of no record say nothing."""
        for read in report.cycle.reads if report.cycle else ():
            if read.records:
                stint = Stint(read.key, report.consumer, report.incarnation, read.stint)
                # A clock that was set back between the two must not hide the time in which the partition was read.
                seen = Interval(min(read.first_read_at, read.last_read_at), max(read.first_read_at, read.last_read_at))
                self._stints[stint] = seen.hull(self._stints.get(stint, seen))


def gaps_s(stints: Mapping[Stint, Interval], since: float = -math.inf) -> list[float]:
    """From the last record that one reader read of a partition to the first that the next one did, in seconds.

    Args:
        stints: of any partitions.
        since: of readers that began after this moment.
    """
    by_time = sorted(stints.items(), key=lambda each: (each[0].partition, each[1].first))
    return [
        after.first - before.last
        for (one, before), (other, after) in pairwise(by_time)
        if one.partition == other.partition and after.first >= since
    ]


def most_readers(stints: Mapping[Stint, Interval]) -> MostReaders:
    """The most stints of one partition that overlap; ties go to the lower partition, then to the earlier moment."""
    most = MostReaders()
    for _, of_partition in groupby(sorted(stints), key=lambda stint: stint.partition):
        intervals = {stint: stints[stint] for stint in of_partition}
        starts = [(interval.first, 0, stint) for stint, interval in intervals.items()]
        ends = [(interval.last, 1, stint) for stint, interval in intervals.items()]
        reading: set[Stint] = set()
        # At the same moment those that begin go before those that end: they have that moment in common.
        for at, is_end, stint in sorted(starts + ends):
            if is_end:
                reading.remove(stint)
                continue
            reading.add(stint)
            if len(reading) > most.count:
                most = MostReaders(tuple(sorted(reading)), at)
    return most
