from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.partitions import OffsetRange
from domain.speeds import Lag, Method
from monitor.measure.growth import LogMeasurement
from monitor.measure.samples import Sample
from monitor.measure.window import SpeedWindow


def measured(
    at: float, stored: int, offsets: tuple[int, int] | None = None, topic_id: str = "a", leader: int = 1
) -> LogMeasurement:
    return LogMeasurement(at, topic_id, leader, stored, OffsetRange(*offsets) if offsets else None)


def window_of(*measurements: LogMeasurement, window_s: float = 30.0, hold_s: float = 15.0) -> SpeedWindow:
    window = SpeedWindow(window_s, hold_s)
    for measurement in measurements:
        window.add(measurement)
    return window


def speed_of(window: SpeedWindow, at: float) -> float | None:
    speed = window.speed(at)
    return speed.bytes_per_s if speed else None


def test_the_speed_is_last_minus_first_over_the_time_between() -> None:
    window = window_of(measured(0, 100), measured(1, 900), measured(4, 1100))
    assert speed_of(window, at=4) == 250


def test_nothing_measured_or_one_measurement_gives_no_speed() -> None:
    assert speed_of(window_of(), at=0) is None
    assert speed_of(window_of(measured(0, 100)), at=0) is None


def test_measurements_older_than_the_window_do_not_count() -> None:
    window = window_of(*(measured(at, 1000 * min(at, 10)) for at in range(41)))
    assert speed_of(window, at=40) == 0
    assert speed_of(window_of(*(measured(at, 1000 * min(at, 25)) for at in range(41))), at=40) == 15_000 / 30


def test_a_measurement_exactly_as_old_as_the_window_counts() -> None:
    assert speed_of(window_of(measured(0, 0), measured(30, 300)), at=30) == 10


def test_a_measurement_that_is_not_newer_than_the_newest_is_left_aside() -> None:
    window = window_of(measured(0, 0), measured(2, 200), measured(1, 10**6), measured(2, 10**6))
    assert speed_of(window, at=2) == 100


def test_a_shrinking_log_without_offsets_starts_the_queue_over_and_keeps_the_last_good_speed_for_a_while() -> None:
    window = window_of(measured(0, 0), measured(1, 100), measured(2, 50), hold_s=5)
    assert speed_of(window, at=2) == 100
    assert speed_of(window, at=6) == 100
    assert speed_of(window, at=6.1) is None
    window.add(measured(7, 150))
    assert speed_of(window, at=7) == 20


def test_retention_does_not_disturb_a_speed_where_the_records_can_be_counted() -> None:
    window = window_of(
        measured(0, 1000, (0, 10)), measured(1, 1200, (0, 12)), measured(2, 600, (8, 14)), measured(3, 800, (8, 16))
    )
    speed = window.speed(at=3)
    assert speed is not None
    assert speed.bytes_per_s == pytest.approx(200)
    assert speed.method is Method.END_OFFSETS


def test_stored_bytes_are_the_method_again_once_the_window_has_passed_what_misled() -> None:
    window = window_of(measured(0, 0, (0, 0)), measured(1, 100, (0, 1)), measured(2, 100, (1, 2)), window_s=2)
    for at in range(3, 5):
        window.add(measured(at, 100 * (at - 1), (1, at)))
    speed = window.speed(at=4)
    assert speed is not None
    assert speed.method is Method.STORED_BYTES


def test_a_change_of_leader_takes_no_difference_between_two_replicas() -> None:
    window = window_of(measured(0, 0), measured(1, 100), measured(2, 10**9, leader=2), hold_s=0)
    assert speed_of(window, at=2) is None
    window.add(measured(3, 10**9 + 100, leader=2))
    assert speed_of(window, at=3) == 100


def test_a_recreated_topic_has_no_speed_until_its_own_log_was_measured_twice() -> None:
    window = window_of(measured(0, 0), measured(1, 100), measured(2, 10**9, topic_id="b"))
    assert speed_of(window, at=2) is None
    window.add(measured(3, 10**9 + 7, topic_id="b"))
    assert speed_of(window, at=3) == 7


def test_the_size_of_the_old_topics_records_is_not_taken_for_the_new_ones() -> None:
    window = window_of(measured(0, 0, (0, 0)), measured(1, 100, (0, 1)), measured(2, 9, (0, 9), "b"), hold_s=0)
    window.add(measured(3, 8, (9, 99), "b"))
    assert speed_of(window, at=3) is None


