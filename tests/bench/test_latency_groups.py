"""Who reads what while a simulated group changes, on cases that can be worked out by hand."""

from collections.abc import Callable

import numpy as np
import pytest

from bench.latency.autoscalers import FlinkSettings
from bench.latency.flink_job import FlinkJob
from bench.latency.kafka_group import HEARTBEAT_S, SYNC_S, KafkaGroup
from bench.latency.kcga_group import ANSWERS_AFTER_S, MESSAGE_S, MONITOR, KcgaGroup
from bench.latency.queues import NOBODY, Queues, Readers
from bench.latency.times import Times
from controller.settings import ControllerSettings
from domain.partitions import TopicPartition
from monitor.measure.estimates import LEAST_SHARE

TICK_S = 0.1
TIMES = Times("made up", creation_s=(5.0,), stop_s=(2.0,), start_s=(1.0,))
FOUR = [TopicPartition("orders", number) for number in range(4)]


def unread_s(
    group: KafkaGroup | KcgaGroup | FlinkJob, speeds: list[float], seconds: float, capacity: float
) -> list[float]:
    """How long each partition had no reader."""
    ticks = round(seconds / TICK_S)
    queues = Queues(len(speeds), ticks, TICK_S, capacity)
    unread = np.zeros(len(speeds))
    for tick in range(ticks):
        group.advance(tick * TICK_S, queues)
        unread += group.readers == NOBODY
        queues.advance(np.array(speeds), group.readers)
    found: list[float] = (unread * TICK_S).tolist()
    return found


def growing(assignor: str) -> KafkaGroup:
    """One consumer, and a second from the first moment on."""
    return KafkaGroup(FOUR, assignor, 1, lambda _now, _consumers, _queues: 2, TIMES, seed=1)


def test_with_cooperative_sticky_only_what_moves_is_unread_for_one_rebalance() -> None:
    group = growing("kafka-sticky")
    unread = unread_s(group, [0.0] * 4, 30, capacity=1.0)
    assert sorted(unread)[:2] == [0.0, 0.0]
    shortest, longest = TIMES.stop_s[0] + SYNC_S, HEARTBEAT_S + TIMES.stop_s[0] + SYNC_S
    for seconds in sorted(unread)[2:]:
        assert shortest - TICK_S <= seconds <= longest + TICK_S
    assert group.migrations == 2
    assert sorted(group.readers.tolist()) == [1, 1, 2, 2]


def test_with_range_everything_is_unread_until_all_have_joined() -> None:
    group = growing("kafka-range")
    unread = unread_s(group, [0.0] * 4, 30, capacity=1.0)
    assert all(seconds >= SYNC_S - TICK_S for seconds in unread)
    assert min(unread) > 0
    assert sorted(group.readers.tolist()) == [1, 1, 2, 2]


def test_the_partitions_of_a_consumer_that_leaves_are_unread_for_one_rebalance() -> None:
    group = KafkaGroup(FOUR, "kafka-sticky", 2, lambda _now, _consumers, _queues: 1, TIMES, seed=1)
    unread = unread_s(group, [0.0] * 4, 30, capacity=1.0)
    assert sorted(unread)[:2] == [0.0, 0.0]
    assert sorted(unread)[2:] == pytest.approx([max(unread)] * 2)
    assert TIMES.stop_s[0] <= max(unread) <= HEARTBEAT_S + TIMES.stop_s[0] + SYNC_S + TICK_S
    assert group.readers.tolist() == [1] * 4


def test_a_fixed_group_never_stops_reading() -> None:
    group = KafkaGroup(FOUR, "kafka-range", 2, lambda _now, consumers, _queues: consumers, TIMES, seed=1)
    assert unread_s(group, [0.0] * 4, 30, capacity=1.0) == [0.0] * 4
    assert group.migrations == 0


def test_all_of_a_flink_job_stops_when_its_parallelism_changes() -> None:
    settings = FlinkSettings(window_s=60, stabilisation_s=60, catch_up_s=600, restart_s=30)
    group = FlinkJob(FOUR, 1, settings, restart_takes_s=20, capacity=1.0)
    assert unread_s(group, [0.5] * 4, 200, capacity=1.0) == pytest.approx([20.0] * 4)
    assert group.consumers == 4


