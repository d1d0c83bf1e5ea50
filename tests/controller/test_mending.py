"""Plans that are mended, and the numbers of their consumers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.decide.mending import mended, numbered
from domain.assignment import Assignment
from domain.partitions import TopicPartition

NUMBERS = st.integers(1, 8)


def p(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


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
    assert numbered(Assignment({p(0): 1, p(1): 2}), kept, idle, free) == Assignment(expected)


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
    after = mended(before, speeds.keys() - before.keys(), speeds, 80.0, (at_once, begin), new, {}, 30)
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
    assert mended(Assignment(), {p(0)}, speeds, 80.0, ({1, 2}, set()), (), {p(0): 2}, 30) == Assignment({p(0): 2})
    assert mended(Assignment(), {p(0)}, speeds, 80.0, ({1}, set()), (), {p(0): 2}, 30) == Assignment({p(0): 1})


def test_a_consumer_with_a_partition_of_unknown_size_is_given_no_more() -> None:
    """Hole 14."""
    plan = Assignment({p(0): 1})
    after = mended(plan, {p(1)}, {p(1): 5.0}, 80.0, ({1}, set()), (2,), {}, 30)
    assert after == Assignment({p(0): 1, p(1): 2})


def test_there_are_no_more_consumers_than_there_may_be_and_pins_have_theirs_first() -> None:
    """Whether they are there and have nothing to read, or begin, or are new."""
    plan, speeds = Assignment({p(0): 1}), {p(0): 70.0, p(1): 60.0, p(2): 50.0, p(3): 1.0}
    unread = speeds.keys() - plan.keys()
    for at_once, begin, new in (({1, 2, 3}, {9}, ()), ({1}, {2, 3, 9}, ()), ({1}, {9}, (2, 3))):
        after = mended(plan, unread, speeds, 80.0, (at_once, begin), new, {p(3): 9}, 2)
        assert after == Assignment({p(0): 1, p(1): 9, p(2): 9, p(3): 9})
        assert len(mended(plan, unread, speeds, 80.0, (at_once, begin), new, {}, 2).consumers) == 2
