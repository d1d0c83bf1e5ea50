"""Kafka's assignors against what Kafka 4.3.1 gave.

`kafka_4_3_1_assignments.json` was recorded by calling `RangeAssignor` and `CooperativeStickyAssignor` of kafka-clients
4.3.1 on random groups whose size and topics change, rebalancing until every partition had a member.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.assignment import Assignment
from domain.partitions import TopicPartition
from heuristics import KAFKA_ASSIGNORS, kafka_assign

RECORDED = json.loads(Path(__file__).with_name("kafka_4_3_1_assignments.json").read_text())


def partitions_of(**sizes: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic, size in sizes.items() for number in range(size)]


def assignment_of(members: dict[str, list[str]]) -> Assignment:
    return Assignment(
        {
            TopicPartition(partition.rpartition("-")[0], int(partition.rpartition("-")[2])): int(member)
            for member, held in members.items()
            for partition in held
        }
    )


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: f"{case['assignor']}-{RECORDED.index(case)}")
def test_the_assignment_is_the_one_that_kafka_gave(case: dict[str, Any]) -> None:
    assert kafka_assign(
        case["assignor"],
        partitions_of(**case["topics"]),
        case["members"],
        assignment_of(case["before"]),
        first_consumer=0,
    ) == assignment_of(case["after"])


partitions = st.sets(st.builds(TopicPartition, st.sampled_from("abc"), st.integers(0, 20)), max_size=40)
assignments = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from("abc"), st.integers(0, 20)), st.sampled_from([0, 1, 2, 5, 9]), max_size=40
).map(Assignment)


@pytest.mark.parametrize("name", KAFKA_ASSIGNORS)
@given(partitions=partitions, consumers=st.integers(1, 12), current=assignments)
def test_every_partition_has_one_of_the_members(
    name: str, partitions: set[TopicPartition], consumers: int, current: Assignment
) -> None:
    plan = kafka_assign(name, partitions, consumers, current)
    assert plan.keys() == partitions
    assert len(plan.consumers) <= consumers


@given(partitions=partitions, consumers=st.integers(1, 12), current=assignments)
def test_sticky_is_even_and_moves_nothing_when_it_is_asked_again(
    partitions: set[TopicPartition], consumers: int, current: Assignment
) -> None:
    plan = kafka_assign("kafka-sticky", partitions, consumers, current)
    counts = [len(held) for held in plan.by_consumer.values()]
    if len(partitions) >= consumers:
        assert len(counts) == consumers
    assert not counts or max(counts) - min(counts) <= 1
    assert kafka_assign("kafka-sticky", partitions, max(len(counts), 1), plan) == plan


def test_a_group_that_shrinks_loses_its_highest_numbers_and_one_that_grows_gains_the_lowest_free_ones() -> None:
    partitions = partitions_of(t=6)
    gaps = Assignment(dict(zip(partitions, [2, 2, 5, 5, 9, 9], strict=True)))
    assert kafka_assign("kafka-sticky", partitions, 2, gaps).consumers == {2, 5}
    assert kafka_assign("kafka-sticky", partitions, 5, gaps).consumers == {1, 2, 3, 5, 9}


def test_range_gives_the_first_members_one_more_of_every_topic() -> None:
    plan = kafka_assign("kafka-range", partitions_of(a=3, b=3), 2)
    assert plan == assignment_of({"1": ["a-0", "a-1", "b-0", "b-1"], "2": ["a-2", "b-2"]})


@pytest.mark.parametrize(
    ("name", "consumers", "first_consumer", "reason"),
    [
        ("kafka-fair", 1, 1, "no assignor 'kafka-fair': it must be one of kafka-range, kafka-sticky"),
        ("kafka-range", 0, 1, "consumers is 0: a group needs 1 or more"),
        ("kafka-range", 1, -1, "first_consumer is -1: it must be 0 or more"),
    ],
)
def test_what_cannot_be_assigned_is_refused(name: str, consumers: int, first_consumer: int, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        kafka_assign(name, [], consumers, first_consumer=first_consumer)
