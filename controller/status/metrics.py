"""The controller's figures for Prometheus, made of the board at the moment at which they are asked for.

Names follow Prometheus' conventions: base units, `_total` for what only grows. Lag has the name and the labels that
dashboards of Kafka groups expect. Series for each partition can be left out: a large group has thousands.
"""

import math
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from controller.machine import State
from controller.status.board import Board, Reading
from controller.status.group_view import GroupView
from controller.status.picture import GroupPicture, Role
from domain.messages import ConsumerState, Decision

CONSUMER_STATES = (*(state.value for state in ConsumerState), "silent", "awaited")


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
        yield from self._of_the_group(reading.picture)
        yield from self._gauge("kcga_speeds_age_seconds", "How long ago write speeds came last.", reading.speeds_age_s)
        yield from self._of_clocks(reading)
        yield from self._of_the_controller(reading.picture)
        yield from self._of_consumers(reading.picture)
        yield from self._of_decisions(reading)
        if reading.newest is not None:
            yield from self._of_the_newest(reading.newest)
        yield from self._lag(reading)
        if self._by_partition:
            yield from self._of_partitions(reading.view)

    def _gauge(self, name: str, text: str, value: float | None) -> Iterator[Metric]:
        """Nothing where the value is not known."""
        if value is not None:
            gauge = GaugeMetricFamily(name, text, labels=["group"])
            gauge.add_metric([self._group], value)
            yield gauge

    def _counter(self, name: str, text: str, value: float) -> Iterator[Metric]:
        counter = CounterMetricFamily(name, text, labels=["group"])
        counter.add_metric([self._group], value)
        yield counter

    def _of_the_group(self, shown: GroupPicture) -> Iterator[Metric]:
        yield from self._gauge("kcga_partitions", "Partitions of interest.", shown.partitions)
        yield from self._gauge("kcga_partitions_unread", "Partitions that nobody reads.", len(shown.unread))
        yield from self._gauge("kcga_partitions_moving", "Partitions that are being handed over.", shown.moving)
        yield from self._gauge("kcga_partitions_unknown", "Partitions of unknown write speed.", shown.unknown)
        yield from self._gauge(
            "kcga_partitions_oversized", "Partitions that are faster than a consumer.", shown.oversized
        )
        yield from self._gauge(
            "kcga_write_speed_bytes_per_second", "Known write speed of all partitions.", shown.total_speed
        )
        yield from self._gauge(
            "kcga_consumers_lower_bound",
            "No assignment of the present write speeds has fewer consumers.",
            shown.fewest_consumers,
        )
        yield from self._gauge(
            "kcga_measured_timestamp_seconds",
            "When the newest write speeds were measured, by the monitor's clock.",
            shown.measured_at,
        )

    def _of_clocks(self, reading: Reading) -> Iterator[Metric]:
        clocks = GaugeMetricFamily(
            "kcga_clock_ahead_seconds",
            "How far a component's clock is ahead of the controller's; below 0 where it is behind.",
            labels=["group", "sender", "consumer"],
        )
        for sender, ahead_s in reading.ahead_s.items():
            clocks.add_metric([self._group, sender.kind, str(sender.consumer or "")], ahead_s)
        yield clocks

    def _of_the_controller(self, shown: GroupPicture) -> Iterator[Metric]:
        controller = shown.controller
        yield from self._gauge("kcga_leader", "1 where this controller leads.", controller.role is Role.LEADER)
        yield from self._gauge("kcga_epoch", "Of the controller; each new leader has a higher one.", controller.epoch)
        yield from self._gauge("kcga_paused", "1 while an operator has paused the group.", controller.paused)
        states = GaugeMetricFamily("kcga_state", "1 for the state of the controller.", labels=["group", "state"])
        for state in State:
            states.add_metric([self._group, state.value], controller.state == state.value)
        yield states
        yield from self._gauge(
            "kcga_consumer_capacity_bytes_per_second", "What a consumer reads at most.", shown.capacity
        )
        yield from self._gauge(
            "kcga_packing_capacity_bytes_per_second", "What a plan gives a consumer at most.", shown.packing_capacity
        )
        yield from self._gauge(
            "kcga_migration_weight", "Lambda, in consumers per unit of Rscore.", shown.migration_weight
        )

    def _of_consumers(self, shown: GroupPicture) -> Iterator[Metric]:
        by_state = GaugeMetricFamily("kcga_consumers", "Consumers by their state.", labels=["group", "state"])
        for state in CONSUMER_STATES:
            count = sum(1 for consumer in shown.consumers if consumer.state == state)
            by_state.add_metric([self._group, state], count)
        yield by_state
        labels = ["group", "consumer"]
        load = GaugeMetricFamily(
            "kcga_consumer_load_bytes_per_second", "Write speed of what a consumer reads.", labels=labels
        )
        held = GaugeMetricFamily("kcga_consumer_partitions", "Partitions that a consumer reads.", labels=labels)
        for consumer in shown.consumers:
            load.add_metric([self._group, str(consumer.consumer)], consumer.load)
            held.add_metric([self._group, str(consumer.consumer)], len(consumer.partitions))
        yield load
        yield held

    def _of_decisions(self, reading: Reading) -> Iterator[Metric]:
        counts = reading.counts
        made = CounterMetricFamily("kcga_decisions", "Decisions by what became of them.", labels=["group", "outcome"])
        made.add_metric([self._group, "carried_out"], counts.carried_out)
        made.add_metric([self._group, "held_back"], counts.held_back)
        yield made
        yield from self._counter("kcga_scale_ups", "Plans with more consumers than before.", counts.scale_ups)
        yield from self._counter("kcga_scale_downs", "Plans with fewer consumers than before.", counts.scale_downs)
        yield from self._counter("kcga_migrations", "Partitions moved by plans.", counts.migrations)
        yield from self._counter("kcga_rscore", "Rscore of the plans carried out, in consumers.", counts.rscore)
        solve = SummaryMetricFamily("kcga_solve_seconds", "Time that the solver took.", labels=["group"])
        solve.add_metric([self._group], counts.carried_out + counts.held_back, counts.solve_s)
        yield solve

    def _of_the_newest(self, newest: Decision) -> Iterator[Metric]:
        yield from self._gauge(
            "kcga_decided_timestamp_seconds", "When the newest decision was made.", newest.decided_at
        )
        yield from self._gauge("kcga_plan_objective", "What the newest plan costs.", newest.plan.objective)
        yield from self._gauge("kcga_plan_rscore", "What the newest plan moves, in consumers.", newest.plan.rscore)
        yield from self._gauge("kcga_plan_lower_bound", "What every plan costs at least.", newest.lower_bound)
        yield from self._gauge(
            "kcga_plan_gap_ratio", "How far above the optimum the newest plan is at most.", newest.gap
        )
        excess = newest.shortfall.excess if newest.shortfall else 0.0
        yield from self._gauge(
            "kcga_shortfall_bytes_per_second", "What is above the consumers' capacities by the newest plan.", excess
        )

    def _lag(self, reading: Reading) -> Iterator[Metric]:
        by_topic: dict[str, int] = {}
        for partition, lag in reading.lags.items():
            by_topic[partition.topic] = by_topic.get(partition.topic, 0) + lag.records
        if reading.lags:
            size = math.fsum(lag.bytes for lag in reading.lags.values())
            yield from self._gauge("kcga_lag_bytes", "Not committed yet, on the brokers' disks.", size)
            longest = max(lag.seconds or 0.0 for lag in reading.lags.values())
            yield from self._gauge("kcga_lag_seconds", "The most of a partition, at its write speed.", longest)
        total = GaugeMetricFamily(
            "kafka_consumergroup_lag_sum", "Records not committed yet, by topic.", labels=["consumergroup", "topic"]
        )
        for topic, records in sorted(by_topic.items()):
            total.add_metric([self._group, topic], records)
        yield total
        if self._by_partition:
            each = GaugeMetricFamily(
                "kafka_consumergroup_lag",
                "Records not committed yet.",
                labels=["consumergroup", "topic", "partition"],
            )
            for partition, lag in sorted(reading.lags.items()):
                each.add_metric([self._group, partition.topic, str(partition.partition)], lag.records)
            yield each

    def _of_partitions(self, view: GroupView) -> Iterator[Metric]:
        speed = GaugeMetricFamily(
            "kcga_partition_write_speed_bytes_per_second",
            "Write speed of a partition.",
            labels=["group", "topic", "partition"],
        )
        for partition, value in sorted(view.speeds.items()):
            speed.add_metric([self._group, partition.topic, str(partition.partition)], value)
        yield speed
