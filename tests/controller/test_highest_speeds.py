"""The window of the highest speeds: never shorter than it says, and bounded."""

from hypothesis import given
from hypothesis import strategies as st

from controller.highest_speeds import BUCKETS, HighestSpeeds
from domain.partitions import TopicPartition

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
STEPS = st.lists(st.tuples(st.floats(0, 40), st.floats(0, 100)), min_size=1, max_size=60)


@given(window_s=st.floats(0, 100), steps=STEPS)
def test_it_covers_the_whole_window_and_at_most_a_bucket_more(
    window_s: float, steps: list[tuple[float, float]]
) -> None:
    speeds = HighestSpeeds(window_s, longest_gap_s=1000.0)
    at, seen = 0.0, list[tuple[float, float]]()
    for passed, speed in steps:
        at += passed
        seen.append((at, speed))
        speeds.record(at, {P: speed})
    highest = speeds.over({P: steps[-1][1]})[P]
    within = max(speed for when, speed in seen if when >= at - window_s)
    about = max(speed for when, speed in seen if when >= at - window_s - window_s / BUCKETS - 1e-9)
    assert within <= highest <= about


@given(window_s=st.floats(0, 100), steps=STEPS)
def test_it_never_remembers_more_than_its_buckets(window_s: float, steps: list[tuple[float, float]]) -> None:
    speeds = HighestSpeeds(window_s, longest_gap_s=1000.0)
    at = 0.0
    for passed, speed in steps:
        at += passed
        speeds.record(at, {P: speed})
        assert len(speeds._buckets) <= BUCKETS + 2


def test_a_partition_that_is_not_asked_for_is_left_out_and_a_new_one_has_its_present_speed() -> None:
    speeds = HighestSpeeds(60, longest_gap_s=10)
    speeds.record(0, {P: 9.0})
    assert speeds.over({Q: 3.0}) == {Q: 3.0}


def test_a_gap_makes_the_past_unknown_and_a_short_one_does_not() -> None:
    speeds = HighestSpeeds(60, longest_gap_s=10)
    assert speeds.known_since is None
    for at in (100, 105, 115):
        speeds.record(at, {P: 1.0})
        assert speeds.known_since == 100
    speeds.record(126, {P: 1.0})
    assert speeds.known_since == 126
