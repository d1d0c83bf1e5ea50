"""The window of the highest sizes: never shorter than it says, and bounded."""

from hypothesis import given
from hypothesis import strategies as st

from controller.decide.highest_sizes import BUCKETS, LEAST_S, HighestSizes
from controller.decide.sizes import Size
from domain.partitions import TopicPartition

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
PASSED_S = st.just(0.0) | st.floats(1000 * LEAST_S, 40)
"""From one moment to the next: the same one, or a later one that can be told from it."""
STEPS = st.lists(st.tuples(PASSED_S, st.floats(0, 100)), min_size=1, max_size=60)


@given(window_s=st.floats(0, 100), steps=STEPS)
def test_it_covers_the_whole_window_and_at_most_a_bucket_more(
    window_s: float, steps: list[tuple[float, float]]
) -> None:
    sizes = HighestSizes(window_s, longest_gap_s=1000.0)
    at, seen = 0.0, list[tuple[float, float]]()
    for passed, speed in steps:
        at += passed
        seen.append((at, speed))
        sizes.record(at, at, {P: Size(speed)})
    highest = sizes.over({P: Size(steps[-1][1])})[P].total
    within = max(speed for when, speed in seen if when >= at - window_s)
    about = max(speed for when, speed in seen if when >= at - window_s - window_s / BUCKETS - 1e-9)
    assert within <= highest <= about


def test_whoever_is_told_a_moment_later_remembers_the_same() -> None:
    controller, onlooker = (HighestSizes(float(BUCKETS), longest_gap_s=1000.0) for _ in range(2))
    for second in range(3 * BUCKETS):
        size = {P: Size(100.0 - second)}
        measured_at = second * (1 - 1e-3 * (second % 2))  # about where buckets begin
        controller.record(measured_at, measured_at, size)
        onlooker.record(measured_at + 0.9 * (second % 3), measured_at, size)
        assert onlooker.over(size) == controller.over(size)


@given(window_s=st.floats(0, 100), steps=STEPS)
def test_it_never_remembers_more_than_its_buckets(window_s: float, steps: list[tuple[float, float]]) -> None:
    sizes = HighestSizes(window_s, longest_gap_s=1000.0)
    at = 0.0
    for passed, speed in steps:
        at += passed
        sizes.record(at, at, {P: Size(speed)})
        assert len(sizes._buckets) <= BUCKETS + 2


@given(window_s=st.floats(1, 100), steps=STEPS)
def test_who_begins_a_window_and_a_bucket_ago_remembers_the_same(
    window_s: float, steps: list[tuple[float, float]]
) -> None:
    end = sum(passed for passed, _ in steps)
    whole, late = HighestSizes(window_s, longest_gap_s=1000.0), HighestSizes(window_s, longest_gap_s=1000.0)
    at = 0.0
    for passed, speed in steps:
        at += passed
        whole.record(at, at, {P: Size(speed)})
        if at >= end - window_s * (1 + 1 / BUCKETS) - 1e-6:
            late.record(at, at, {P: Size(speed)})
    newest = {P: Size(steps[-1][1])}
    assert whole.over(newest) == late.over(newest)


def test_a_partition_that_is_not_asked_for_is_left_out_and_a_new_one_has_its_present_size() -> None:
    sizes = HighestSizes(60, longest_gap_s=10)
    sizes.record(0, 0, {P: Size(9.0)})
    assert sizes.over({Q: Size(3.0)}) == {Q: Size(3.0)}


def test_a_gap_makes_the_past_unknown_and_a_short_one_does_not() -> None:
    sizes = HighestSizes(60, longest_gap_s=10)
    assert sizes.known_since is None
    for at in (100, 105, 115):
        sizes.record(at, at, {P: Size(1.0)})
        assert sizes.known_since == 100
    sizes.record(126, 126, {P: Size(1.0)})
    assert sizes.known_since == 126


def test_a_clock_that_goes_back_a_little_forgets_nothing_and_one_that_goes_back_further_begins_anew() -> None:
    sizes = HighestSizes(60, longest_gap_s=10)
    sizes.record(100, 1000, {P: Size(9.0)})
    sizes.record(101, 991, {P: Size(1.0)})
    assert sizes.known_since == 100
    assert sizes.over({P: Size(1.0)}) == {P: Size(9.0)}
    sizes.record(102, 1000 - 3600, {P: Size(2.0)})
    assert sizes.known_since == 102
    assert sizes.over({P: Size(1.0)}) == {P: Size(2.0)}
    for second in range(70):
        sizes.record(103 + second, 1000 - 3599 + second, {P: Size(1.0)})
    assert sizes.over({P: Size(1.0)}) == {P: Size(1.0)}, "the window goes on by the new clock"
    assert sizes.known_since == 102


def test_a_clock_that_leaps_forward_makes_the_past_unknown() -> None:
    sizes = HighestSizes(60, longest_gap_s=10)
    sizes.record(100, 1000, {P: Size(9.0)})
    sizes.record(101, 1011, {P: Size(1.0)})
    assert sizes.known_since == 101
    sizes.record(102, 1020, {P: Size(1.0)})
    assert sizes.known_since == 101


def test_a_clock_that_goes_back_bit_by_bit_does_not_keep_the_past_for_ever() -> None:
    sizes = HighestSizes(60, longest_gap_s=10)
    sizes.record(0, 1000, {P: Size(9.0)})
    for second in range(1, 100):
        sizes.record(second, 1000 - 5 * second, {P: Size(1.0)})
    assert sizes.over({P: Size(1.0)}) == {P: Size(1.0)}


def test_the_highest_size_keeps_what_of_it_was_backlog() -> None:
    sizes = HighestSizes(60, longest_gap_s=10)
    sizes.record(0, 0, {P: Size(4.0, backlog=5.0)})
    sizes.record(1, 1, {P: Size(8.0)})
    assert sizes.over({P: Size(8.0)}) == {P: Size(4.0, backlog=5.0)}
