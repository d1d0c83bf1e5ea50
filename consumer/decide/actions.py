"""What a consumer can want done. What has a number (`ask`) is answered under that by `Done` or `Failed`, if at all."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from consumer.decide.batch import Batch
from consumer.decide.claims import Committed
from consumer.decide.parts import Part
from consumer.decide.reached import Reached
from domain.messages import ConsumerReport
from domain.partitions import TopicPartition


class TakePlace(NamedTuple):
    """Find the end of the commands, and register with those that commit."""

    ask: int


class OpenSession(NamedTuple):
    """Open a session of Spark in place of the one that there may be."""

    ask: int


class TakeOver(NamedTuple):
    """Put the former readers of these partitions of one topic out of action, and find where reading goes on.

    It is given up once `ConsumerMachine.is_asked` says so.
    """

    ask: int
    partitions: tuple[TopicPartition, ...]
    seal: frozenset[str]
    """The writers that the controller names."""


class Write(NamedTuple):
    """Append a part of the records of one topic, under the same version as often as need be."""

    ask: int
    topic: str
    version: int
    batch: Batch
    part: Part


class SetAside(NamedTuple):
    """Write a record, which is the part, to the dead letters, for the table of its topic refuses it."""

    ask: int
    topic: str
    batch: Batch
    part: Part
    reason: str


class Commit(NamedTuple):
    ask: int
    positions: Mapping[TopicPartition, Committed]


class StopReading(NamedTuple):
    partitions: Iterable[TopicPartition]


class ReadFrom(NamedTuple):
    positions: Mapping[TopicPartition, Reached]


class HoldBack(NamedTuple):
    """Read the topic no more until it is resumed, and then on from here, or from where it was."""

    topic: str
    positions: Mapping[TopicPartition, Reached]


class Resume(NamedTuple):
    topic: str


class Send(NamedTuple):
    """Send the report; its `sent_at` is to be filled in."""

    report: ConsumerReport


class Note(NamedTuple):
    """Write it into the log; what has a reason is a warning."""

    event: str
    details: Mapping[str, object]


class Fetch(NamedTuple):
    """Ask for so many records at most, within so many seconds."""

    records: int
    wait_s: float


class Wait(NamedTuple):
    """Wait for something to happen, so many seconds at most."""

    seconds: float


Ask = TakePlace | OpenSession | TakeOver | Write | SetAside | Commit
Action = Ask | StopReading | ReadFrom | HoldBack | Resume | Send | Note | Fetch | Wait
