"""A lake and the commits of a group, by the rules that were seen in the real ones: docs/decisions/0007-exactly-once.md.

An append that was asked for is carried out some time later, also if whoever asked is dead by then, unless its writer is
sealed on the topic, or has appended under this version or a newer one. What a fenced writer commits is refused. A
commit and each step of a take-over may take some time, too.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from random import Random

from consumer.decide.claims import Committed
from consumer.decide.reached import Reached
from consumer.decide.spans import Span
from domain.partitions import OffsetRange, TopicPartition

GROUP = "group"
_SEALED = 2**63 - 1
"""The version of a seal."""


class FencedError(Exception):
    """The writer was fenced: its process ends."""


@dataclass(eq=False)
class Append:
    writer: str
    topic: str
    version: int
    offsets: Mapping[TopicPartition, Sequence[int]]
    settled: bool = False


class Lake:
    def __init__(self, random: Random) -> None:
        self.produced: Counter[TopicPartition] = Counter()
        """The end of each partition in Kafka."""
        self.rows: dict[TopicPartition, list[int]] = {}
        self.at_fault: set[str] = set()
        """Topics whose tables take nothing, and say so."""
        self.commits: dict[TopicPartition, Committed] = {}
        self.sealed: set[str] = set()
        """Whoever was sealed on any topic."""
        self.commits_at_once = 1.0
        """The probability that a commit is carried out at the first attempt, and at each one after."""
        self.tells_at_once = 1.0
        """The same of a step of a take-over."""
        self._former_claims: dict[TopicPartition, Committed] = {}
        """The newest commit before that one by which the partition was claimed."""
        self._random = random
        self._fenced: set[str] = set()
        self._versions: Counter[tuple[str, str]] = Counter()
        """The newest that was taken of each writer, by topic."""
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
        committed = self.commits.get(partition)
        return 0 if committed is None else committed.offset

    def is_slow(self, at_once: float) -> bool:
        """Whether what is asked for has to be asked for again."""
        return at_once < 1.0 and self._random.random() >= at_once

    def takes_effect(self, writer: str, topic: str) -> bool:
        """Whether the lake still takes what the process reads of the topic."""
        return self._versions[writer, topic] < _SEALED

    # Commits

    def fence(self, writer: str) -> None:
        self._fenced.add(writer)

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Committed | None]:
        return {partition: self.commits.get(partition) for partition in partitions}

    def ranges(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetRange]:
        return {partition: OffsetRange(0, self.produced[partition]) for partition in partitions}

    def commit(self, writer: str, positions: Mapping[TopicPartition, Committed]) -> None:
        if writer in self._fenced:
            raise FencedError(writer)
        for partition, position in positions.items():
            before = self.commits.get(partition)
            if before is not None and before.claimant is not None:
                self._former_claims[partition] = before
            self.commits[partition] = position

    def lose_commits(self) -> None:
        """The brokers go back to former claims."""
        self.commits.update(self._former_claims)

    def expire_commits(self, living: Set[str]) -> None:
        """The brokers forget what nobody has renewed for a week: all but the claims of who lives or still appends."""
        claimants = living | {append.writer for append in self._under_way}
        self.commits = {partition: each for partition, each in self.commits.items() if each.claimant in claimants}

    # Rows

    def seal(self, topic: str, writer: str) -> None:
        name = writer.removeprefix(f"{GROUP}/")
        self.sealed.add(name)
        self._versions[name, topic] = _SEALED
        self._settle_sealed()

    def last_set_aside(self, topic: str, partitions: Collection[int]) -> dict[int, Reached]:
        """Nothing was."""
        del topic, partitions
        return {}

    def last_appended(self, topic: str, partitions: Collection[int]) -> dict[int, Reached]:
        """The last row of the newest append of each, whoever made it."""
        rows = {number: self.rows.get(TopicPartition(topic, number)) for number in partitions}
        return {number: Reached(offsets[-1]) for number, offsets in rows.items() if offsets}

    def last_offsets(self, topic: str, spans: Mapping[int, Span]) -> dict[int, int]:
        """The last row of each among those of its span."""
        seen = {
            number: [each for each in self.rows.get(TopicPartition(topic, number), ()) if span.low <= each <= span.high]
            for number, span in spans.items()
        }
        return {number: max(offsets) for number, offsets in seen.items() if offsets}

    def ask(self, writer: str, topic: str, version: int, offsets: Mapping[TopicPartition, Sequence[int]]) -> Append:
        """Asks for an append; `settled` says later that it was carried out, or passed over."""
        append = Append(writer, topic, version, offsets)
        self._under_way.append(append)
        self._settle_sealed()
        return append

    def work(self) -> None:
        """Carries out some of what was asked for."""
        for append in self._under_way:
            if self._random.random() < 0.5:
                self._carry_out(append)
        self._forget_settled()

    def _carry_out(self, append: Append) -> None:
        append.settled = True
        name = append.writer, append.topic
        if append.version > self._versions[name]:
            self._versions[name] = append.version
            for partition, offsets in append.offsets.items():
                self.rows.setdefault(partition, []).extend(offsets)

    def _settle_sealed(self) -> None:
        for append in self._under_way:
            append.settled = append.settled or not self.takes_effect(append.writer, append.topic)
        self._forget_settled()

    def _forget_settled(self) -> None:
        self._under_way = [append for append in self._under_way if not append.settled]
