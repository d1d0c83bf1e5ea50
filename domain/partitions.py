"""What is moved: one partition of one topic; and what its log holds."""

from typing import NamedTuple

HIGHEST_ID = 2**31 - 1
"""Of partitions, and so of consumers, each of which has one: Kafka numbers them with 32 bits."""


class TopicPartition(NamedTuple):
    """A partition, ordered by topic and then by number: the tie-break of every ordering of partitions."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class OffsetRange(NamedTuple):
    """What a log holds: from `start` up to, and without, `end`."""

    start: int
    end: int
    open_from: int | None = None
    """Where the first transaction begins that is under way: from there on nobody can read. None where none is, or it
    was not asked."""

    @property
    def empty(self) -> bool:
        return self.start == self.end
