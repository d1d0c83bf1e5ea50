"""Which partitions are of interest, by all that the monitor has told."""

from collections.abc import Set
from dataclasses import dataclass

from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds


@dataclass(slots=True)
class Interest:
    named: frozenset[TopicPartition] = frozenset()
    """Those that were ever named, or read, and not said to be gone since."""
    gone: frozenset[TopicPartition] = frozenset()

    def hear(self, speeds: WriteSpeeds) -> None:
        named = speeds.bytes_per_s.keys() | speeds.unknown
        self.named = (self.named | named) - speeds.gone
        self.gone = (self.gone - named) | speeds.gone

    def add_read(self, partitions: Set[TopicPartition]) -> None:
        """What is read is of interest, unless it is said to be gone."""
        self.named |= partitions - self.gone
