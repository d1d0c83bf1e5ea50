"""The consumer group at one moment, as a person wants to see it: values only, made by the fold of its messages."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from domain.assignment import ConsumerId
from domain.consumer_class import ORDINARY
from domain.group_view.decision_log import DecisionRecord, DecisionTotals
from domain.messages import ConsumerState, Foresight, ParkedTopic, RolloutStanding
from domain.partitions import TopicPartition
from domain.speeds import MeasuredBy


@dataclass(frozen=True, slots=True)
class Sample:
    """A figure that has this value from `at`, in seconds since the epoch, to the next sample."""

    at: float
    value: float


@dataclass(frozen=True, slots=True)
class HeldPartition:
    """A partition that a consumer reads; its write speed in bytes/s, None where it is not known."""

    partition: TopicPartition
    speed: float | None


@dataclass(frozen=True, slots=True)
class ConsumerView:
    """A consumer as its newest report describes it."""

    consumer: ConsumerId
    state: ConsumerState
    reason: str | None
    """What is wrong with it, where something is."""
    partitions: tuple[HeldPartition, ...]
    """What it reads, in ascending order, without what it only takes over yet."""
    silent: bool
    """It has not been heard of for too long: it reads nothing, as far as anybody knows."""
    class_name: str = ORDINARY
    """By the controller's newest claim."""

    @property
    def load(self) -> float:
        """The write speed of what it reads, in bytes/s, partitions of unknown speed left out."""
        return math.fsum(held.speed or 0.0 for held in self.partitions)


@dataclass(frozen=True, slots=True)
class Transit:
    """A partition that is not read by the consumer that shall read it."""

    partition: TopicPartition
    speed: float | None
    """Its write speed in bytes/s, None where it is not known."""
    reader: ConsumerId | None
    """Who reads it now."""
    source: ConsumerId | None
    """Who read it when the plan was made."""
    target: ConsumerId | None
    """Who shall read it; None where no plan names it."""

    @property
    def is_migration(self) -> bool:
        return self.source is not None and self.target is not None and self.source != self.target


@dataclass(frozen=True, slots=True)
class GroupView:
    """All that is known of the group at `now`; times in seconds since the epoch."""

    began: float
    now: float
    controller_epoch: int | None
    rollout: RolloutStanding | None
    """By the newest claim; None where it says nothing of it."""
    rests: bool
    """Nobody reads, and nobody has to: there is nothing to read, by the newest claim."""
    parked: tuple[ParkedTopic, ...]
    """Topics that nobody is to read for a while, by the newest claim."""
    foresight: Foresight | None
    """How far ahead the controller looks, by the newest claim; None where it does not."""
    dead_letters: int
    """Records that their tables refused, of all consumers that were heard of since they began."""
    consumers: tuple[ConsumerView, ...]
    """In ascending order; those that have left are left out."""
    transits: tuple[Transit, ...]
    """Partitions without a reader or on the move, in ascending order; what is parked is left out."""
    speeds: Mapping[TopicPartition, float]
    """Write speeds in bytes/s as the monitor's newest report has them."""
    unmeasured: frozenset[TopicPartition]
    """Partitions of interest whose speed is not known."""
    sources: tuple[MeasuredBy, ...]
    """What tells the write speeds."""
    total_speed: float | None
    """In bytes/s; None before the monitor's first report."""
    lag: int | None
    """In records; None before it is first known."""
    lag_s: float | None
    """The longest of any partition in seconds of writing, by the monitor's newest report; None where none is known."""
    highest_lag: int | None
    """The highest value that `lag` ever had."""
    decisions: tuple[DecisionRecord, ...]
    """In the order in which they were made."""
    totals: DecisionTotals
    bytes_written: int
    """Uncompressed, by all consumers together."""
    records_written: int
    invalid_messages: int
    """Messages that could not be understood."""
    consumers_over_time: tuple[Sample, ...] = field(repr=False)
    """One sample for each change, the newest of them; the very first has 0 consumers."""
    speed_over_time: tuple[Sample, ...] = field(repr=False)
    lag_over_time: tuple[Sample, ...] = field(repr=False)

    @property
    def elapsed_s(self) -> float:
        return self.now - self.began

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The partitions of interest, by the monitor's newest report."""
        return self.unmeasured | self.speeds.keys()

    @property
    def alive(self) -> int:
        """The number of consumers that can be heard."""
        return sum(not consumer.silent for consumer in self.consumers)

    @property
    def last_decision(self) -> DecisionRecord | None:
        return self.decisions[-1] if self.decisions else None

    @property
    def unread(self) -> tuple[Transit, ...]:
        """The partitions that nobody reads, and somebody has to."""
        return () if self.rests else tuple(transit for transit in self.transits if transit.reader is None)
