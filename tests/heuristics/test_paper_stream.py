import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.partitions import TopicPartition
from domain.streams import paper_stream


def test_a_stream_has_so_many_measurements_of_so_many_partitions() -> None:
    stream = list(paper_stream(3, 5, 10, seed=1, topic="clicks"))
    assert len(stream) == 5
    assert all(list(speeds) == [TopicPartition("clicks", number) for number in range(3)] for speeds in stream)


@pytest.mark.parametrize(("start", "speed"), [("zero", 0.0), ("half", 40.0), ("full", 80.0)])
def test_everyone_starts_with_the_same_speed_unless_it_is_random(start: Any, speed: float) -> None:
    first = next(paper_stream(50, 1, 10, capacity=80, start=start, seed=1))
    assert set(first.values()) == {speed}


def test_a_random_start_fills_the_range_up_to_the_capacity() -> None:
    first = sorted(next(paper_stream(1000, 1, 10, capacity=80, seed=1)).values())
    assert first[0] < 4
    assert 36 < first[500] < 44
    assert 76 < first[-1] <= 80


@given(delta=st.floats(0, 50), seed=st.integers(0, 1000), whole=st.booleans())
def test_nothing_changes_by_more_than_delta_percent_or_leaves_the_range(delta: float, seed: int, whole: bool) -> None:
    stream = list(paper_stream(20, 5, delta, capacity=1000, clamp=900, whole=whole, seed=seed))
    for before, after in pairwise(stream):
        assert all(abs(after[p] - before[p]) <= delta * 10 + 1e-9 for p in before)
    assert all(0 <= speed <= 900 for speeds in stream for speed in speeds.values())


def test_without_a_clamp_speeds_pass_the_capacity() -> None:
    *_, last = paper_stream(100, 20, 25, start="full", seed=1)
    assert max(last.values()) > 100


def test_whole_speeds_are_whole_percents_of_the_capacity() -> None:
    for speeds in paper_stream(50, 10, 7, capacity=100, whole=True, seed=1):
        assert all(speed.is_integer() for speed in speeds.values())


def test_same_seed_same_stream() -> None:
    assert list(paper_stream(9, 9, 9, seed=1)) == list(paper_stream(9, 9, 9, seed=1))
    assert list(paper_stream(9, 9, 9, seed=1)) != list(paper_stream(9, 9, 9, seed=2))


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"partitions": 0}, "1 partition or more"),
        ({"iterations": -1}, "0 iterations or more"),
        ({"delta": -1}, "delta is -1: it must be a number of percent, 0 or more"),
        ({"delta": math.nan}, "delta is nan"),
        ({"capacity": 0}, "capacity is 0: it must be a number above 0"),
        ({"start": "low"}, "start is 'low': it must be one of random, zero, half, full"),
        ({"clamp": math.inf}, "clamp is inf: it must be a speed, 0 or more"),
    ],
)
def test_an_argument_out_of_range_is_refused_at_once(wrong: dict[str, Any], reason: str) -> None:
    arguments = {"partitions": 1, "iterations": 1, "delta": 1, "seed": 0} | wrong
    with pytest.raises(ValueError, match=reason):
        paper_stream(**arguments)
