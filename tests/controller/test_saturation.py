"""Partitions that are faster than a consumer, and how many partitions their topic would need."""

from controller.decide.saturation import saturated
from domain.partitions import TopicPartition

SLOW, HOT, HOTTER, OTHER = (
    TopicPartition("orders", 0),
    TopicPartition("orders", 1),
    TopicPartition("orders", 2),
    TopicPartition("clicks", 0),
)


def needed(speeds: dict[TopicPartition, float], named: set[TopicPartition] | None = None) -> dict[TopicPartition, int]:
    found = saturated(speeds, named or set(), capacity=100.0, packing_capacity=80.0)
    return {TopicPartition(each.topic, each.partition): each.partitions_needed for each in found}


def test_a_partition_as_fast_as_a_consumer_is_fast_enough_for_nobody_to_mind() -> None:
    assert needed({SLOW: 100.0, OTHER: 80.1}) == {}


def test_a_topic_needs_so_many_times_its_partitions_as_the_fast_one_fills_consumers() -> None:
    assert needed({SLOW: 1.0, HOT: 160.0, OTHER: 30.0}) == {HOT: 4}
    assert needed({SLOW: 1.0, HOT: 160.1, OTHER: 30.0}) == {HOT: 6}


def test_partitions_of_unknown_speed_count_among_those_of_the_topic() -> None:
    assert needed({HOT: 120.0}, {SLOW, HOTTER, OTHER}) == {HOT: 6}


def test_each_fast_partition_is_told_in_ascending_order_with_its_speed() -> None:
    found = saturated({HOTTER: 300.0, HOT: 150.0, OTHER: 101.0}, set(), 100.0, 80.0)
    assert [(each.topic, each.partition, each.speed) for each in found] == [
        ("clicks", 0, 101.0),
        ("orders", 1, 150.0),
        ("orders", 2, 300.0),
    ]


def test_nothing_is_fast_where_nothing_is() -> None:
    assert saturated({}, {SLOW}, 100.0, 80.0) == ()
