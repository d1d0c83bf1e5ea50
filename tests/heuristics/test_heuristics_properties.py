"""What holds for every heuristic on every instance, above all: the plan is the one that the plain rules give."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import naive
from domain.assignment import Assignment
from domain.partitions import TopicPartition
from heuristics import HEURISTICS, pack

names = st.sampled_from(HEURISTICS)


@dataclass(frozen=True)
class Instance:
    speeds: dict[TopicPartition, float]
    capacity: float
    current: Assignment
    first_consumer: int


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    """With ties, idle and oversized partitions, vanished and new ones, and consumers with gaps in their numbers."""
    sizes, capacity = draw(
        st.sampled_from(
            [
                (st.integers(0, 12).map(float), 10.0),
                (st.integers(0, 12).map(lambda tenths: tenths / 10), 1.0),  # sums that are rounded
                (st.floats(0, 120), 100.0),
            ]
        )
    )
    partitions = st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 30))
    consumers = st.sampled_from([0, 1, 2, 3, 4, 5, 8, 9, 1_000_000])
    return Instance(
        speeds=draw(st.dictionaries(partitions, sizes, max_size=40)),
        capacity=capacity,
        current=Assignment(draw(st.dictionaries(partitions, consumers, max_size=40))),
        first_consumer=draw(st.integers(0, 4)),
    )


def plan_of(name: str, instance: Instance, seed: int = 0) -> Assignment:
    return pack(
        name,
        instance.speeds,
        instance.capacity,
        instance.current,
        first_consumer=instance.first_consumer,
        seed=seed,
    )


@pytest.mark.parametrize("name", HEURISTICS)
@given(instance=instances(), seed=st.integers(0, 3))
def test_the_plan_is_that_of_the_plain_rules(name: str, instance: Instance, seed: int) -> None:
    assert plan_of(name, instance, seed) == naive.pack(
        name,
        instance.speeds,
        instance.capacity,
        instance.current,
        first_consumer=instance.first_consumer,
        seed=seed,
    )


@given(name=names, instance=instances())
def test_every_partition_that_has_a_speed_gets_a_consumer_and_no_other_does(name: str, instance: Instance) -> None:
    assert plan_of(name, instance).keys() == instance.speeds.keys()


@given(name=names, instance=instances())
def test_nobody_holds_more_than_the_capacity_but_a_single_partition(name: str, instance: Instance) -> None:
    plan = plan_of(name, instance)
    rounding = 1e-14 * len(instance.speeds)
    for consumer, load in plan.loads(instance.speeds).items():
        assert load <= instance.capacity * (1 + rounding) or len(plan.by_consumer[consumer]) == 1


@given(name=names, instance=instances(), seed=st.integers())
def test_same_input_and_seed_same_plan(name: str, instance: Instance, seed: int) -> None:
    reordered = Instance(
        speeds=dict(reversed(instance.speeds.items())),
        capacity=instance.capacity,
        current=Assignment(dict(reversed(list(instance.current.items())))),
        first_consumer=instance.first_consumer,
    )
    assert plan_of(name, instance, seed) == plan_of(name, reordered, seed)


@given(name=names, instance=instances())
def test_consumers_are_current_ones_or_numbered_without_need_to_pass_the_number_of_partitions(
    name: str, instance: Instance
) -> None:
    new = plan_of(name, instance).consumers - set(instance.current.values())
    assert all(instance.first_consumer <= consumer < instance.first_consumer + len(instance.speeds) for consumer in new)


def test_the_seed_decides_the_order_of_the_online_ones() -> None:
    speeds = {TopicPartition("t", number): 5.0 + number for number in range(50)}
    plans = {pack("nf", speeds, 100.0, seed=seed) for seed in range(5)}
    assert len(plans) == 5
