"""The speeds of the load generator, and the records that it makes."""

import json
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.partitions import TopicPartition
from sandbox.load_profile import DEMO_HOT, DEMO_PERIOD_S, Course, LoadProfile, demo_profile
from sandbox.records import records

SPEEDS = st.floats(min_value=0, max_value=1e8)
MOMENTS = st.floats(min_value=0, max_value=1000)
COURSES = st.builds(
    lambda steps, first, speeds: Course(
        ((0.0, first), *((sum(steps[: n + 1]), speed) for n, speed in enumerate(speeds[: len(steps)])))
    ),
    st.lists(st.floats(min_value=0.5, max_value=60), min_size=1, max_size=5),
    SPEEDS,
    st.lists(SPEEDS, min_size=5, max_size=5),
)


def test_a_course_follows_straight_lines_between_its_corners() -> None:
    course = Course(((0, 100), (10, 100), (20, 300)))
    assert [course.speed(at_s) for at_s in (0, 5, 10, 15)] == [100, 100, 100, 200]
    assert [course.bytes_until(at_s) for at_s in (0, 10, 20)] == [0, 1000, 3000]


def test_a_course_begins_anew_after_its_last_corner() -> None:
    course = Course(((0, 100), (10, 300)))
    assert course.speed(10) == course.speed(0) == 100
    assert course.speed(25) == course.speed(5)
    assert course.bytes_until(25) == 2 * course.bytes_until(10) + course.bytes_until(5)


@given(COURSES, MOMENTS, MOMENTS)
def test_what_is_written_never_shrinks(course: Course, one: float, other: float) -> None:
    earlier, later = sorted((one, other))
    slack = 1e-9 * (1 + course.bytes_until(later))
    assert course.bytes_until(earlier) <= course.bytes_until(later) + slack


@given(COURSES, MOMENTS)
def test_what_is_written_is_the_integral_of_the_speed(course: Course, at_s: float) -> None:
    step_s = 1e-3
    written = course.bytes_until(at_s + step_s) - course.bytes_until(at_s)
    fastest = max(speed for _, speed in course.corners)
    assert -1e-3 <= written <= fastest * step_s * (1 + 1e-6) + 1e-3


@pytest.mark.parametrize(
    "corners",
    [(), ((0, 1),), ((1, 1), (2, 1)), ((0, 1), (5, 1), (5, 2)), ((0, 1), (5, -1)), ((0, 1), (float("nan"), 1))],
)
def test_a_course_that_makes_no_sense_is_refused(corners: tuple[tuple[float, float], ...]) -> None:
    with pytest.raises(ValueError, match=r"corners|write speed"):
        Course(corners)


def test_a_profile_knows_how_many_partitions_its_topics_need() -> None:
    course = Course(((0, 1), (1, 1)))
    profile = LoadProfile(
        {TopicPartition("b", 0): course, TopicPartition("a", 4): course, TopicPartition("a", 0): course}
    )
    assert profile.topics == {"a": 5, "b": 1}
    assert profile.partitions == (TopicPartition("a", 0), TopicPartition("a", 4), TopicPartition("b", 0))


def test_the_demo_is_calm_then_needs_three_consumers_or_more_then_is_calm() -> None:
    capacity = 2_000_000.0
    consumers = [demo_profile(capacity).total_speed(second) / capacity for second in range(int(DEMO_PERIOD_S))]
    assert max(consumers[:25]) < 0.75
    assert min(consumers[50:65]) > 3
    assert max(consumers) < 3.5
    assert max(consumers[75:]) < 0.75


def test_one_partition_of_the_demo_runs_hot_and_no_partition_ever_exceeds_a_consumer() -> None:
    profile = demo_profile(1.0)
    at_peak = {partition: course.speed(60) for partition, course in profile.courses.items()}
    hot = at_peak.pop(DEMO_HOT)
    assert hot > 2 * max(at_peak.values())
    assert all(course.speed(second) < 1 for course in profile.courses.values() for second in range(int(DEMO_PERIOD_S)))


def test_an_oversized_partition_outgrows_a_consumer_for_a_while_and_all_else_is_as_ever() -> None:
    profile, plain = demo_profile(1.0, oversized=True), demo_profile(1.0)
    seconds = range(int(profile.period_s))
    assert {course.period_s for course in profile.courses.values()} == {150.0}
    too_fast = {p: [at for at in seconds if course.speed(at) > 1] for p, course in profile.courses.items()}
    assert {p for p, moments in too_fast.items() if moments} == {DEMO_HOT}
    assert set(range(50, 96)) <= set(too_fast[DEMO_HOT]) <= set(range(45, 105))
    others = profile.courses.keys() - {DEMO_HOT}
    assert all(profile.courses[p].speed(at) == plain.courses[p].speed(at) for p in others for at in range(120))
    assert max(map(profile.total_speed, seconds)) < 3.8
    assert profile.total_speed(80) < 2
    assert max(map(profile.total_speed, range(105, 150))) < 0.75


def test_the_same_seed_makes_the_same_records_and_another_makes_others() -> None:
    partition = TopicPartition("orders", 0)
    assert list(islice(records(partition, 1), 20)) == list(islice(records(partition, 1), 20))
    assert list(islice(records(partition, 1), 20)) != list(islice(records(partition, 2), 20))


def test_no_two_partitions_get_the_same_records() -> None:
    orders = set(islice(records(TopicPartition("orders", 0), 1), 50))
    assert orders.isdisjoint(islice(records(TopicPartition("orders", 1), 1), 50))


def test_records_are_json_of_half_a_kilobyte_to_one() -> None:
    for number, (key, value) in enumerate(islice(records(TopicPartition("orders", 0), 1), 200)):
        parsed = json.loads(value)
        assert (parsed["number"], parsed["user"]) == (number, key.decode())
        assert 400 < len(value) < 1_000
