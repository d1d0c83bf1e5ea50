"""The group as the status page and `/api/state` show it: values made of a view, in the form in which they are sent."""

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from domain.assignment import ConsumerId
from domain.consumer_class import ORDINARY, ConsumerClass
from domain.group_view.clocks import Sender, apart
from domain.group_view.decision_log import DecisionTotals
from domain.group_view.foresight import foresight_sentence
from domain.group_view.rollout import rollout_sentence
from domain.group_view.sources import sources_sentence
from domain.group_view.view import ConsumerView, GroupView, Sample, Transit
from domain.messages import RolloutStanding
from domain.partitions import TopicPartition
from domain.speeds import Lag


class Shown(BaseModel):
    """Part of an answer: speeds in bytes/s, times in seconds since the epoch, Rscores in consumers."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Role(StrEnum):
    STARTING = "starting"
    """It is not known yet who leads."""
    STANDBY = "standby"
    """Another controller leads the group."""
    LEADER = "leader"
    OBSERVER = "observer"
    """It only says what it would do with the group, which is not its own."""


class ControllerPicture(Shown):
    role: Role
    epoch: int | None
    state: str | None
    """Of the state machine: synchronize, sentinel, reassign or manage."""
    paused: bool


class PartitionPicture(Shown):
    topic: str
    partition: int
    speed: float | None
    """Null where it is not known."""
    lag: int | None
    """Records that are written and not committed; null where that is not known."""
    oversized: bool
    """It is faster than any consumer."""
    to: ConsumerId | None = None
    """Who shall read it in place of the consumer that it is drawn at."""
    source: ConsumerId | None = None
    """Of a partition that is awaited: who read it before."""


class ConsumerPicture(Shown):
    consumer: ConsumerId
    state: str
    """As it reports it; `silent` where it has not been heard of for long, `awaited` where it has not reported yet."""
    reason: str | None
    class_name: str
    """`ordinary`, or another class of the settings."""
    capacity: float
    """What it reads at most."""
    load: float
    """What it reads."""
    partitions: tuple[PartitionPicture, ...]
    """What it reads, in ascending order."""
    awaits: tuple[PartitionPicture, ...]
    """What it shall read and does not yet, in ascending order."""


class ClockPicture(Shown):
    """A clock that is further from the controller's than it should be."""

    sender: str
    """Whose it is: `the monitor`, `consumer 3`."""
    ahead_s: float
    """Below 0 where it is behind."""


class RolloutPicture(Shown):
    outdated: tuple[ConsumerId, ...]
    """The consumers that began with another image, template or settings than consumers begin with now."""
    stopped: bool
    """A consumer did not become ready: no more are replaced."""
    words: str | None
    """How far it is; null where there is nothing to say."""


class ParkedPicture(Shown):
    topic: str
    reason: str
    since: float
    until: float
    """When it is tried again; times are by the clock of the controller that parked it."""


class GroupPicture(Shown):
    """Everything that the page draws but the past."""

    version: int
    """Grows with every change."""
    group: str
    at: float
    measured_at: float | None
    """When the newest write speeds were measured, by the monitor's clock."""
    speeds_at: float | None
    """When they came."""
    clocks: tuple[ClockPicture, ...]
    """The worst first."""
    controller: ControllerPicture
    rollout: RolloutPicture
    parked: tuple[ParkedPicture, ...]
    """Topics that nobody reads for a while, because their tables take nothing; in ascending order."""
    foresight: str | None
    """How far ahead the controller looks, and how well it does; null where it does not."""
    dead_letters: int
    """Records that tables refused, by the consumers that were heard of, since they began."""
    capacity: float
    """Of an ordinary consumer, as the next."""
    packing_capacity: float
    migration_weight: float
    consumers: tuple[ConsumerPicture, ...]
    unread: tuple[PartitionPicture, ...]
    """Partitions that nobody reads, also those that a consumer is about to begin with."""
    rests: bool
    """Nobody reads, and nobody has to: there is nothing to read."""
    partitions: int
    moving: int
    unknown: int
    """Partitions whose speed is not known."""
    oversized: int
    total_speed: float | None
    sources: str | None
    """In words what tells the write speeds, where that is not the sizes of logs; null where it is."""
    fewest_consumers: int | None
    """No assignment of the present speeds has fewer."""
    lag: int | None
    """Records that are written and not committed."""
    totals: DecisionTotals
    """Over all decisions that are known."""
    decisions: int
    newest_decision: str | None
    """`epoch/number`"""


Course = tuple[tuple[float, float], ...]
"""Pairs of a time and the value from then on, in ascending order of time."""


class History(Shown):
    """The last hour, thinned out so that no peak is lost."""

    consumers: Course
    fewest_consumers: Course
    speed: Course
    lag: Course
    rscore: Course
    """Of each plan that was carried out, at its time."""