def test_a_gap_shorter_than_the_window_is_bridged() -> None:
    assert speed_of(window_of(measured(0, 0), measured(1, 100), measured(21, 2100)), at=21) == 100


def test_after_a_gap_longer_than_the_window_two_new_measurements_are_needed() -> None:
    window = window_of(measured(0, 0), measured(1, 100), measured(100, 10**6))
    assert speed_of(window, at=100) is None
    window.add(measured(101, 10**6 + 5))
    assert speed_of(window, at=101) == 5


def test_without_fresh_measurements_the_last_good_speed_is_held_and_then_unknown() -> None:
    window = window_of(measured(0, 0), measured(1, 100), hold_s=15)
    assert speed_of(window, at=16) == 100
    assert speed_of(window, at=16.001) is None
    held = window.speed(at=16)
    assert held is not None
    assert held.measured_at == 1


def test_two_measurements_a_moment_apart_give_no_speed() -> None:
    window = SpeedWindow(30, hold_s=15, least_span_s=0.5)
    window.add(measured(0, 0))
    window.add(measured(0.01, 10_000))
    assert speed_of(window, at=0.01) is None
    window.add(measured(1, 10_000))
    assert speed_of(window, at=1) == 10_000


def known_after(steps: list[int], least_span_s: float = 5.0) -> int | None:
    """How many seconds it takes until there is a speed, where a log grows by so many bytes in each."""
    window, written = SpeedWindow(30, hold_s=15, least_span_s=least_span_s), 0
    window.add(measured(0, 0))
    for second, appended in enumerate(steps, 1):
        written += appended
        window.add(measured(second, written))
        if (known := speed_of(window, at=second)) is not None:
            assert min(steps[:second]) <= known <= max(steps[:second])
            return second
    return None


@given(st.lists(st.integers(1000, 1500), min_size=5, max_size=5))
def test_a_log_that_grows_steadily_has_a_speed_after_three_fifths_of_the_time(steps: list[int]) -> None:
    assert known_after(steps) == 3


@given(
    st.lists(st.integers(0, 2000), min_size=5, max_size=5).filter(lambda steps: max(steps[:3]) > 1.5 * min(steps[:3]))
)
def test_one_that_grows_by_bursts_has_none_before_all_the_time_is_over(steps: list[int]) -> None:
    assert known_after(steps) == 5


def test_a_log_that_does_not_grow_is_not_taken_for_steady() -> None:
    assert known_after([0] * 5) == 5


def test_steps_that_are_too_few_are_no_proof_of_steadiness() -> None:
    window = SpeedWindow(30, hold_s=15, least_span_s=5)
    for at in (0, 2, 4):
        window.add(measured(at, 1000 * at))
    assert speed_of(window, at=4) is None
    window.add(measured(6, 6000))
    assert speed_of(window, at=6) == 1000


courses = st.lists(
    st.tuples(st.integers(0, 1900), st.integers(1, 20), st.integers(0, 100)), min_size=1, max_size=6
).flatmap(
    lambda levels: st.tuples(
        *(st.integers(level, level + spread) for level, seconds, spread in levels for _ in range(seconds))
    ).map(list)
)
"""How much a log grows by in each second: for some at one level, then at another."""


def speeds_of(steps: list[int], *, follows_changes: bool = True) -> list[float | None]:
    """After each second, where a log grows by so many bytes in each."""
    window, written, speeds = SpeedWindow(30, 15, 5, follows_changes=follows_changes), 0, list[float | None]()
    window.add(measured(0, 0))
    for second, appended in enumerate(steps, 1):
        written += appended
        window.add(measured(second, written))
        speeds.append(speed_of(window, at=second))
    return speeds


def test_a_step_up_or_down_is_known_after_a_sixth_of_the_window() -> None:
    steps = [100] * 40 + [300] * 40 + [100] * 40
    followed, plain = speeds_of(steps), speeds_of(steps, follows_changes=False)
    assert set(followed[10:40]) == set(followed[84:]) == {100}
    assert set(followed[44:80]) == {300}
    between = followed[40:44] + followed[80:84] + plain[40:69] + plain[80:109]
    assert all(speed is not None and 100 < speed < 300 for speed in between)


