"""The controller's figures for Prometheus, made of the board at the moment at which they are asked for.

Names follow Prometheus' conventions: base units, `_total` for what only grows. Lag has the name and the labels that
dashboards of Kafka groups expect. Series for each partition can be left out: a large group has thousands.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from app.status.board import Board, Reading
from controller.decide.machine import State
from domain.group_view.decision_log import DecisionTotals
from domain.group_view.picture import GroupPicture, Role
from domain.messages import ConsumerState, Decision, Foresight
from domain.partitions import TopicPartition

AGE = "How long ago write speeds came last."
AHEAD = "How far a component's clock is ahead of the controller's; below 0 where it is behind."
LOWER_BOUND = "No assignment of the present write speeds has fewer consumers."
MEASURED = "When the newest write speeds were measured, by the monitor's clock."
OUTDATED = "Consumers that began with another image, template or settings than consumers begin with now."
EXCESS = "What is above the consumers' capacities by the newest plan."
CONSUMER_STATES = (*(state.value for state in ConsumerState), "silent", "awaited")


Figure = tuple[str, str, float | None]
"""Its name, what it says, and its value where that is known."""
Values = Iterable[tuple[tuple[str, ...], float]]
"""Values of labels, but for the group's, with the value that they have."""
Family = GaugeMetricFamily | CounterMetricFamily