def picture(
    view: GroupView,
    *,
    version: int,
    group: str,
    controller: ControllerPicture,
    classes: Sequence[ConsumerClass],
    packing_capacity: float,
    migration_weight: float,
    measured_at: float | None,
    speeds_at: float | None,
    ahead_s: Mapping[Sender, float],
    fewest_consumers: int | None,
    lags: Mapping[TopicPartition, Lag],
) -> GroupPicture:
    """The picture of what `view` says, with these lags and clocks; the other values are the fields of their names.

    Of the classes that consumers may be of, the ordinary one is the first.
    """
    drawn = _Drawing(view, classes, lags)
    newest = view.last_decision
    return GroupPicture(
        version=version,
        group=group,
        at=view.now,
        measured_at=measured_at,
        speeds_at=speeds_at,
        clocks=tuple(ClockPicture(sender=str(sender), ahead_s=ahead) for sender, ahead in apart(ahead_s).items()),
        controller=controller,
        rollout=_rollout(view.rollout),
        parked=tuple(ParkedPicture(**each.model_dump(exclude={"times"})) for each in view.parked),
        foresight=foresight_sentence(view.foresight) if view.foresight else None,
        dead_letters=view.dead_letters,
        capacity=classes[0].capacity,
        packing_capacity=packing_capacity,
        migration_weight=migration_weight,
        consumers=drawn.consumers(),
        unread=tuple(drawn.partition(each.partition, to=each.target, source=each.source) for each in view.unread),
        rests=view.rests,
        partitions=len(view.partitions),
        moving=sum(1 for transit in view.transits if transit.is_migration),
        unknown=len(view.unmeasured),
        oversized=sum(1 for speed in view.speeds.values() if speed > drawn.largest),
        total_speed=view.total_speed,
        sources=sources_sentence(view.sources),
        fewest_consumers=fewest_consumers,
        lag=view.lag,
        totals=view.totals,
        decisions=len(view.decisions),
        newest_decision=f"{newest.epoch}/{newest.number}" if newest else None,
    )


def _rollout(standing: RolloutStanding | None) -> RolloutPicture:
    outdated = standing.outdated if standing else ()
    stopped = standing is not None and standing.failed is not None and bool(outdated)
    return RolloutPicture(outdated=outdated, stopped=stopped, words=rollout_sentence(standing))


class _Drawing:
    def __init__(self, view: GroupView, classes: Sequence[ConsumerClass], lags: Mapping[TopicPartition, Lag]) -> None:
        self._view = view
        self._lags = lags
        self._capacities = {each.name: each.capacity for each in classes}
        self.largest = max(self._capacities.values())
        self._leaving = {each.partition: each for each in view.transits if each.reader is not None}
        self._awaited: dict[ConsumerId, list[Transit]] = {}
        for each in view.transits:
            if each.target is not None:
                self._awaited.setdefault(each.target, []).append(each)

    def consumers(self) -> tuple[ConsumerPicture, ...]:
        """Those that there are and those that are awaited, in ascending order."""
        present = {consumer.consumer: self._present(consumer) for consumer in self._view.consumers}
        missing = {consumer: self._missing(consumer) for consumer in self._awaited.keys() - present.keys()}
        return tuple(each for _, each in sorted({**present, **missing}.items()))

    def _present(self, consumer: ConsumerView) -> ConsumerPicture:
        return ConsumerPicture(
            consumer=consumer.consumer,
            state="silent" if consumer.silent else consumer.state.value,
            reason=consumer.reason,
            class_name=consumer.class_name,
            capacity=self._capacities.get(consumer.class_name, self._capacities[ORDINARY]),
            load=consumer.load,
            partitions=tuple(
                self.partition(held.partition, to=self._target(held.partition, consumer.consumer))
                for held in consumer.partitions
            ),
            awaits=self._awaits(consumer.consumer),
        )

    def _missing(self, consumer: ConsumerId) -> ConsumerPicture:
        return ConsumerPicture(
            consumer=consumer,
            state="awaited",
            reason=None,
            class_name=ORDINARY,
            capacity=self._capacities[ORDINARY],
            load=0.0,
            partitions=(),
            awaits=self._awaits(consumer),
        )

    def _awaits(self, consumer: ConsumerId) -> tuple[PartitionPicture, ...]:
        return tuple(
            self.partition(each.partition, source=each.source if each.reader is None else each.reader)
            for each in self._awaited.get(consumer, ())
        )

    def _target(self, partition: TopicPartition, reader: ConsumerId) -> ConsumerId | None:
        transit = self._leaving.get(partition)
        return transit.target if transit is not None and transit.target != reader else None

    def partition(
        self, partition: TopicPartition, *, to: ConsumerId | None = None, source: ConsumerId | None = None
    ) -> PartitionPicture:
        speed, lag = self._view.speeds.get(partition), self._lags.get(partition)
        return PartitionPicture(
            topic=partition.topic,
            partition=partition.partition,
            speed=speed,
            lag=None if lag is None else lag.records,
            oversized=speed is not None and speed > self.largest,
            to=to,
            source=source,
        )


def course(samples: Sequence[Sample], since: float, most: int = 600) -> Course:
    """The samples from `since` on, and the last one before it, as about `most` points at most.

    Of the samples that fall into one stretch of time the highest stays: a peak is what one looks for.
    """
    before = [sample for sample in samples if sample.at < since][-1:]
    within = [sample for sample in samples if sample.at >= since]
    if len(within) > most:
        first, last = within[0].at, within[-1].at
        width = max((last - first) / most, 1e-9)
        peaks: dict[int, Sample] = {}
        for sample in within:
            stretch = math.floor((sample.at - first) / width)
            if stretch not in peaks or sample.value > peaks[stretch].value:
                peaks[stretch] = sample
        within = list(peaks.values())
    return tuple((sample.at, sample.value) for sample in (*before, *within))
