"""Who reads the loads, and one run of one of them."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bench.latency.autoscalers import HPA_SYNC_S, FlinkSettings, LagRule
from bench.latency.flink_job import FlinkJob
from bench.latency.kafka_group import KafkaGroup, Scaling, fixed
from bench.latency.kcga_group import MONITOR, RECORD_BYTES, UNCOMMITTED_S, KcgaGroup
from bench.latency.queues import NOBODY, Queues, Readers, delays
from bench.latency.shapes import STEP_S, Load, load
from bench.latency.times import Times
from controller.settings import AUTHORS_HEADROOM, ControllerSettings

CAPACITY = 2_300_000.0
"""Of a consumer, in bytes/s: the paper's."""
TICK_S = 0.5
WARM_UP_S = 900.0
"""Not counted: everyone finds their feet."""
FLINK_TUNED = FlinkSettings(window_s=120.0, stabilisation_s=60.0, catch_up_s=300.0, restart_s=30.0)
FLINK_RESTART_S = 30.0
"""Assumed: what a savepoint, the stop and the start of a job take."""
UNEVENNESS = 0.2
"""What is written in a tick varies by this share of it (standard deviation), for producers send batches."""
_QUANTILES = (0.5, 0.99, 0.999)


class Readership(Protocol):
    """Who reads what, as time goes on."""

    readers: Readers
    migrations: int

    @property
    def consumers(self) -> int: ...

    def advance(self, now: float, queues: Queues) -> None: ...


@dataclass(frozen=True, slots=True)
class Contender:
    """One that takes part."""

    name: str
    kind: str
    """`kcga`, `fixed`, `lag` or `flink`."""
    value: float = 0.0
    """kcga: lambda. fixed: consumers. lag: the threshold, in records. flink: none."""
    option: str = ""
    """kcga: the engine. fixed and lag: the assignor. flink: whose settings."""
    forecast: bool = ControllerSettings.model_fields["forecast"].default
    """kcga: whether it looks ahead."""
    follow_changes: bool = MONITOR.follow_changes
    """kcga: whether its monitor follows rises and falls."""
    share: float | None = None
    """kcga: up to what share of its capacity a plan fills a consumer; None for the controller's own."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one contender under one load, the warm-up left out."""

    shape: str
    seed: int
    contender: str
    kind: str
    mean_consumers: float
    consumer_hours: float
    p50_s: float
    p99_s: float
    p999_s: float
    unread_s: float
    """Partition-seconds without a reader."""
    unread_fill_s: float
    """The same where each partition counts as the share of a consumer's capacity that it is as fast as."""
    migrations: int
    highest_lag: float
    """Records that wait, all partitions together."""
    unproven: int
    """Answers of the exact solver that are not known to be as good as was asked for."""
    forecasts: int
    """That counted, and came due."""
    forecasts_held: int


@dataclass(frozen=True, slots=True)
class Job:
    """A run that a process of its own can be asked for."""

    contender: Contender
    shape: str
    steps: int
    seed: int
    times: Times


def perform(job: Job) -> Outcome:
    return run(job.contender, load(job.shape, job.steps, job.seed), job.times, job.seed)


def run(contender: Contender, load: Load, times: Times, seed: int) -> Outcome:
    """Lets a contender read a load from its beginning to its end."""
    per_step = round(STEP_S / TICK_S)
    ticks = len(load.shares) * per_step
    queues = Queues(len(load.partitions), ticks, TICK_S, CAPACITY)
    group = _readership(contender, load, times, seed)
    warm = round(WARM_UP_S / TICK_S)
    consumer_ticks = unread_ticks = 0
    unread_fill = 0.0
    batches = 1 / UNEVENNESS**2
    uneven = np.random.default_rng(seed).gamma(batches, 1 / batches, (ticks, len(load.partitions)))
    highest_lag = 0.0
    migrated_before = 0

    for tick in range(ticks):
        group.advance(tick * TICK_S, queues)
        if tick == warm:
            migrated_before = group.migrations
        if tick >= warm:
            consumer_ticks += group.consumers
            unread = group.readers == NOBODY
            unread_ticks += int(unread.sum())
            unread_fill += float(load.shares[tick // per_step][unread].sum())
            highest_lag = max(highest_lag, float(queues.backlog.sum()))
        queues.advance(load.shares[tick // per_step] * uneven[tick] * CAPACITY, group.readers)

    waits = delays(queues.written, queues.read, TICK_S, since=warm)
    p50_s, p99_s, p999_s = (waits.quantile(share) for share in _QUANTILES)
    return Outcome(
        shape=load.shape,
        seed=seed,
        contender=contender.name,
        kind=contender.kind,
        mean_consumers=consumer_ticks / (ticks - warm),
        consumer_hours=consumer_ticks * TICK_S / 3600,
        p50_s=p50_s,
        p99_s=p99_s,
        p999_s=p999_s,
        unread_s=unread_ticks * TICK_S,
        unread_fill_s=unread_fill * TICK_S,
        migrations=group.migrations - migrated_before,
        highest_lag=highest_lag / RECORD_BYTES,
        unproven=group.unproven if isinstance(group, KcgaGroup) else 0,
        forecasts=group.forecasts if isinstance(group, KcgaGroup) else 0,
        forecasts_held=group.forecasts_held if isinstance(group, KcgaGroup) else 0,
    )


def _readership(contender: Contender, load: Load, times: Times, seed: int) -> Readership:
    partitions = load.partitions
    begin_with = math.ceil(load.shares[0].sum() / 0.7)
    match contender.kind:
        case "kcga":
            monitor = MONITOR.model_copy(update={"follow_changes": contender.follow_changes})
            return KcgaGroup(partitions, kcga_settings(contender), times, seed, monitor)
        case "fixed":
            consumers = min(len(partitions), round(contender.value))
            return KafkaGroup(partitions, contender.option, consumers, fixed(consumers), times, seed)
        case "lag":
            scaling = lag_scaling(LagRule(contender.value, len(partitions)))
            return KafkaGroup(partitions, contender.option, begin_with, scaling, times, seed)
        case "flink":
            settings = FLINK_TUNED if contender.option == "tuned" else FlinkSettings()
            return FlinkJob(partitions, begin_with, settings, FLINK_RESTART_S, CAPACITY)
        case _:
            raise ValueError(f"there is no kind of contender {contender.kind!r}")


def kcga_settings(contender: Contender) -> ControllerSettings:
    """The defaults but for the engine and lambda.

    The paper's heuristics know of one capacity only. As the paper's authors did, they are told 0.75 of what a consumer
    reads, which is what the exact solver packs to, too.
    """
    if contender.option == "auto":
        return ControllerSettings(
            consumer_capacity=CAPACITY,
            migration_weight=contender.value,
            packing_capacity=None if contender.share is None else contender.share * CAPACITY,
            forecast=contender.forecast,
        )
    told = AUTHORS_HEADROOM * CAPACITY
    return ControllerSettings(
        consumer_capacity=told,
        packing_capacity=told,
        engine=contender.option,
        forecast=contender.forecast,
    )


def lag_scaling(rule: LagRule) -> Scaling:
    """Applies the rule at each sync of the Horizontal Pod Autoscaler, to the lag that the commits show."""
    next_sync = 0.0
    wanted = 0

    def scale(now: float, consumers: int, queues: Queues) -> int:
        nonlocal next_sync, wanted
        if now >= next_sync:
            next_sync += HPA_SYNC_S
            lag = float(queues.uncommitted(UNCOMMITTED_S).sum()) / RECORD_BYTES
            wanted = rule.replicas(now, lag, consumers)
        return wanted

    return scale
