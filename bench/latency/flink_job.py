"""A Flink job that reads the partitions, scaled by Flink's autoscaler: to change its parallelism, all of it stops."""

from collections.abc import Sequence

import numpy as np

from bench.latency.autoscalers import FlinkSettings, flink_parallelism
from bench.latency.queues import NOBODY, Queues, Readers
from domain.partitions import TopicPartition

DECIDES_EVERY_S = 60.0
"""The operator's `reconcile.interval`."""


class FlinkJob:
    """A source whose readers take partitions in turn; it runs when the simulation begins.

    Args:
        partitions: in the order of the queues.
        readers: the parallelism at the beginning.
        settings: of the autoscaler.
        restart_takes_s: how long a restart does take.
        capacity: what a reader reads at most, in bytes/s: in this model its true processing rate.
    """

    def __init__(
        self,
        partitions: Sequence[TopicPartition],
        readers: int,
        settings: FlinkSettings,
        restart_takes_s: float,
        capacity: float,
    ) -> None:
        self.migrations = 0
        self.consumers = readers
        self._settings = settings
        self._restart_takes_s = restart_takes_s
        self._capacity = capacity
        self._partitions = len(partitions)
        self._decided_at = 0.0
        self._restarted_at = 0.0
        self._runs_from = 0.0
        self.readers: Readers = self._in_turn()

    def advance(self, now: float, queues: Queues) -> None:
        """Everything that happens until `now`."""
        if self.readers[0] == NOBODY and now >= self._runs_from:
            self.readers = self._in_turn()
        settled = now - self._restarted_at >= self._settings.stabilisation_s
        if not settled or now - self._decided_at < DECIDES_EVERY_S:
            return
        self._decided_at = now
        wanted = flink_parallelism(
            self._settings,
            rate=float(queues.speeds(self._settings.window_s).sum()),
            backlog=float(queues.backlog.sum()),
            true_rate=self._capacity,
            present=self.consumers,
            partitions=self._partitions,
        )
        if wanted != self.consumers:
            before = self._in_turn()
            self.consumers = wanted
            self.migrations += int((before != self._in_turn()).sum())
            self.readers = np.full(self._partitions, NOBODY)
            self._runs_from = now + self._restart_takes_s
            self._restarted_at = self._runs_from

    def _in_turn(self) -> Readers:
        return np.arange(self._partitions) % self.consumers + 1