def test_a_climb_is_followed_by_its_newest_steps() -> None:
    steps = [100] * 40 + [100 + 10 * n for n in range(1, 21)]
    followed, plain = speeds_of(steps), speeds_of(steps, follows_changes=False)
    assert followed[59] == 280, "the mean of the newest five"
    assert plain[59] == (100 * 10 + sum(steps[40:])) / 30


@given(courses)
def test_a_fall_is_followed_as_a_rise_is(steps: list[int]) -> None:
    mirrored = [2000 - appended for appended in steps]
    for fallen, risen in zip(speeds_of(steps)[5:], speeds_of(mirrored)[5:], strict=True):
        assert fallen is not None
        assert risen is not None
        assert fallen == pytest.approx(2000 - risen)


@given(courses)
def test_the_speed_of_a_change_is_a_mean_of_newest_steps_and_no_fewer_than_give_a_speed(steps: list[int]) -> None:
    held = None
    for second, speed in enumerate(speeds_of(steps), 1):
        newest = [sum(steps[second - n : second]) / n for n in range(3, min(30, second) + 1)]
        assert speed == held or any(speed == pytest.approx(mean) for mean in newest)
        held = speed


def test_a_log_that_grows_by_bursts_does_not_change_with_each_of_them() -> None:
    steps = [0, 0, 900] * 30
    assert speeds_of(steps) == speeds_of(steps, follows_changes=False)


def by_offsets(at: float, end: int, sample: tuple[int, int] | None = None) -> LogMeasurement:
    return LogMeasurement(at, "a", 1, None, OffsetRange(0, end), sample=Sample(*sample) if sample else None)


def test_without_sizes_records_count_as_much_as_those_of_the_sample() -> None:
    window = window_of(by_offsets(0, 100, (500, 10)), by_offsets(1, 150, (900, 10)), by_offsets(2, 170, (100, 5)))
    speed = window.speed(at=2)
    assert speed is not None
    assert (speed.bytes_per_s, speed.method) == ((50 * 90 + 20 * 20) / 2, Method.END_OFFSETS)


def test_without_sizes_and_samples_only_a_log_that_does_not_grow_has_a_speed() -> None:
    assert speed_of(window_of(by_offsets(0, 100), by_offsets(1, 100)), at=1) == 0
    assert speed_of(window_of(by_offsets(0, 100), by_offsets(1, 101)), at=1) is None
    assert speed_of(window_of(by_offsets(0, 100), by_offsets(1, 90, (100, 1))), at=1) is None


def test_a_record_size_that_changes_fourfold_is_followed_at_once() -> None:
    window = window_of(*(by_offsets(at, 100 * at, (1_000 if at <= 30 else 4_000, 10)) for at in range(61)))
    assert speed_of(window, at=60) == 40_000


def test_what_two_sources_tell_is_never_mixed_and_the_last_good_speed_stands_in_meanwhile() -> None:
    window = window_of(measured(0, 0, (0, 0)), measured(1, 100, (0, 10)), by_offsets(2, 20, (90, 10)))
    assert speed_of(window, at=2) == 100
    window.add(by_offsets(3, 30, (90, 10)))
    assert speed_of(window, at=3) == 90
    window.add(measured(4, 10**9, (0, 40)))
    assert speed_of(window, at=4) == 90
    window.add(measured(5, 10**9 + 80, (0, 50)))
    assert speed_of(window, at=5) == 80


@given(st.lists(st.booleans(), min_size=2, max_size=60))
def test_a_steady_log_has_its_speed_whatever_source_tells_it(sizes_are_told: list[bool]) -> None:
    window = SpeedWindow(window_s=30, hold_s=0)
    for at, told in enumerate(sizes_are_told):
        window.add(measured(at, 10**9 + 100 * at, (0, 10 * at)) if told else by_offsets(at, 10 * at, (1_000, 100)))
        speed = speed_of(window, at)
        assert speed is None or speed == pytest.approx(100)
        assert (speed is None) == (at == 0 or told != sizes_are_told[at - 1])


