"""Which open consumer takes an item: each rule against its words, on lists; and the instance that they work on."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.assignment import Assignment
from domain.partitions import TopicPartition
from heuristics.any_fit import Openings
from heuristics.fits import BestFit, FirstFit, Fit, NextFit, WorstFit
from heuristics.items import Items, items_of
from tests.examples import examples

CAPACITY = 10.0
known = settings(max_examples=examples(60), deadline=None, derandomize=True)


def p(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def items(count: int, current: dict[int, int] | None = None, first_consumer: int = 1) -> Items:
    owners = Assignment({p(number): consumer for number, consumer in (current or {}).items()})
    return items_of({p(number): 1.0 for number in range(count)}, CAPACITY, owners, first_consumer)


def expected(fit: type[Fit], opened: list[int], loads: dict[int, float], size: float) -> int | None:
    fitting = [consumer for consumer in sorted(loads) if loads[consumer] + size <= CAPACITY]
    if fit is NextFit:
        return opened[-1] if opened and opened[-1] in fitting else None
    if not fitting:
        return None
    if fit is FirstFit:
        return fitting[0]
    chosen = min if fit is WorstFit else max
    best = chosen(loads[consumer] for consumer in fitting)
    return next(consumer for consumer in fitting if loads[consumer] == best)


# Halves add up exactly, so that equal loads are equal; the third kind of numbers do not.
sizes = st.one_of(st.integers(0, 24).map(lambda size: size / 2), st.floats(0, 12))


@pytest.mark.parametrize("fit", [NextFit, FirstFit, WorstFit, BestFit])
@given(placed=st.lists(sizes, max_size=14), order=st.permutations(range(14)))
@known
def test_an_item_goes_where_the_rule_says_and_nowhere_else(
    fit: type[Fit], placed: list[float], order: list[int]
) -> None:
    bins = fit(items(14))
    loads: dict[int, float] = {}
    opened: list[int] = []
    for size in placed:
        consumer = expected(fit, opened, loads, size)
        assert bins.place(size) == consumer
        if consumer is None:
            opened.append(order[len(opened)])
            loads[opened[-1]] = size
            bins.open(opened[-1], size)
        else:
            loads[consumer] += size


@pytest.mark.parametrize("fit", [NextFit, FirstFit, WorstFit, BestFit])
def test_nothing_fits_before_a_consumer_is_open_or_beside_an_item_above_the_capacity(fit: type[Fit]) -> None:
    bins = fit(items(3))
    assert bins.place(0.0) is None
    bins.open(1, CAPACITY + 1)
    assert bins.place(0.0) is None


def test_items_are_numbered_by_falling_speed_and_equal_ones_in_partition_order() -> None:
    made = items_of({p(3): 1.0, p(1): 5.0, p(2): 5.0, TopicPartition("a", 9): 5.0}, CAPACITY, Assignment(), 1)
    assert made.partitions == [TopicPartition("a", 9), p(1), p(2), p(3)]
    assert made.sizes == [5.0, 5.0, 5.0, 1.0]


def test_consumers_that_have_items_and_enough_others_may_be_opened() -> None:
    made = items(2, {0: 7, 1: 2, 5: 9}, first_consumer=3)
    assert made.consumers == [2, 3, 4, 7]
    assert [made.consumers[owner] for owner in made.owners if owner is not None] == [7, 2]
    assert made.consumers[made.first_new] == 3
    assert made.owned_by == {0: [1], 3: [0]}
    assert made.unassigned == []
    assert made.assignment([1, 1]) == Assignment({p(0): 3, p(1): 3})


def test_an_item_opens_its_owner_or_else_the_lowest_consumer_that_is_closed() -> None:
    openings = Openings(items(4, {0: 2, 1: 2}))
    made = items(4, {0: 2, 1: 2}).consumers
    assert [made[openings.open_for(item)] for item in (0, 1, 2, 3)] == [2, 1, 3, 4]


@pytest.mark.parametrize(
    ("capacity", "first", "speed", "what"),
    [
        (0.0, 1, 1.0, "capacity is 0.0: it must be"),
        (float("inf"), 1, 1.0, "capacity is inf: it must be"),
        (10.0, -1, 1.0, "first_consumer is -1: it must be"),
        (10.0, 1, -1.0, "-1.0"),
        (10.0, 1, float("nan"), "nan"),
    ],
)
def test_a_value_outside_its_range_is_an_error_that_names_it(
    capacity: float, first: int, speed: float, what: str
) -> None:
    with pytest.raises(ValueError, match=what):
        items_of({p(0): speed}, capacity, Assignment(), first)


def test_nothing_to_pack_is_an_instance_without_items() -> None:
    made = items(0)
    assert (list(made.partitions), list(made.consumers), made.owned_by) == ([], [], {})
    assert made.assignment([]) == Assignment()
