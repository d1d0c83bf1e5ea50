"""Plans that are mended, and the numbers of their consumers."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.decide.mending import class_for, mended, numbered
from domain.assignment import Assignment
from domain.consumer_class import ConsumerClass
from domain.partitions import TopicPartition
from solver.problem import Problem

NUMBERS = st.integers(1, 8)


def p(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


def problem(speeds: Mapping[TopicPartition, float], **more: Any) -> Problem:
    return Problem(speeds=speeds, capacity=100.0, packing_capacity=80.0, **more)


@pytest.mark.parametrize(
    ("kept", "idle", "free", "expected"),
    [
        ({1, 2}, [], [3], {p(0): 1, p(1): 2}),
        ({2}, [], [3, 4], {p(0): 3, p(1): 2}),
        (set(), [7], [5, 6], {p(0): 7, p(1): 5}),
        ({2}, [], [], {p(1): 2}),
    ],
    ids=["all are", "one hangs", "an idle one goes before new ones", "none is left"],
)
def test_a_plan_has_numbers_that_consumers_can_have(
    kept: set[int], idle: list[int], free: list[int], expected: dict[TopicPartition, int]
) -> None:
    """Hole 7: where numbers run out, what is left of the plan is a plan."""
    plan = Assignment({p(0): 1, p(1): 2})
    assert numbered(plan, kept, dict.fromkeys(idle, "ordinary"), free, {}) == Assignment(expected)


@given(
    plan=st.dictionaries(st.integers(0, 5), NUMBERS),
    unread=st.dictionaries(st.integers(6, 12), st.floats(0, 150), min_size=1),
    at_once=st.frozensets(NUMBERS),
    begin=st.frozensets(st.integers(11, 14)),
    new=st.lists(st.integers(20, 30), max_size=3, unique=True),
)
def test_all_that_can_be_read_gets_a_reader_and_nothing_else_moves(
    plan: dict[int, int], unread: dict[int, float], at_once: frozenset[int], begin: frozenset[int], new: list[int]
) -> None:
    """Hole 5: it takes one consumer that can read."""
    before = Assignment({p(number): consumer for number, consumer in plan.items()})
    speeds = {p(number): speed for number, speed in unread.items()} | dict.fromkeys(before, 10.0)
    after = mended(problem(speeds), before, (at_once, begin), new, {}, 30)
    assert before.items() <= after.items()
    assert {after[partition] for partition in after.keys() - before.keys()} <= at_once | begin | set(new)
    if at_once or begin or new:
        assert after.keys() == speeds.keys()
    loads = after.loads(speeds)
    if len(after.consumers & set(new)) < len(new):
        for consumer, held in after.by_consumer.items():
            given_more = len(held) > len(before.by_consumer.get(consumer, ()))
            assert not given_more or loads[consumer] <= 80.0 or sum(speeds[each] > 0 for each in held) == 1


def test_a_pinned_partition_goes_where_it_is_pinned_if_that_can_be() -> None:
    """Hole 8: and elsewhere if not."""
    speeds = {p(0): 50.0}
    assert mended(problem(speeds), Assignment(), ({1, 2}, set()), (), {p(0): 2}, 30) == Assignment({p(0): 2})
    assert mended(problem(speeds), Assignment(), ({1}, set()), (), {p(0): 2}, 30) == Assignment({p(0): 1})


def test_a_consumer_with_a_partition_of_unknown_size_is_given_no_more() -> None:
    """Hole 14."""
    plan = Assignment({p(0): 1})
    after = mended(problem({p(1): 5.0}), plan, ({1}, set()), (2,), {}, 30)
    assert after == Assignment({p(0): 1, p(1): 2})


def test_there_are_no_more_consumers_than_there_may_be_and_pins_have_theirs_first() -> None:
    """Whether they are there and have nothing to read, or begin, or are new."""
    plan, speeds = Assignment({p(0): 1}), {p(0): 70.0, p(1): 60.0, p(2): 50.0, p(3): 1.0}
    for at_once, begin, new in (({1, 2, 3}, {9}, ()), ({1}, {2, 3, 9}, ()), ({1}, {9}, (2, 3))):
        after = mended(problem(speeds), plan, (at_once, begin), new, {p(3): 9}, 2)
        assert after == Assignment({p(0): 1, p(1): 9, p(2): 9, p(3): 9})
        assert len(mended(problem(speeds), plan, (at_once, begin), new, {}, 2).consumers) == 2


LARGE = ConsumerClass("large", 400.0, 5.0)


def test_a_new_consumer_takes_the_number_of_an_idle_one_of_its_class_only() -> None:
    plan, idle = Assignment({p(0): 1, p(1): 2}), {7: "ordinary", 8: "large"}
    assert numbered(plan, set(), idle, [5], {2: "large"}) == Assignment({p(0): 7, p(1): 8})
    assert numbered(plan, set(), {7: "ordinary"}, [5, 6], {1: "large", 2: "large"}) == Assignment({p(0): 5, p(1): 6})


def test_consumers_of_each_class_are_given_as_much_as_one_of_it_is_to_have() -> None:
    asked = problem({p(0): 70.0, p(1): 70.0, p(2): 70.0}, classes=(LARGE,), class_names={1: "ordinary", 2: "large"})
    after = mended(asked, Assignment(), ({1, 2}, set()), (), {}, 30)
    assert after == Assignment({p(0): 1, p(1): 2, p(2): 2})


def test_a_partition_that_an_ordinary_consumer_cannot_read_gets_a_new_one_of_a_class_that_can() -> None:
    asked = problem({p(0): 150.0, p(1): 90.0}, classes=(LARGE,), class_names={1: "ordinary"})
    after = mended(asked, Assignment(), ({1}, set()), (5, 6), {}, 30)
    assert after == Assignment({p(0): 5, p(1): 1})
    assert [class_for(asked, speed).name for speed in (20.0, 90.0, 150.0, 500.0)] == [
        "ordinary",
        "ordinary",
        "large",
        "large",
    ]
