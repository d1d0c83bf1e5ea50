"""Where a consumer's records go: what each kind of sink has to do. The consumer's machine knows none of them.

A sink is `consumer.lake`, whose tables Spark writes, or `consumer.command_sink`, a program of the user's.
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Protocol

import pyarrow as pa

from consumer.decide.reached import Reached
from consumer.decide.spans import Span

NO_EPOCHS: Mapping[int, int] = MappingProxyType({})


class SinkError(RuntimeError):
    """The sink did not do what it was asked; what that was may or may not have happened."""


class RefusedError(SinkError):
    """The sink refuses a record of what was to be appended: nothing of that is in it, and never will be.

    Args:
        place: of the record among the rows, where that is known; all before it would be taken.
    """

    def __init__(self, reason: str, place: int | None = None) -> None:
        super().__init__(reason)
        self.place = place


class TableError(SinkError):
    """What the sink has of a topic takes nothing, until its owner has mended it: nothing came of what was asked."""


class RegistryError(RuntimeError):
    """A schema registry does not tell now what it is asked, so a sink was asked nothing."""


class SinkGoneError(SinkError):
    """Only a new process can have the sink again."""


class Sink(Protocol):
    """For one writer; safe to use from several threads.

    What may have been done already can be asked again, and is then done once: an append by its version, which only
    grows, and a seal by the writer's name.
    """

    def connect(self) -> None:
        """Begins, or begins anew, so that what is asked is answered; what was asked before may be answered or not.

        Raises:
            SinkError: it cannot be had.
            SinkGoneError: this process cannot have it any more.
        """
        ...

    def append(self, topic: str, version: int, rows: pa.Table, epochs: Mapping[int, int] = NO_EPOCHS) -> None:
        """Appends `rows` to those of `topic`, unless this writer's `version` is there already.

        Args:
            topic: whose rows.
            version: higher than those before it.
            rows: in the order in which they were read.
            epochs: of the leaders that took the last record of each partition, as far as they are known.

        Raises:
            RefusedError: a record among them is refused. None of them is there, or will be under this version.
            TableError: nothing of the topic is taken: nothing came of this call, whatever comes of those before it.
            SinkError: they may or may not have been appended; the same call again settles it.
        """
        ...

    def set_aside(self, topic: str, record: pa.Table, reason: str, epochs: Mapping[int, int] = NO_EPOCHS) -> None:
        """Keeps a record that is refused as a row of its topic, once, whoever sets it aside.

        Raises:
            SinkError: that is not certain; the same call again settles it.
        """
        ...

    def seal(self, topic: str, writer: str) -> None:
        """From now on nothing that `writer` appends to the rows of `topic` takes effect.

        Raises:
            SinkError: that is not certain; the same call again settles it.
        """
        ...

    def columns(self, topic: str) -> pa.StructType:
        """Those that its rows have beside those of every record, as far as their types do not change by themselves.

        Raises:
            SinkError: it does not tell.
        """
        ...

    def last_appended(self, topic: str, partitions: Collection[int]) -> Mapping[int, Reached]:
        """The last row of each of these partitions, all of whose writers are sealed, as far as that is known."""
        ...

    def last_set_aside(self, topic: str, partitions: Collection[int]) -> Mapping[int, Reached]:
        """The record of each of these partitions that was set aside last, as far as that is known."""
        ...

    def last_offsets(self, topic: str, spans: Mapping[int, Span]) -> Mapping[int, int]:
        """The highest offset of each partition that has rows, looked for among these offsets."""
        ...

    def close(self) -> None:
        """Lets it go."""
        ...
