"""The rebalances of a group, as far as they can be seen from outside, and what each cost.

From outside one sees at every look who reads what, and how far the group has committed. So a rebalance is what changed
between two looks, or was under way during one; of a classic group one that changes nothing, and is over before the next
look, is not seen. What it cost is told twice, in partition-seconds:

- `unassigned_s`: for how long partitions that had a reader had none, to a look.
- `standstill_s`: for how much longer than usual it took, while records waited, until the next commit. That comes some
  time after reading goes on, so this is no more exact than the usual time between two commits.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import median

from domain.assignment import Assignment
from domain.partitions import TopicPartition
from domain.speeds import Lag

KEPT = 20
"""So many rebalances are remembered."""
USUAL_OF = 200
"""The newest times between commits that the usual one is the median of."""


@dataclass(frozen=True, slots=True)
class Rebalance:
    began_at: float
    """In seconds since the epoch: when it was seen first."""
    ended_at: float | None = None
    """When all was read again; None while it is under way."""
    moved: int = 0
    """Partitions that another member got."""
    unassigned_s: float = 0.0
    standstill_s: float | None = None
    """None where the usual time is not known."""
    commits_awaited: int = 0
    """Partitions that were not committed since, though records wait."""


class Rebalances:
    """Looks at a group again and again."""

    def __init__(self) -> None:
        self._seen: deque[Rebalance] = deque(maxlen=KEPT)
        self.count = 0
        """Of those that were ever seen."""
        self._looked_at: float | None = None
        self._readers = Assignment()
        """Who had what when nothing was under way last."""
        self._awaited: set[TopicPartition] = set()
        self._committed: dict[TopicPartition, int] = {}
        self._waits_since: dict[TopicPartition, float] = {}
        """Since when records have waited without a commit."""
        self._usual: deque[float] = deque(maxlen=USUAL_OF)

    @property
    def seen(self) -> tuple[Rebalance, ...]:
        """The newest, in the order in which they began."""
        return tuple(self._seen)

    @property
    def usual_s(self) -> float | None:
        """From the first record that waits to the next commit, while nothing is under way."""
        return median(self._usual) if self._usual else None

    def look(self, at: float, readers: Assignment, *, settled: bool) -> None:
        """Who reads what at `at`, in seconds since the epoch.

        Args:
            at: must not go back.
            readers: of a group in which a rebalance is under way, as far as it is told.
            settled: whether none is.
        """
        before = self._readers
        lost = before.keys() - readers.keys()
        elapsed_s = 0.0 if self._looked_at is None else at - self._looked_at
        self._looked_at = at
        under_way = self._seen[-1] if self._seen and self._seen[-1].ended_at is None else None
        moved = len(before.migrations_to(readers))
        if under_way is None and before and (lost or moved or not settled):
            under_way = Rebalance(at)
            elapsed_s = 0.0
            self.count += 1
            self._seen.append(under_way)
            self._awaited |= before.keys() & self._waits_since.keys()
        if under_way is not None:
            over = settled and not lost
            self._seen[-1] = replace(
                under_way,
                ended_at=at if over else None,
                moved=under_way.moved + (moved if over else 0),
                unassigned_s=under_way.unassigned_s + elapsed_s * len(lost),
            )
        if settled and not lost:
            self._readers = readers

    def commits(
        self, at: float, committed: Mapping[TopicPartition, int | None], lags: Mapping[TopicPartition, Lag]
    ) -> None:
        """How far the group has committed at `at`, and what waits behind that; what is not told is left out."""
        for partition, lag in lags.items():
            offset = committed.get(partition)
            if offset is None:
                continue
            came = offset > self._committed.get(partition, offset)
            self._committed[partition] = offset
            if came and partition in self._waits_since:
                self._committed_after(partition, at - self._waits_since[partition])
            if lag.records == 0:
                self._waits_since.pop(partition, None)
                self._awaited.discard(partition)
            elif came or partition not in self._waits_since:
                self._waits_since[partition] = at
        if self._seen:
            self._seen[-1] = replace(self._seen[-1], commits_awaited=len(self._awaited))

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """There are none of them any more: nobody is awaited to read them."""
        gone = frozenset(partitions)
        if not gone.isdisjoint(self._readers):
            self._readers = Assignment({p: c for p, c in self._readers.items() if p not in gone})
        self._awaited -= gone
        for partition in gone:
            self._committed.pop(partition, None)
            self._waits_since.pop(partition, None)

    def _committed_after(self, partition: TopicPartition, waited_s: float) -> None:
        if partition not in self._awaited:
            if not (self._seen and self._seen[-1].ended_at is None):
                self._usual.append(waited_s)
            return
        self._awaited.discard(partition)
        if (usual_s := self.usual_s) is not None:
            standstill_s = (self._seen[-1].standstill_s or 0.0) + max(0.0, waited_s - usual_s)
            self._seen[-1] = replace(self._seen[-1], standstill_s=standstill_s)
