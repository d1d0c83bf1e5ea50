"""The processes that nobody counts on any more and that may still write: whom a start has to name in `seal`.

A process is counted on while it is a member of the group: nobody else is then started where it may read. When it is
gone, or is taken for dead, or a new process has come under its number, it may still write what it had read: a write of
its may be under way, or it may be frozen and wake up. So each start of a partition that it may have read names it,
until a later holder of a partition of the same topic shows that it was sealed there: the seal is one of the topic's
table. A process that was told to stop and let go of everything, or has left in good order, is never named.

What a controller knows of this it says again in its claims, one of which goes with every start. So the next one knows
as much; after claims of version 0.1 it takes whoever was heard of for one that may have read anything.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

from domain.partitions import TopicPartition

Reach = frozenset[TopicPartition] | None
"""What a process may read, and so write of; None where that is not known: anything."""

REMEMBERED = 100
"""So many settled processes are remembered: a message of theirs may still be in the history of partition 0. One that is
forgotten too early is sealed once more for nothing."""

STRANGERS = 100
"""Where no claim says what strangers may read (a topic made anew, claims of version 0.1), so many at most are added to
those that may still write: anybody who may write to the topic can invent some."""


@dataclass(slots=True)
class _Former:
    partitions: Reach
    """What it may have read and is not sealed on."""
    sealed: set[str] = field(default_factory=set)
    """The topics on which it can write nothing any more."""

    def may_write(self, partition: TopicPartition) -> bool:
        return partition.topic not in self.sealed and (self.partitions is None or partition in self.partitions)


class FormerWriters:
    """Processes by their names as writers, `consumer/incarnation`."""

    def __init__(self) -> None:
        self._unsealed: dict[str, _Former] = {}
        self._settled: dict[str, None] = {}
        self.of_strangers: Reach = None
        """What a process may read that this controller is the first to hear of."""

    @property
    def unsealed(self) -> dict[str, Reach]:
        """Those that may still write, in ascending order, and what."""
        return {writer: former.partitions for writer, former in sorted(self._unsealed.items())}

    @property
    def settled(self) -> tuple[str, ...]:
        """Those that need not be sealed any more: the newest of them, the oldest first."""
        return tuple(self._settled)

    def knows(self, writer: str) -> bool:
        """Whether it is one of them, sealed or not."""
        return writer in self._unsealed or writer in self._settled

    def inherit(self, unsealed: Mapping[str, Reach], settled: Iterable[str], of_strangers: Reach) -> None:
        """Takes in what the controller before knew. Who may write nothing stays too: it may be counted on."""
        self._settled.update(dict.fromkeys(settled))
        self._unsealed.update({writer: _Former(reach) for writer, reach in unsealed.items()})
        self.of_strangers = of_strangers

    def add(self, writer: str, partitions: Reach) -> None:
        """The process is not counted on any more; `partitions` is what it may have read."""
        if partitions is not None and not partitions:
            self.settle(writer)
        else:
            self._unsealed[writer] = _Former(partitions)

    def hear_of(self, writer: str) -> None:
        """A process that is not counted on, and was not heard of before."""
        if self.of_strangers is None and len(self._unsealed) < STRANGERS:
            self.add(writer, None)

    def can_be_recalled(self, writer: str) -> bool:
        """Whether the process can be counted on after all: not where it may be sealed somewhere."""
        return writer in self._unsealed and not self._unsealed[writer].sealed

    def recall(self, writer: str) -> Reach:
        """The process is counted on: what it may read."""
        former = self._unsealed.pop(writer, None)
        return self.of_strangers if former is None else former.partitions

    def settle(self, writer: str) -> None:
        """Nothing that the process does takes effect any more, or it has let go of everything."""
        self._unsealed.pop(writer, None)
        self._settled.pop(writer, None)
        self._settled[writer] = None
        while len(self._settled) > REMEMBERED:
            del self._settled[next(iter(self._settled))]

    def to_seal(self, partitions: Iterable[TopicPartition]) -> tuple[str, ...]:
        """Whom a start of these partitions has to name, in ascending order."""
        wanted = tuple(partitions)
        return tuple(sorted(writer for writer, former in self._unsealed.items() if any(map(former.may_write, wanted))))

    def sealed(self, writers: Iterable[str], topic: str) -> None:
        """These processes have been sealed on the topic."""
        for writer in sorted(writers):
            former = self._unsealed.get(writer)
            if former is None:
                continue
            former.sealed.add(topic)
            if former.partitions is not None:
                former.partitions = frozenset(each for each in former.partitions if each.topic != topic)
                if not former.partitions:
                    self.settle(writer)

    def settle_everywhere_sealed(self, topics: Set[str]) -> None:
        """Settles those that may write nothing, or anything and are sealed on all topics that the group reads."""
        for writer, former in sorted(self._unsealed.items()):
            if (topics and topics <= former.sealed) if former.partitions is None else not former.partitions:
                self.settle(writer)
