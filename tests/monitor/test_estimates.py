from domain.partitions import TopicPartition
from monitor.measure.estimates import SpeedEstimates
from monitor.measure.growth import LogMeasurement

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def measured(at: float, stored: int) -> LogMeasurement:
    return LogMeasurement(at, topic_id="a", leader=1, stored_bytes=stored)


def speeds(estimates: SpeedEstimates, at: float) -> dict[TopicPartition, float | None]:
    return {partition: speed.bytes_per_s if speed else None for partition, speed in estimates.speeds(at).items()}


def test_a_partition_of_interest_that_was_not_measured_is_unknown_and_not_zero() -> None:
    estimates = SpeedEstimates(window_s=6, hold_s=15)
    estimates.follow([A1, A0])
    estimates.add([(A0, measured(0, 0)), (A0, measured(1, 50))])
    assert speeds(estimates, at=1) == {A0: 50, A1: None}
    assert list(estimates.speeds(at=1)) == [A0, A1]


def test_measurements_of_other_partitions_are_left_aside() -> None:
    estimates = SpeedEstimates(window_s=6, hold_s=15)
    estimates.follow([A0])
    estimates.add([(A1, measured(0, 0)), (A1, measured(1, 50))])
    assert speeds(estimates, at=1) == {A0: None}


def test_a_partition_that_was_of_no_interest_for_a_while_begins_anew() -> None:
    estimates = SpeedEstimates(window_s=6, hold_s=15)
    estimates.follow([A0])
    estimates.add([(A0, measured(0, 0)), (A0, measured(1, 50))])
    estimates.follow([])
    estimates.follow([A0])
    assert speeds(estimates, at=1) == {A0: None}


def test_less_than_a_sixth_of_the_window_gives_no_speed() -> None:
    estimates = SpeedEstimates(window_s=6, hold_s=15)
    estimates.follow([A0])
    estimates.add([(A0, measured(0, 0)), (A0, measured(0.9, 50))])
    assert speeds(estimates, at=1) == {A0: None}
    estimates.add([(A0, measured(1, 50))])
    assert speeds(estimates, at=1) == {A0: 50}


def test_a_monitor_that_is_restarted_takes_batches_neither_for_idleness_nor_for_speed() -> None:
    estimates = SpeedEstimates(window_s=30, hold_s=15)
    estimates.follow([A0])
    for second in range(60):
        written = 1000 * (second // 2)  # 500 bytes/s, in batches of two seconds
        estimates.add([(A0, measured(second, written))])
        known = speeds(estimates, at=second)[A0]
        assert known is None or 500 / 1.5 <= known <= 500 * 1.5
    assert known is not None
