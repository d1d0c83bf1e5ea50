"""A consumer's process, step by step: it follows the protocol of `domain.messages.metadata` and of
docs/decisions/0007-exactly-once.md to the letter, and can be frozen between any two steps.

It has no lease: one that is frozen goes on as it was when it wakes up, and one that is cut off goes on for ever. So
what holds here does not rest on any clock.
"""

from dataclasses import dataclass, field
from enum import Enum, auto

from consumer.claims import RELEASED, Committed, claim, next_offset, to_seal, where_to_look
from consumer.commands import Holding
from domain.assignment import ConsumerId
from domain.messages import ConsumerCommand, ConsumerReport, ConsumerState, PartitionRef, Throughput, writer
from domain.partitions import TopicPartition
from tests.controller.simulated_lake import Append, FencedError, Lake

BATCH = 5


class At(Enum):
    """What is done with a partition next."""

    LOOK = auto()
    SEAL = auto()
    PLACE = auto()
    CLAIM = auto()
    FETCH = auto()
    WRITE = auto()
    COMMIT = auto()


@dataclass
class Reading:
    told: tuple[str, ...]
    at: At = At.LOOK
    former: tuple[str, ...] = ()
    position: int = 0
    claimed: bool = False
    batch: range = range(0)
    append: Append | None = None


@dataclass
class FakeConsumer:
    consumer: ConsumerId
    incarnation: str
    ready: bool = False
    silent: bool = False
    """It is cut off: it goes on reading what it holds, and neither hears nor says anything."""
    frozen: bool = False
    """It does nothing at all, and later goes on as it was."""
    busy: bool = False
    """It is in a write that takes long: it reports, and goes on with nothing."""
    ended: bool = False
    leaving: bool = False
    doomed: bool = False
    """It was told to end, but hangs."""
    holding: Holding = field(init=False)
    readings: dict[TopicPartition, Reading] = field(default_factory=dict)
    inbox: list[ConsumerCommand] = field(default_factory=list)
    reports: int = 0
    throughput: Throughput | None = None

    def __post_init__(self) -> None:
        self.holding = Holding(self.consumer, self.incarnation)

    @property
    def writer(self) -> str:
        return writer(self.consumer, self.incarnation)

    @property
    def held(self) -> set[TopicPartition]:
        return set(self.holding.stints)

    @property
    def speaks(self) -> bool:
        return not (self.silent or self.frozen or self.ended)

    def reads(self, partition: TopicPartition, lake: Lake) -> bool:
        """Whether what it reads of the partition takes effect."""
        reading = self.readings.get(partition)
        return bool(reading and reading.claimed) and lake.takes_effect(self.writer, partition.topic)

    def apply(self, command: ConsumerCommand, lake: Lake | None = None) -> None:
        """Obeys at once."""
        holding, change = self.holding.apply([command])
        for partition in change.stop:
            reading = self.readings.pop(partition)
            if reading.claimed and lake is not None:
                lake.commit(self.writer, partition, Committed(reading.position, RELEASED))
        for partition in change.start:
            self.readings[partition] = Reading(change.seal)
        self.holding = holding

    def step(self, lake: Lake) -> None:
        """Goes on a little with each partition, and obeys when nothing is between the fetch and the commit."""
        if self.frozen or self.ended or self.busy:
            return
        try:
            for partition, reading in sorted(self.readings.items()):
                self._go_on(partition, reading, lake)
            if not any(reading.at in (At.WRITE, At.COMMIT) for reading in self.readings.values()):
                while self.inbox and not self.silent:
                    self.apply(self.inbox.pop(0), lake)
        except FencedError:
            self.ended = True

    def leave(self, lake: Lake) -> bool:
        """Lets go of everything, where no batch is in hand. Whether it could."""
        if self.frozen or self.silent or any(reading.at in (At.WRITE, At.COMMIT) for reading in self.readings.values()):
            return False
        try:
            for partition, reading in sorted(self.readings.items()):
                if reading.claimed:
                    lake.commit(self.writer, partition, Committed(reading.position, RELEASED))
        except FencedError:
            return False
        self.readings.clear()
        self.leaving = True
        return True

    def report(self, at: float) -> ConsumerReport:
        self.reports += 1
        held = () if self.leaving else self.holding.partitions
        state = ConsumerState.LEAVING if self.leaving else ConsumerState.READY
        return ConsumerReport(
            consumer=self.consumer,
            incarnation=self.incarnation,
            sequence=self.reports,
            sent_at=at,
            state=state if self.ready else ConsumerState.STARTING,
            applied_epoch=self.holding.applied.epoch,
            applied_sequence=self.holding.applied.sequence,
            partitions=tuple(map(PartitionRef.of, held)),
            taking_over=tuple(PartitionRef.of(each) for each in held if not self.readings[each].claimed),
            throughput=self.throughput,
        )

    def _go_on(self, partition: TopicPartition, reading: Reading, lake: Lake) -> None:
        committed = lake.committed.get(partition)
        match reading.at:
            case At.LOOK:
                reading.former = to_seal(self.writer, reading.told, [committed])
                reading.at = At.SEAL
            case At.SEAL:
                for former in reading.former:
                    lake.fence(former)
                    lake.seal(former, partition.topic)
                reading.at = At.PLACE
            case At.PLACE:
                looks = (
                    lake.last_offset(partition, span) for span in where_to_look(committed, lake.produced[partition])
                )
                last = next((offset for offset in looks if offset is not None), None)
                reading.position = next_offset(last, committed) or 0
                reading.at = At.CLAIM
            case At.CLAIM:
                lake.commit(self.writer, partition, Committed(reading.position, claim(self.writer)))
                reading.claimed = True
                reading.at = At.FETCH
            case At.FETCH:
                end = min(lake.produced[partition], reading.position + BATCH)
                if end > reading.position and not self.inbox:
                    reading.batch = range(reading.position, end)
                    reading.append = lake.ask(self.writer, partition, reading.batch)
                    reading.at = At.WRITE
            case At.WRITE:
                if reading.append is not None and reading.append.settled:
                    reading.position = reading.batch.stop
                    reading.at = At.COMMIT
            case At.COMMIT:
                lake.commit(self.writer, partition, Committed(reading.position, claim(self.writer)))
                reading.at = At.FETCH