class GroupMetrics(Collector):
    """Collects from the board.

    Args:
        board: what is told.
        group: its name, the value of the label `group`, and of `consumergroup` for lag.
        by_partition: whether there are series for each partition.
    """

    def __init__(self, board: Board, group: str, *, by_partition: bool) -> None:
        self._board = board
        self._group = group
        self._by_partition = by_partition

    def describe(self) -> Iterator[Metric]:
        """Nothing: what there is depends on the group."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        reading = self._board.reading()
        figures = [*_of_the_group(reading.picture), *_of_the_controller(reading.picture), *_of_lags(reading)]
        if reading.view.foresight is not None:
            figures += _of_foresight(reading.view.foresight)
        if reading.newest is not None:
            figures += _of_the_newest(reading.newest)
        for name, text, value in [("kcga_speeds_age_seconds", AGE, reading.speeds_age_s), *figures]:
            if value is not None:  # else it is not known
                yield self._gauge(name, text, [((), value)])
        for name, text, value in _of_decisions(reading.counts):
            yield self._labelled(CounterMetricFamily(name, text, labels=["group"]), [((), value)])
        yield from self._by_label(reading)

    def _gauge(self, name: str, text: str, values: Values, *labels: str) -> Metric:
        return self._labelled(GaugeMetricFamily(name, text, labels=["group", *labels]), values)

    def _labelled(self, family: Family, values: Values) -> Metric:
        for labels, value in values:
            family.add_metric([self._group, *labels], value)
        return family

    def _by_label(self, reading: Reading) -> Iterator[Metric]:
        shown, counts = reading.picture, reading.counts
        clocks = (((sender.kind, str(sender.consumer or "")), ahead) for sender, ahead in reading.ahead_s.items())
        yield self._gauge("kcga_clock_ahead_seconds", AHEAD, clocks, "sender", "consumer")
        states = (((state.value,), shown.controller.state == state.value) for state in State)
        yield self._gauge("kcga_state", "1 for the state of the controller.", states, "state")
        of_state = Counter(consumer.state for consumer in shown.consumers)
        by_state = (((state,), of_state[state]) for state in CONSUMER_STATES)
        yield self._gauge("kcga_consumers", "Consumers by their state.", by_state, "state")
        of_class = Counter(consumer.class_name for consumer in shown.consumers)
        by_class = (((name,), count) for name, count in sorted(of_class.items()))
        yield self._gauge("kcga_consumers_of_class", "Consumers by their class.", by_class, "class")
        loads = (((str(each.consumer),), each.load) for each in shown.consumers)
        text = "Write speed of what a consumer reads."
        yield self._gauge("kcga_consumer_load_bytes_per_second", text, loads, "consumer")
        held = (((str(each.consumer),), len(each.partitions)) for each in shown.consumers)
        yield self._gauge("kcga_consumer_partitions", "Partitions that a consumer reads.", held, "consumer")
        made = CounterMetricFamily("kcga_decisions", "Decisions by what became of them.", labels=["group", "outcome"])
        outcomes = [(("carried_out",), counts.carried_out), (("held_back",), counts.held_back)]
        yield self._labelled(made, outcomes)
        solve = SummaryMetricFamily("kcga_solve_seconds", "Time that the solver took.", labels=["group"])
        solve.add_metric([self._group], counts.carried_out + counts.held_back, counts.solve_s)
        yield solve
        parked = (((each.topic,), 1.0) for each in shown.parked)
        yield self._gauge(
            "kcga_topic_parked", "1 for a topic that nobody reads: its table takes nothing.", parked, "topic"
        )
        lags: Counter[str] = Counter()
        for partition, lag in reading.lags.items():
            lags[partition.topic] += lag.records
        text = "Records not committed yet, by topic."
        sums = (((topic,), records) for topic, records in sorted(lags.items()))
        yield self._of_lag("kafka_consumergroup_lag_sum", text, sums, "topic")
        if self._by_partition:
            lag_of = ((_place(each), reading.lags[each].records) for each in sorted(reading.lags))
            yield self._of_lag("kafka_consumergroup_lag", "Records not committed yet.", lag_of, "topic", "partition")
            speeds = ((_place(each), speed) for each, speed in sorted(reading.view.speeds.items()))
            name = "kcga_partition_write_speed_bytes_per_second"
            yield self._gauge(name, "Write speed of a partition.", speeds, "topic", "partition")

    def _of_lag(self, name: str, text: str, values: Values, *labels: str) -> Metric:
        return self._labelled(GaugeMetricFamily(name, text, labels=["consumergroup", *labels]), values)


def _place(partition: TopicPartition) -> tuple[str, str]:
    return partition.topic, str(partition.partition)


def _of_the_group(shown: GroupPicture) -> list[Figure]:
    return [
        ("kcga_partitions", "Partitions of interest.", shown.partitions),
        ("kcga_partitions_unread", "Partitions that nobody reads.", len(shown.unread)),
        ("kcga_partitions_moving", "Partitions that are being handed over.", shown.moving),
        ("kcga_partitions_unknown", "Partitions of unknown write speed.", shown.unknown),
        ("kcga_partitions_oversized", "Partitions that are faster than any consumer.", shown.oversized),
        ("kcga_write_speed_bytes_per_second", "Known write speed of all partitions.", shown.total_speed),
        ("kcga_consumers_lower_bound", LOWER_BOUND, shown.fewest_consumers),
        ("kcga_measured_timestamp_seconds", MEASURED, shown.measured_at),
    ]


def _of_the_controller(shown: GroupPicture) -> list[Figure]:
    controller = shown.controller
    return [
        ("kcga_leader", "1 where this controller leads.", controller.role is Role.LEADER),
        ("kcga_epoch", "Of the controller; each new leader has a higher one.", controller.epoch),
        ("kcga_paused", "1 while an operator has paused the group.", controller.paused),
        ("kcga_consumer_capacity_bytes_per_second", "What a consumer reads at most.", shown.capacity),
        ("kcga_packing_capacity_bytes_per_second", "What a plan gives a consumer at most.", shown.packing_capacity),
        ("kcga_migration_weight", "Lambda, in consumers per unit of Rscore.", shown.migration_weight),
        ("kcga_consumers_outdated", OUTDATED, len(shown.rollout.outdated)),
        (
            "kcga_rollout_stopped",
            "1 while one consumer's failure holds up the rollout.",
            shown.rollout.stopped,
        ),
    ]


def _of_decisions(counts: DecisionTotals) -> list[tuple[str, str, float]]:
    return [
        ("kcga_scale_ups", "Plans with more consumers than before.", counts.scale_ups),
        ("kcga_scale_downs", "Plans with fewer consumers than before.", counts.scale_downs),
        ("kcga_migrations", "Partitions moved by plans.", counts.migrations),
        ("kcga_rscore", "Rscore of the plans carried out, in consumers.", counts.rscore),
    ]


def _of_the_newest(newest: Decision) -> list[Figure]:
    excess = newest.shortfall.excess if newest.shortfall else 0.0
    return [
        ("kcga_decided_timestamp_seconds", "When the newest decision was made.", newest.decided_at),
        ("kcga_plan_objective", "What the newest plan costs.", newest.plan.objective),
        ("kcga_plan_price", "What the newest plan's consumers cost, in ordinary ones.", newest.plan.cost),
        ("kcga_plan_rscore", "What the newest plan moves, in consumers.", newest.plan.rscore),
        ("kcga_plan_lower_bound", "What every plan costs at least.", newest.lower_bound),
        ("kcga_plan_gap_ratio", "How far above the optimum the newest plan is at most.", newest.gap),
        ("kcga_shortfall_bytes_per_second", EXCESS, excess),
    ]


def _of_foresight(foresight: Foresight) -> list[Figure]:
    return [
        ("kcga_forecast_horizon_seconds", "How far ahead the controller looks.", foresight.horizon_s),
        ("kcga_forecast_quantile", "How often a forecast is to hold, as a share.", foresight.quantile),
        ("kcga_forecast_held_ratio", "How often forecasts held lately, as a share.", foresight.held_share),
        ("kcga_forecast_partitions", "Partitions with a forecast that counts now.", foresight.partitions),
    ]


def _of_lags(reading: Reading) -> list[Figure]:
    lags = reading.lags.values()
    size, longest = math.fsum(lag.bytes for lag in lags), max((lag.seconds or 0.0 for lag in lags), default=0.0)
    return [
        ("kcga_lag_bytes", "Not committed yet, on the brokers' disks.", size if lags else None),
        ("kcga_lag_seconds", "The most of a partition, at its write speed.", longest if lags else None),
    ]
