"""What can happen to a consumer. `at` is in seconds on the monotonic clock of its process."""

from collections.abc import Mapping
from typing import NamedTuple

from consumer.decide.batch import Record
from consumer.decide.out_of_range import PassedOver
from consumer.decide.reached import Reached
from domain.messages import ConsumerCommand
from domain.partitions import TopicPartition


class Looked(NamedTuple):
    """Time has passed, and this is what there is to be seen."""

    at: float
    stop: bool = False
    """Whether it is to leave."""
    arrived: float | None = None
    """When the newest report was sent that the brokers have acknowledged."""
    commands: tuple[ConsumerCommand, ...] = ()
    """That have come since it looked last, in this order."""
    taken_to: int = 0
    """The offset behind all commands that have come."""
    found: tuple[TopicPartition, ...] = ()
    """What of `ConsumerMachine.to_place` there is; in ascending order."""
    passed_over: tuple[PassedOver, ...] = ()
    """Since it looked last."""
    fault: str | None = None
    """Why something that is to be read is not."""
    compression: float | None = None
    """Bytes of records for each byte that the brokers sent, if known."""


class Fetched(NamedTuple):
    """The answer to `Fetch`; handed in before anything else that has happened since."""

    at: float
    records: tuple[Record, ...]
    first_at: float
    """Since the epoch, as is the other: they were received between these two moments."""
    last_at: float


class Done(NamedTuple):
    """What was asked for under this number has succeeded."""

    at: float
    ask: int
    positions: Mapping[TopicPartition, Reached] | None = None
    """Of a take-over: where reading goes on. Of a part of a batch: where the next one does."""


class Failed(NamedTuple):
    """What was asked for under this number has failed, and may succeed another time."""

    at: float
    ask: int
    fault: str
    of_lake: bool = False
    """Whether the lake, or its session, is at fault."""
    of_record: bool = False
    """Whether a record is, of what was to be appended: nothing of that is in the table."""
    of_table: bool = False
    """Whether the topic's table is: nothing came of what was asked, and nothing will until it is mended."""
    place: int | None = None
    """Of the record that is at fault, in the part that was to be appended, where that is known."""


Event = Looked | Fetched | Done | Failed
