"""A load that does not change moves nothing: what the monitor makes of it, however it is written, in the controller."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.settings import ControllerSettings
from domain.partitions import OffsetRange, TopicPartition
from monitor.measure.estimates import SpeedEstimates
from monitor.measure.growth import LogMeasurement
from monitor.settings import MonitorSettings
from tests.controller.world import World
from tests.examples import examples

RECORD_BYTES = 100
SETTINGS = ControllerSettings(consumer_capacity=10_000.0, scale_down_window_s=60.0, interval_s=20.0)
MONITOR = MonitorSettings(topics=("orders",))
SETTLED_S = 150
"""The first plan rests on a few seconds of measurements; what was too much is removed after a scale-down window."""
RESTARTED_S = 300
"""When the monitor begins anew."""
TEN_MINUTES = 600


@dataclass
class BatchedLog:
    """A partition's log: written in batches, read in cycles, its old segments deleted now and then."""

    speed: float
    batch_s: float
    phase: float
    cycle_s: float
    segment_records: int
    committed: int = field(default=0, init=False)

    def end(self, at: float) -> int:
        """The end offset: what was due at the last batch is there."""
        last_batch = (at + self.phase) // self.batch_s * self.batch_s
        return int(self.speed * last_batch / RECORD_BYTES)

    def measured(self, at: float) -> LogMeasurement:
        """Two segments at most are kept."""
        end = self.end(at)
        start = max(0, end // self.segment_records - 1) * self.segment_records
        return LogMeasurement(at, "log", 1, (end - start) * RECORD_BYTES, OffsetRange(start, end))

    def commit(self, at: float) -> int:
        self.committed = self.end(at // self.cycle_s * self.cycle_s)
        return self.committed


logs = st.builds(
    BatchedLog,
    speed=st.floats(500, 5_000),
    batch_s=st.floats(0.05, 1.0),
    phase=st.floats(0, 2),
    cycle_s=st.floats(1, 8),
    segment_records=st.integers(100, 2_000),
)


# Loads on the very edge of a plan may shrink late.
@settings(max_examples=examples(20), deadline=None, derandomize=True)
@given(st.lists(logs, min_size=2, max_size=5), st.integers(0, 99))
def test_a_steady_load_moves_no_partition_even_if_the_monitor_is_restarted(
    written: list[BatchedLog], seed: int
) -> None:
    partitions = {TopicPartition("orders", number): log for number, log in enumerate(written)}
    world = World(SETTINGS, seed)
    for second in range(TEN_MINUTES):
        if second in (0, RESTARTED_S):
            estimates = SpeedEstimates(MONITOR.window_s, MONITOR.hold_s, follows_changes=MONITOR.follow_changes)
            estimates.follow(partitions)
        if second == SETTLED_S:
            settled = len(world.decisions)
        at = 100.0 + second + world.random.uniform(0, 0.1)
        estimates.add((partition, log.measured(at)) for partition, log in partitions.items())
        estimates.commit({partition: log.commit(at) for partition, log in partitions.items()}, at)
        world.speeds = {partition: speed.bytes_per_s for partition, speed in estimates.speeds(at).items() if speed}
        world.unknown = frozenset(partitions.keys() - world.speeds.keys())
        world.lags = {partition: lag.bytes for partition, lag in estimates.lags(at).items()}
        world.step(1.0)
    assert len(world.decisions) > settled
    assert not any(decision.carried_out for decision in world.decisions[settled:])
