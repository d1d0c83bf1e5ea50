"""Every order in which a log is cut off and grows again, and its readers append, commit and die.

Each record that the log has in the end is in the lake once, and none that it had is there twice.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

import pytest

from consumer.decide import claims, takeover
from consumer.decide.claims import Committed, claim
from consumer.decide.out_of_range import go_on
from consumer.decide.reached import Reached
from consumer.decide.spans import Span
from consumer.decide.takeover import take_over
from domain.partitions import OffsetRange, TopicPartition

ORDERS = TopicPartition("orders", 0)
BEGINNING = Reached(0)
STEPS = 6
"""Enough for a cut that its reader notices, reads on from, and dies of before it commits."""


@dataclass(slots=True)
class World:
    """One partition, its lake, and whoever reads it."""

    log: list[tuple[int, int]] = field(default_factory=list)
    """The epoch and the value of each record."""
    leaders: list[Reached] = field(default_factory=lambda: [Reached(0, 0)])
    """Where each began."""
    produced: int = 0
    appended: list[Reached] = field(default_factory=list)
    """What each append notes."""
    values: list[int] = field(default_factory=list)
    """In the lake."""
    commit: Committed | None = None
    reader: int = 0
    position: Reached = BEGINNING
    written: Reached = BEGINNING
    """Where its next commit is."""

    def copy(self) -> "World":
        """What its lists have never changes."""
        log, leaders, appended, values = [*self.log], [*self.leaders], [*self.appended], [*self.values]
        return replace(self, log=log, leaders=leaders, appended=appended, values=values)

    # What takes the place of brokers and lake

    def fence(self, writer: str) -> None: ...

    def seal(self, topic: str, writer: str) -> None: ...

    def committed(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, Committed | None]:
        return dict.fromkeys(partitions, self.commit)

    def ranges(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, OffsetRange]:
        return dict.fromkeys(partitions, OffsetRange(0, len(self.log)))

    def last_set_aside(self, topic: str, partitions: Collection[int]) -> Mapping[int, Reached]:
        del topic, partitions
        return {}

    def last_appended(self, topic: str, partitions: Collection[int]) -> Mapping[int, Reached]:
        del topic
        return dict.fromkeys(partitions, self.appended[-1]) if self.appended else {}

    def last_offsets(self, topic: str, spans: Mapping[int, Span]) -> Mapping[int, int]:
        assert not self.appended, f"the table's log tells {topic}, {spans}"
        return {}

    def cut(self, epoch: int) -> Reached:
        """What the leader answers when it is asked how far that epoch goes."""
        until = min((leader.offset for leader in self.leaders if (leader.epoch or 0) > epoch), default=len(self.log))
        known = (leader.epoch or 0 for leader in self.leaders)
        return Reached(until, max((each for each in known if each <= epoch), default=epoch))

    # What can happen

    def produce(self) -> None:
        self.log.append((self.leaders[-1].epoch or 0, self.produced))
        self.produced += 1

    def lose(self) -> None:
        """A leader is elected that lacks the last two records."""
        del self.log[-2:]
        kept = [leader for leader in self.leaders if leader.offset < len(self.log)]
        self.leaders = [*kept, Reached(len(self.log), (self.leaders[-1].epoch or 0) + 1)]

    def read(self) -> None:
        """Reads a record, and appends it; if the leader says that it is the next one."""
        epoch, held = self.position.epoch, OffsetRange(0, len(self.log))
        if epoch is not None and (cut := self.cut(epoch)).offset < self.position.offset:
            goes_on, _ = go_on(ORDERS, self.position, held, cut, "continue")
            assert goes_on is not None
            self.position = goes_on
        if self.position.offset < len(self.log):
            epoch, value = self.log[self.position.offset]
            row = Reached(self.position.offset, epoch)
            self.values.append(value)
            self.appended.append(row)
            self.position = self.written = row.next

    def commits(self) -> None:
        self.commit = Committed(self.written.offset, claim(f"{self.reader}/a"), self.written.epoch)

    def die(self) -> None:
        """Another takes over, and claims the partition."""
        self.reader += 1
        own = f"{self.reader}/a"
        found = take_over([ORDERS], (), own, self, self, "group", lambda: None)
        self.position = self.written = found[ORDERS]
        self.commits()


HAPPENS = (World.produce, World.lose, World.read, World.commits, World.die)


def explore(world: World, steps: int) -> None:
    for happens in HAPPENS if steps else ():
        further = world.copy()
        happens(further)
        explore(further, steps - 1)
    world.die()
    for _ in range(len(world.log) + 1):
        world.read()
    counted = Counter(world.values)
    assert counted.keys() >= {value for _, value in world.log}, f"not read: {world}"
    assert max(counted.values(), default=1) == 1, f"doubled: {world}"


def begun() -> World:
    """Two records are there, and read."""
    world = World()
    world.produce()
    world.produce()
    world.die()
    world.read()
    world.read()
    return world


def test_nothing_that_a_log_has_is_lost_or_doubled_whenever_it_is_cut_off() -> None:
    explore(begun(), STEPS)


@pytest.mark.parametrize("counts_by", ["offset", "commit"])
def test_that_can_fail(counts_by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the highest offset counts, or the commit alone."""
    if counts_by == "offset":
        monkeypatch.setattr(claims, "later", lambda *both: max(both, key=lambda reached: reached.offset))
    else:
        monkeypatch.setattr(takeover, "next_position", lambda _, committed: committed and committed.reached)
    with pytest.raises(AssertionError, match=r"not read|doubled"):
        explore(begun(), STEPS)
