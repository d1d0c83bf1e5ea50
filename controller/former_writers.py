"""The processes that nobody counts on any more and that may still write: whom a start has to name in `seal`.

A process is counted on while it is a member of the group: nobody else is then started where it may read. When it is
gone, or is taken for dead, or a new process has come under its number, it may still write what it had read: a write of
its may be under way, or it may be frozen and wake up. So each start of a partition that it may have read names it,
until a later holder of a partition of the same topic shows that it was sealed there: the seal is one of the topic's
table. A process that was told to stop and let go of everything, or has left in good order, is never named.

What a controller knows of this it says again in its claims. The next one knows no partitions of such processes: it
takes them for ones that may have read any.
"""

from collections.abc import Iterable, Set
from dataclasses import dataclass, field

from domain.partitions import TopicPartition

REMEMBERED = 100
"""So many settled processes are remembered: a message of theirs may still be in the history of partition 0. One that is
forgotten too early is sealed once more for nothing."""

STRANGERS = 100
"""So many processes are kept that this controller is the first to hear of, and does not count on: the newest of them.
A start is only sent to who has reported, so whoever may have been sent one is in what a controller begins with: the
claims of those before it, and the reports since. A stranger has been given nothing. It is named all the same, in case
that a beginning was incomplete (a topic made anew, claims of version 0.1), but not without limit: anybody who may write
to the topic can invent some."""


@dataclass(slots=True)
class _Former:
    partitions: Set[TopicPartition] | None
    """What it may have read; None where that is not known: anything."""
    sealed: set[str] = field(default_factory=set)
    """The topics on which it can write nothing any more."""

    def may_write(self, partition: TopicPartition) -> bool:
        return partition.topic not in self.sealed and (self.partitions is None or partition in self.partitions)


class FormerWriters:
    """Processes by their names as writers, `consumer/incarnation`."""

    def __init__(self) -> None:
        self._unsealed: dict[str, _Former] = {}
        self._settled: dict[str, None] = {}
        self._strangers: dict[str, None] = {}
        """Those of the unsealed, the oldest first."""

    @property
    def unsealed(self) -> tuple[str, ...]:
        """Those that may still write, in ascending order."""
        return tuple(sorted(self._unsealed))

    @property
    def settled(self) -> tuple[str, ...]:
        """Those that need not be sealed any more: the newest of them, the oldest first."""
        return tuple(self._settled)

    def knows(self, writer: str) -> bool:
        """Whether it is one of them, sealed or not."""
        return writer in self._unsealed or writer in self._settled

    def inherit(self, unsealed: Iterable[str], settled: Iterable[str]) -> None:
        """Takes in what the controller before knew."""
        self._settled.update(dict.fromkeys(settled))
        for writer in unsealed:
            self.add(writer, None)

    def add(self, writer: str, partitions: Set[TopicPartition] | None) -> None:
        """The process is not counted on any more; `partitions` is what it may have read, None for anything."""
        if partitions is not None and not partitions:
            self.settle(writer)
        else:
            self._forget(writer)
            self._unsealed[writer] = _Former(partitions)

    def hear_of(self, writer: str) -> None:
        """A process that is not counted on, and was not heard of before: it may have read anything."""
        self.add(writer, None)
        self._strangers[writer] = None
        while len(self._strangers) > STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest], self._unsealed[oldest]

    def recall(self, writer: str) -> bool:
        """The process is counted on after all. False where it cannot be: it may be sealed somewhere."""
        former = self._unsealed.get(writer)
        if former is None or former.sealed or former.partitions is not None:
            return False
        self._forget(writer)
        return True

    def settle(self, writer: str) -> None:
        """Nothing that the process does takes effect any more, or it has let go of everything."""
        self._forget(writer)
        self._settled.pop(writer, None)
        self._settled[writer] = None
        while len(self._settled) > REMEMBERED:
            del self._settled[next(iter(self._settled))]

    def _forget(self, writer: str) -> None:
        self._unsealed.pop(writer, None)
        self._strangers.pop(writer, None)

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
            if former.partitions is not None and former.sealed.issuperset(p.topic for p in former.partitions):
                self.settle(writer)

    def settle_everywhere_sealed(self, topics: Set[str]) -> None:
        """Settles those that may have read anything and are sealed on all topics that the group reads."""
        for writer in self.unsealed if topics else ():
            if topics <= self._unsealed[writer].sealed:
                self.settle(writer)
