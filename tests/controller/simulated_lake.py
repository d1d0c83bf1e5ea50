"""A lake and the commits of a group, by the rules that were seen in the real ones: docs/decisions/0007-exactly-once.md.

An append that was asked for is carried out some time later, also if whoever asked is dead by then, unless its writer is
sealed on the topic. What a fenced writer commits is refused.
"""

from collections import Counter
from dataclasses import dataclass
from random import Random

from consumer.claims import Committed
from consumer.spans import Span
from domain.partitions import TopicPartition


class FencedError(Exception):
    """The writer was fenced: its process ends."""


@dataclass(eq=False)
class Append:
    writer: str
    partition: TopicPartition
    offsets: range
    settled: bool = False


class Lake:
    def __init__(self, random: Random) -> None:
        self.produced: Counter[TopicPartition] = Counter()
        """The end of each partition in Kafka."""
        self.rows: dict[TopicPartition, list[int]] = {}
        self.committed: dict[TopicPartition, Committed] = {}
        self._random = random
        self._fenced: set[str] = set()
        self._sealed: set[tuple[str, str]] = set()
        self._under_way: list[Append] = []

    @property
    def doubled(self) -> bool:
        return any(len(set(offsets)) < len(offsets) for offsets in self.rows.values())

    @property
    def lost(self) -> bool:
        """Whether a record that somebody has committed, or that lies below one in the lake, is not in the lake."""
        return any(
            set(range(max(max(offsets, default=-1) + 1, self._committed_to(partition)))) - set(offsets)
            for partition, offsets in self.rows.items()
        )

    def _committed_to(self, partition: TopicPartition) -> int:
        committed = self.committed.get(partition)
        return 0 if committed is None else committed.offset

    def complete(self, partition: TopicPartition) -> bool:
        """Whether everything that was produced is in the lake."""
        return len(set(self.rows.get(partition, ()))) == self.produced[partition]

    def takes_effect(self, writer: str, topic: str) -> bool:
        """Whether the lake still takes what the process reads of the topic."""
        return (writer, topic) not in self._sealed

    def fence(self, writer: str) -> None:
        self._fenced.add(writer)

    def seal(self, writer: str, topic: str) -> None:
        self._sealed.add((writer, topic))
        self._settle_sealed()

    def last_offset(self, partition: TopicPartition, span: Span) -> int | None:
        """The last row among those of the span."""
        offsets = self.rows.get(partition, ())
        return max((offset for offset in offsets if span.low <= offset <= span.high), default=None)

    def commit(self, writer: str, partition: TopicPartition, committed: Committed) -> None:
        if writer in self._fenced:
            raise FencedError(writer)
        self.committed[partition] = committed

    def ask(self, writer: str, partition: TopicPartition, offsets: range) -> Append:
        """Asks for an append; `settled` says later that it was carried out, or passed over."""
        append = Append(writer, partition, offsets)
        self._under_way.append(append)
        self._settle_sealed()
        return append

    def work(self) -> None:
        """Carries out some of what was asked for."""
        for append in self._under_way:
            if self._random.random() < 0.5:
                self.rows.setdefault(append.partition, []).extend(append.offsets)
                append.settled = True
        self._forget_settled()

    def _settle_sealed(self) -> None:
        for append in self._under_way:
            append.settled = append.settled or not self.takes_effect(append.writer, append.partition.topic)
        self._forget_settled()

    def _forget_settled(self) -> None:
        self._under_way = [append for append in self._under_way if not append.settled]
