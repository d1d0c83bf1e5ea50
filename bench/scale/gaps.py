"""How long partitions are without a reader: pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from domain.partitions import TopicPartition


@dataclass(frozen=True, slots=True)
class Gap:
    """From the moment at which a partition lost its reader until it had one again."""

    seconds: float
    died: bool
    """Its reader died; otherwise it was handed over."""


class Gaps:
    """Those that are over, and those that are open; `at` is in seconds and never goes back."""

    def __init__(self) -> None:
        self.over: list[Gap] = []
        self._open: dict[TopicPartition, tuple[float, bool]] = {}

    def begin(self, partitions: Iterable[TopicPartition], at: float, *, died: bool = False) -> None:
        """These have lost their reader. Whoever was to read one next may die too: it has been unread since before."""
        for partition in partitions:
            self._open.setdefault(partition, (at, died))

    def end(self, partitions: Iterable[TopicPartition], at: float) -> None:
        """These have a reader; those that never lost one, which is their first, do not count."""
        for partition in partitions:
            if (begun := self._open.pop(partition, None)) is not None:
                since, died = begun
                self.over.append(Gap(at - since, died))

    @property
    def open(self) -> int:
        """How many partitions are without a reader."""
        return len(self._open)
