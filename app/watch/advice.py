"""What a watch advises now, for whoever asks: told by the thread that watches, asked by others."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from app.status.health import Health
from app.watch.decide.watcher import CapacityFrom, Moment


class NoAdviceError(Exception):
    """How many consumers there should be is not known now; says why."""


class Advice(Collector):
    """Of one group.

    Args:
        group: its name.
        holds_s: advice that is older counts no more.
        clock: monotonic, in seconds.
    """

    def __init__(self, group: str, holds_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.group = group
        self._holds_s = holds_s
        self._clock = clock
        self._changed = threading.Lock()
        self._looked: tuple[float, Moment] | None = None
        self._looks = 0
        self._advised: tuple[float, int] | None = None

    def tell(self, moment: Moment) -> None:
        """Somebody has looked at the group."""
        with self._changed:
            self._looked = self._clock(), moment
            self._looks += 1
            if moment.advised is not None:
                self._advised = self._clock(), moment.advised

    @property
    def consumers(self) -> int:
        """How many there should be now. A rebalance, and brokers that are away for a moment, leave it as it was.

        Raises:
            NoAdviceError: nobody could tell for too long.
        """
        with self._changed:
            if self._advised is None:
                raise NoAdviceError(
                    "there is no advice yet: it takes write speeds, a group that is not rebalancing, "
                    "and what a consumer reads at most"
                )
            advised_at, consumers = self._advised
        if (age_s := self._clock() - advised_at) > self._holds_s:
            raise NoAdviceError(f"the newest advice is {age_s:.0f} s old")
        return consumers

    @property
    def newest(self) -> tuple[int, Moment | None]:
        """What was seen last, and the how-manieth look that was."""
        with self._changed:
            return self._looks, None if self._looked is None else self._looked[1]

    def alive(self) -> Health:
        """Whether anybody looks."""
        with self._changed:
            looked = self._looked
        if looked is None:
            return Health(True, "it begins")
        age_s = self._clock() - looked[0]
        return Health(age_s <= self._holds_s, f"the last look at the group was {age_s:.0f} s ago")

    def ready(self) -> Health:
        """Whether there is advice."""
        try:
            return Health(True, f"advises {self.consumers}")
        except NoAdviceError as error:
            return Health(False, str(error))

    def describe(self) -> Iterator[Metric]:
        """Nothing: what there is depends on the group."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        with self._changed:
            looked = self._looked
        if looked is None:
            return
        moment, saving = looked[1], looked[1].saving
        capacity = None if moment.capacity_from is CapacityFrom.UNKNOWN else moment.capacity
        figures: list[tuple[str, str, float | None]] = [
            ("consumers", "Consumers of the group.", moment.consumers),
            ("consumers_overloaded", "Those that have more to read than a consumer can.", len(moment.overloaded)),
            ("consumers_idle", "Those that have less than a tenth of that.", len(moment.idle)),
            ("partitions_unread", "Partitions that nobody reads.", len(moment.unread)),
            ("consumer_capacity_bytes_per_second", "What a consumer reads at most, given or by an estimate.", capacity),
            ("write_speed_bytes_per_second", "Of all partitions that the group reads.", moment.written),
            ("lag_records", "Records that are not committed yet.", moment.lag),
            ("lag_seconds", "Of the partition that is furthest behind.", moment.lag_s),
        ]
        with suppress(NoAdviceError):
            figures.append(("consumers_advised", "Consumers that there should be.", self.consumers))
        for name, text, value in figures:
            if value is not None:  # else it is not known
                yield self._of_group(GaugeMetricFamily(f"kcga_watch_{name}", text, labels=["group"]), value)
        seen = CounterMetricFamily("kcga_watch_rebalances", "Rebalances seen.", labels=["group"])
        yield self._of_group(seen, moment.rebalances_seen)
        if saving is not None:
            hours = "Consumer-hours since it is watched"
            for name, text, value in (
                ("consumer_hours", f"{hours}.", saving.consumer_hours),
                (
                    "consumer_hours_with_kcga",
                    f"{hours}, had kcga been its controller.",
                    saving.consumer_hours_with_kcga,
                ),
            ):
                yield self._of_group(CounterMetricFamily(f"kcga_watch_{name}", text, labels=["group"]), value)

    def _of_group(self, family: GaugeMetricFamily | CounterMetricFamily, value: float) -> Metric:
        family.add_metric([self.group], value)
        return family