def test_the_lag_is_known_by_samples_and_stays_so_when_sizes_are_told() -> None:
    window = window_of(by_offsets(0, 100, (500, 10)))
    assert window.lag(90, at=0) == Lag(10, 500.0, None)
    window.add(measured(1, 10**6))
    assert window.lag(90, at=1) == Lag(10, 500.0, None)
    assert window_of(by_offsets(0, 100)).lag(90, at=0) is None
    window.add(LogMeasurement(2, "b", 1, None, OffsetRange(0, 10), sample=Sample(20, 10)))
    assert window.lag(5, at=2) == Lag(5, 10.0, None)


steps = st.fixed_dictionaries(
    {
        "elapsed_s": st.floats(0.01, 40),
        "stored": st.none() | st.integers(0, 10**12),
        "sample": st.none() | st.builds(Sample, st.integers(1, 10**6), st.integers(1, 10**4)),
        "offsets": st.none() | st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)),
        "topic_id": st.sampled_from("aab"),
        "leader": st.sampled_from([1, 1, 2]),
        "compacted": st.booleans(),
    }
)
histories = st.lists(steps, max_size=40)


def stored(measurement: LogMeasurement) -> int:
    assert measurement.stored_bytes is not None
    return measurement.stored_bytes


def measurements_of(history: list[dict[str, object]]) -> list[LogMeasurement]:
    at = 0.0
    measurements = []
    for step in history:
        at += step["elapsed_s"]  # type: ignore[operator]
        start_and_length = step["offsets"]
        offsets = None
        if isinstance(start_and_length, tuple):
            offsets = OffsetRange(start_and_length[0], sum(start_and_length))
        measurements.append(
            LogMeasurement(
                at=at,
                topic_id=str(step["topic_id"]),
                leader=int(step["leader"]),  # type: ignore[call-overload]
                stored_bytes=step["stored"],  # type: ignore[arg-type]
                offsets=offsets,
                compacted=bool(step["compacted"]),
                sample=None if step["stored"] is not None else step["sample"],  # type: ignore[arg-type]
            )
        )
    return measurements


@given(histories)
def test_a_speed_is_never_negative_and_never_from_another_log_or_source_or_from_before_the_window(
    history: list[dict[str, object]],
) -> None:
    window = SpeedWindow(window_s=30, hold_s=0)
    seen: list[LogMeasurement] = []
    for measurement in measurements_of(history):
        window.add(measurement)
        seen.append(measurement)
        speed = window.speed(measurement.at)
        if speed is None:
            continue
        assert speed.bytes_per_s >= 0
        of_this_log = []
        for earlier in reversed(seen):
            if (earlier.topic_id, earlier.source) != (measurement.topic_id, measurement.source):
                break
            of_this_log.append(earlier)
        in_window = [earlier for earlier in of_this_log if earlier.at >= measurement.at - 30]
        assert len(in_window) >= 2
        if speed.method is Method.STORED_BYTES:
            # The paper's formula, from the newest size and one of the older ones of the same log in the window.
            assert any(
                speed.bytes_per_s == pytest.approx((stored(measurement) - stored(first)) / (measurement.at - first.at))
                for first in in_window[1:]
            )


@given(histories)
def test_what_was_before_a_recreation_changes_nothing_after_it(history: list[dict[str, object]]) -> None:
    measurements = measurements_of(history)
    half = len(measurements) // 2
    new = [replace(measurement, topic_id="new") for measurement in measurements[half:]]
    with_past = window_of(*measurements[:half], *new)
    without_past = window_of(*new)
    if new:
        at = new[-1].at
        known, alone = with_past.speed(at), without_past.speed(at)
        assert (known is None) == (alone is None)
        if known and alone:
            assert known.bytes_per_s == pytest.approx(alone.bytes_per_s)


@given(
    st.lists(st.tuples(st.floats(0.01, 5), st.integers(0, 10**9)), min_size=2, max_size=60),
    st.integers(0, 10**12),
)
def test_a_log_that_only_grows_has_the_papers_speed(grown: list[tuple[float, int]], stored: int) -> None:
    window = SpeedWindow(window_s=30, hold_s=0)
    at = 0.0
    taken = []
    for elapsed_s, appended in grown:
        at, stored = at + elapsed_s, stored + appended
        taken.append((at, stored))
        window.add(measured(at, stored))
    first_at, first_stored = next(entry for entry in taken if entry[0] >= at - 30)
    if first_at < at:
        assert speed_of(window, at) == pytest.approx((stored - first_stored) / (at - first_at))
    else:
        assert speed_of(window, at) is None