CONTROLLER = ControllerSettings(
    consumer_capacity=10.0,
    packing_capacity=8.0,
    scale_down_window_s=3600.0,
    recovery_time_s=0.0,  # backlogs move nothing
)


def test_kcga_creates_a_consumer_and_starts_everything_on_it() -> None:
    group = KcgaGroup(FOUR, CONTROLLER, TIMES, seed=1)
    until_read = TIMES.creation_s[0] + MESSAGE_S + MESSAGE_S + TIMES.start_s[0]
    unread = unread_s(group, [1.0] * 4, 60, capacity=10.0)
    assert unread == pytest.approx([MONITOR.interval_s + until_read] * 4, abs=3 * TICK_S)
    assert group.consumers == 1
    assert group.migrations == 0


def unread_after_a_change(
    group: KcgaGroup, before: list[float], after: Callable[[Readers], list[float]]
) -> list[float]:
    """How long each partition has no reader when the speeds change after 100 s, by who reads what then."""
    queues = Queues(len(before), 2000, TICK_S, CONTROLLER.consumer_capacity)
    unread = np.zeros(len(before))
    speeds = before
    for tick in range(2000):
        group.advance(tick * TICK_S, queues)
        if tick == 1000:
            speeds = after(group.readers)
        if tick >= 1000:
            unread += group.readers == NOBODY
        queues.advance(np.array(speeds), group.readers)
    found: list[float] = (unread * TICK_S).tolist()
    return found


def test_a_partition_that_moves_is_unread_from_its_stop_until_it_is_taken_over() -> None:
    group = KcgaGroup(FOUR, CONTROLLER, TIMES, seed=1)

    def one_consumer_has_too_much(readers: Readers) -> list[float]:
        speeds = np.where(readers == readers[0], 4.0, 1.0)
        speeds[0] = 7.0
        found: list[float] = speeds.tolist()
        return found

    unread = unread_after_a_change(group, [4.0] * 4, one_consumer_has_too_much)
    # The stop is carried out and reported, the start is sent, and the partition is taken over.
    handover = TIMES.stop_s[0] + 2 * MESSAGE_S + TIMES.start_s[0]
    assert sorted(unread)[:3] == [0.0] * 3
    assert max(unread) == pytest.approx(handover, abs=4 * TICK_S)
    assert group.migrations == 1


def test_a_partition_that_moves_to_a_new_consumer_is_read_where_it_was_until_that_one_is_there() -> None:
    group = KcgaGroup(FOUR, CONTROLLER, TIMES, seed=1)
    unread = unread_after_a_change(group, [1.0] * 4, lambda _readers: [1.0, 1.0, 1.0, 7.5])
    handover = TIMES.stop_s[0] + 2 * MESSAGE_S + TIMES.start_s[0]
    assert sorted(unread)[:3] == [0.0] * 3
    assert max(unread) == pytest.approx(handover, abs=4 * TICK_S)
    assert group.consumers == 2


@pytest.mark.parametrize(
    ("follow_changes", "share_of_window"),
    [
        (False, 6 / 14),  # the sum rises from 4 to 18, so the mean of the window is above 10 after that
        (True, LEAST_SHARE),
    ],
)
def test_kcga_learns_of_a_rise_as_late_as_the_window_makes_it(follow_changes: bool, share_of_window: float) -> None:
    monitor = MONITOR.model_copy(update={"follow_changes": follow_changes})
    group = KcgaGroup(FOUR, CONTROLLER, TIMES, seed=1, monitor=monitor)
    queues = Queues(4, 4000, TICK_S, 10.0)
    noticed_at = None
    for tick in range(4000):
        at = tick * TICK_S
        group.advance(at, queues)
        if noticed_at is None and group.consumers == 2:
            noticed_at = at
        queues.advance(np.array([1.0, 1.0, 1.0, 1.0 if at < 100 else 15.0]), group.readers)
    assert noticed_at is not None
    late_s = share_of_window * monitor.window_s + ANSWERS_AFTER_S
    assert noticed_at == pytest.approx(100 + late_s, abs=monitor.interval_s + 2 * TICK_S)
