"""What is moved: one partition of one topic."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition, ordered by topic and then by number: the tie-break of every ordering of partitions."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
