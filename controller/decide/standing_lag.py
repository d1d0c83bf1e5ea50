"""What of a partition's lag is a backlog: the least that it was over the last while.

A consumer reads in cycles, so what it has not committed rises and falls with them, and says nothing of whether it keeps
up. What it does not get rid of in any cycle of a while is behind. A lag that falls counts at once; one that rises when
it has stood for `PERIOD_S`, after twice that at the latest. Periods begin at the same moments for all who remember, so
the first may be shorter, and go by when lags were measured: whoever hears them later remembers the same.
"""

from collections.abc import Mapping

from domain.partitions import TopicPartition

PERIOD_S = 15.0
"""Longer than a consumer's cycle."""


class StandingLag:
    """Remembers two lags of each partition; one that is not measured keeps the last that was."""

    def __init__(self) -> None:
        self._period: float | None = None
        """Which it is, counted from the epoch."""
        self._before: dict[TopicPartition, float] = {}
        """The least of the last period in which the partition was measured, before this one."""
        self._least: dict[TopicPartition, float] = {}
        """Of this period."""

    def record(self, measured_at: float, lags: Mapping[TopicPartition, float]) -> None:
        """Takes in the newest lags, in bytes.

        Args:
            measured_at: when, by the clock of who measured them; that of the next one may be another.
            lags: of the partitions that were measured.
        """
        period = measured_at // PERIOD_S
        if self._period is None or period not in (self._period, self._period - 1):
            self._period = period
            self._before.update(self._least)
            self._least = {}
        for partition, behind in lags.items():
            self._least[partition] = min(behind, self._least.get(partition, behind))

    def forget(self, partition: TopicPartition) -> None:
        self._before.pop(partition, None)
        self._least.pop(partition, None)

    def of(self, partition: TopicPartition) -> float | None:
        """In bytes; None where no lag of the partition was ever known."""
        before, least = self._before.get(partition), self._least.get(partition)
        if before is None or least is None:
            return least if before is None else before
        return min(before, least)
