"""What is moved: one partition of one topic."""

from typing import NamedTuple

HIGHEST_ID = 2**31 - 1
"""Of partitions, and so of consumers, each of which has one: Kafka numbers them with 32 bits."""


class TopicPartition(NamedTuple):
    """A partition, ordered by topic and then by number: the tie-break of every ordering of partitions."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
