"""What a consumer reads at most, by what members of a group were seen to read while they lagged: an estimate.

From outside one sees how far a group has committed. A member that is behind all the while reads as much as it can; so
the highest rate of any that was behind for a window is what one reads at most, as far as was seen. It is no capacity
where something else held it up, such as brokers that are slow.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from domain.assignment import Assignment, ConsumerId
from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds

WINDOW_S = 60.0
"""So long at least a member must be behind, and have the same partitions."""
COMMITS = 10
"""And for so many of the usual times between commits."""
BEHIND_S = 10.0
"""It is behind with more than what is written in so long, beside what waits for its next commit anyway."""


@dataclass(frozen=True, slots=True)
class _Window:
    began_at: float
    held: tuple[TopicPartition, ...]
    committed: Mapping[TopicPartition, int]


class CapacityEstimate:
    """Looks at a group again and again."""

    def __init__(self) -> None:
        self.bytes_per_s: float | None = None
        """The highest rate that was seen, on the brokers' disks; None until there is one."""
        self._windows: dict[ConsumerId, _Window] = {}
        self._sums: dict[ConsumerId, int] = {}
        """What each member had committed at the last look."""
        self._record_bytes: dict[TopicPartition, float] = {}

    def look(
        self,
        at: float,
        readers: Assignment,
        committed: Mapping[TopicPartition, int | None],
        speeds: WriteSpeeds,
        usual_s: float | None,
    ) -> None:
        """
        Args:
            at: now, in seconds since the epoch, which must not go back.
            readers: who reads what; nobody during a rebalance that stops all.
            committed: how far the group has come.
            speeds: with the lags.
            usual_s: how long records wait for a commit as a rule; None where that is not known.
        """
        for partition, lag in speeds.lags.items():
            if lag.records > 0:
                self._record_bytes[partition] = lag.bytes / lag.records
        present = readers.by_consumer
        self._windows = {consumer: window for consumer, window in self._windows.items() if consumer in present}
        for consumer, held in present.items():
            places = {p: place for p in held if (place := committed.get(p)) is not None}
            if usual_s is None or len(places) < len(held) or not self._is_behind(places, speeds, usual_s):
                self._windows.pop(consumer, None)
                self._sums.pop(consumer, None)
            else:
                self._follow(at, consumer, places, usual_s)

    def _is_behind(self, held: Mapping[TopicPartition, int], speeds: WriteSpeeds, usual_s: float) -> bool:
        lags = [speeds.lags[p].bytes for p in held if p in speeds.lags]
        written = sum(speeds.bytes_per_s.get(p, 0.0) for p in held)
        return sum(lags) > (BEHIND_S + 2 * usual_s) * written and any(lags)

    def _follow(self, at: float, consumer: ConsumerId, places: Mapping[TopicPartition, int], usual_s: float) -> None:
        total = sum(places.values())
        before, self._sums[consumer] = self._sums.get(consumer), total
        window, held = self._windows.get(consumer), tuple(sorted(places))
        if window is not None and window.held != held:
            del self._windows[consumer]
            window = None
        if before is None or total <= before:
            return  # windows begin and end with a commit
        if window is None:
            self._windows[consumer] = _Window(at, held, places)
        elif (seconds := at - window.began_at) >= max(WINDOW_S, COMMITS * usual_s):
            read = sum((places[p] - window.committed[p]) * self._record_bytes.get(p, 0.0) for p in held)
            self.bytes_per_s = max(read / seconds, self.bytes_per_s or 0.0)
            self._windows[consumer] = _Window(at, held, places)
