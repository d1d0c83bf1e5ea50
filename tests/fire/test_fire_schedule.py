"""What breaks when."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sandbox.chaos.schedule import FIRST_AFTER_S
from tests.fire.faults import LONGEST_S, Kind, schedule

SEEDS = st.integers(0, 2**31 - 1)


@given(SEEDS)
def test_the_same_seed_breaks_the_same_at_the_same_moments(seed: int) -> None:
    assert schedule(seed, 300) == schedule(seed, 300)


@given(SEEDS)
def test_a_longer_fire_begins_as_a_shorter_one(seed: int) -> None:
    shorter = schedule(seed, 60)
    assert schedule(seed, 300)[: len(shorter)] == shorter


@given(SEEDS)
def test_every_kind_comes_before_any_comes_again(seed: int) -> None:
    kinds = [fault.kind for fault in schedule(seed, 600)]
    assert set(kinds[: len(Kind)]) == set(Kind)


@given(SEEDS)
def test_faults_come_one_after_the_other_and_none_lasts_too_long(seed: int) -> None:
    faults = schedule(seed, 600)
    assert faults[0].at_s == FIRST_AFTER_S
    assert all(earlier.at_s < later.at_s < 600 for earlier, later in pairwise(faults))
    assert all(fault.lasts_s <= LONGEST_S.get(fault.kind, 0.0) for fault in faults)


@given(SEEDS)
def test_what_cannot_be_done_is_left_out(seed: int) -> None:
    kinds = [kind for kind in Kind if kind is not Kind.FULL_DISK]
    assert Kind.FULL_DISK not in {fault.kind for fault in schedule(seed, 600, kinds)}
