import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.assignment import Assignment, Migration
from domain.partitions import TopicPartition
from domain.rscore import rscore

A, B, C, D = (TopicPartition("orders", number) for number in range(4))

ASSIGNMENTS = st.dictionaries(st.sampled_from([A, B, C, D]), st.integers(1, 3)).map(Assignment)


def test_a_partition_migrates_when_it_has_a_consumer_before_and_another_one_after() -> None:
    before = Assignment({A: 1, B: 1, C: 2})
    after = Assignment({A: 1, B: 2, D: 2})
    assert before.migrations_to(after) == (Migration(B, source=1, target=2),)


def test_partitions_are_grouped_by_consumer_in_ascending_order() -> None:
    assert Assignment({C: 2, B: 1, A: 2}).by_consumer == {1: (B,), 2: (A, C)}


def test_a_load_is_the_sum_of_the_speeds() -> None:
    assert Assignment({A: 1, B: 1, C: 2}).loads({A: 1.5, B: 2.0}) == {1: 3.5, 2: 0.0}


def test_the_rscore_is_the_new_speed_of_what_moved_in_consumers() -> None:
    moved = Assignment({A: 1, B: 1, C: 2}).migrations_to(Assignment({A: 2, B: 2, C: 2}))
    assert rscore(moved, {A: 30.0, B: 20.0, C: 90.0}, capacity=100.0) == pytest.approx(0.5)


@given(ASSIGNMENTS, ASSIGNMENTS)
def test_carrying_the_migrations_out_leads_from_one_assignment_to_the_other(
    before: Assignment, after: Assignment
) -> None:
    changed = {migration.partition: migration.target for migration in before.migrations_to(after)}
    common = before.keys() & after.keys()
    assert {p: {**before, **changed}[p] for p in common} == {p: after[p] for p in common}


@given(ASSIGNMENTS)
def test_staying_migrates_nothing(assignment: Assignment) -> None:
    assert assignment.migrations_to(assignment) == ()
