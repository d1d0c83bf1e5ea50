from domain.partitions import TopicPartition
from monitor.estimates import SpeedEstimates
from monitor.growth import LogMeasurement

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def measured(at: float, stored: int) -> LogMeasurement:
    return LogMeasurement(at, topic_id="a", leader=1, stored_bytes=stored)


def speeds(estimates: SpeedEstimates, at: float) -> dict[TopicPartition, float | None]:
    return {partition: speed.bytes_per_s if speed else None for partition, speed in estimates.speeds(at).items()}


def test_a_partition_of_interest_that_was_not_measured_is_unknown_and_not_zero() -> None:
    estimates = SpeedEstimates(window_s=30, hold_s=15, interval_s=1)
    estimates.follow([A1, A0])
    estimates.add([(A0, measured(0, 0)), (A0, measured(1, 50))])
    assert speeds(estimates, at=1) == {A0: 50, A1: None}
    assert list(estimates.speeds(at=1)) == [A0, A1]


def test_measurements_of_other_partitions_are_left_aside() -> None:
    estimates = SpeedEstimates(window_s=30, hold_s=15, interval_s=1)
    estimates.follow([A0])
    estimates.add([(A1, measured(0, 0)), (A1, measured(1, 50))])
    assert speeds(estimates, at=1) == {A0: None}


def test_a_partition_that_was_of_no_interest_for_a_while_begins_anew() -> None:
    estimates = SpeedEstimates(window_s=30, hold_s=15, interval_s=1)
    estimates.follow([A0])
    estimates.add([(A0, measured(0, 0)), (A0, measured(1, 50))])
    estimates.follow([])
    estimates.follow([A0])
    assert speeds(estimates, at=1) == {A0: None}


def test_measurements_less_than_half_an_interval_apart_give_no_speed() -> None:
    estimates = SpeedEstimates(window_s=30, hold_s=15, interval_s=1)
    estimates.follow([A0])
    estimates.add([(A0, measured(0, 0)), (A0, measured(0.4, 50))])
    assert speeds(estimates, at=1) == {A0: None}
