"""Whether there is nothing to read, by what was told last: nothing is written, and the group is behind on nothing.

A partition is quiet where both are known. It stays so while neither is told, as while its broker is away; one that is
not known to be quiet is to be read.
"""

import math
from collections.abc import Set

from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds


class Idleness:
    """Remembers which partitions are quiet.

    Args:
        longest_gap_s: after a longer time without speeds it is not known for how long all was quiet.
    """

    def __init__(self, longest_gap_s: float) -> None:
        self._longest_gap_s = longest_gap_s
        self._newest = -math.inf
        self._since = math.inf
        """From when on each partition of interest was told to be quiet, without a gap."""
        self.quiet: frozenset[TopicPartition] = frozenset()

    def measured(self, at: float, speeds: WriteSpeeds, interest: Set[TopicPartition]) -> None:
        """Speeds came, at `at`, which must not go back; `interest`: all partitions of it."""
        self.recalled(speeds)
        if not speeds.bytes_per_s.keys() >= interest or not self.quiet >= interest:
            self._since = math.inf
        elif self._since == math.inf or at - self._newest > self._longest_gap_s:
            self._since = at
        self._newest = at

    def recalled(self, speeds: WriteSpeeds) -> None:
        """The last known speeds, of any age."""
        quiet = {p for p, speed in speeds.bytes_per_s.items() if speed == 0 and p in speeds.lags}
        behind = {p for p, lag in speeds.lags.items() if lag.records > 0}
        self.quiet = frozenset((self.quiet - speeds.bytes_per_s.keys() | quiet) - behind - speeds.gone)

    def lasted(self, seconds: float, at: float) -> bool:
        """Whether all of interest was quiet for so long at the newest speeds, and these are not too old at `at`."""
        return at - self._newest <= self._longest_gap_s and self._newest - self._since >= seconds
