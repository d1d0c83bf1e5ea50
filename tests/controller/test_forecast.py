"""What is foreseen of partitions' speeds, and when."""

import random
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.decide.forecast import LINE, MEMORY, SCORED, STEP_S, Figures, Forecast, foretell, margin
from controller.decide.horizon import Horizon
from controller.decide.sizes import Size, size
from controller.decide.triggers import foreseen
from controller.settings import ControllerSettings
from domain.assignment import Assignment
from domain.messages import Foresight
from domain.partitions import TopicPartition
from tests.controller.world import World

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
NOBODY = Assignment()
HORIZON_S = 30.0

Course = Callable[[float], float]


def told(seconds: float, *courses: Course) -> Forecast:
    forecast = Forecast()
    for second in range(round(seconds)):
        speeds = {TopicPartition("orders", number): course(second) for number, course in enumerate(courses)}
        forecast.measured(float(second), speeds)
    return forecast


def upper(forecast: Forecast, readers: Assignment = NOBODY) -> Mapping[TopicPartition, float]:
    return forecast.upper(HORIZON_S, readers)


def ramp(at: float) -> float:
    return 100 + 2 * at


def test_on_a_ramp_the_line_is_foreseen_once_it_is_proven() -> None:
    assert upper(told(100, ramp)) == {}
    seconds = 300
    foretold = upper(told(seconds, ramp))[P]
    comes = ramp(seconds - STEP_S + HORIZON_S)
    assert 0.99 * comes < foretold < 1.01 * comes


def test_nothing_is_foreseen_of_what_stays_falls_or_wanders() -> None:
    chance, level = random.Random(1), [100.0]
    for _ in range(2000):
        level.append(max(0.0, level[-1] + chance.gauss(0, 3)))
    assert upper(told(600, lambda _: 100.0)) == {}
    assert upper(told(600, lambda at: 2000 - 2 * at)) == {}
    proven = [bool(upper(told(until, lambda at: level[int(at)]))) for until in range(200, 2000, 50)]
    assert sum(proven) <= 0.1 * len(proven)


def test_where_the_line_of_all_together_is_proven_the_others_share_what_is_left_of_it() -> None:
    """Each alone wanders too much to be proven; all together they climb."""
    chance, count = np.random.default_rng(1), 100
    climb = np.array([ramp(STEP_S * step) for step in range(60)])
    rows = climb[:, None] * chance.uniform(0.5, 1.5, (len(climb), count))
    forecast = told_rows(rows)
    outlook, foreseen = forecast.at(HORIZON_S), upper(forecast)
    assert outlook.together.counts.all()
    assert outlook.each.counts.sum() < count / 10
    assert outlook.partitions == len(foreseen) == count
    comes = count * ramp(STEP_S * (len(rows) - 1) + HORIZON_S)
    assert 0.98 * comes < sum(foreseen.values()) < 1.1 * comes
    assert upper(forecast, Assignment(dict.fromkeys(foreseen, 1))) == foreseen
    growths = [foreseen[p] / rows[-1][p.partition] for p in foreseen if not outlook.each.counts[p.partition]]
    assert max(growths) == pytest.approx(min(growths))
    assert min(growths) > 1


@pytest.mark.parametrize("seed", range(10))
def test_where_one_climbs_alone_all_of_the_margin_is_its_own(seed: int) -> None:
    """What rounding leaves of the line of all together, which depends on the processor, is no climb of the others."""
    chance = random.Random(seed)
    noise = [chance.gauss(0, 10) for _ in range(300)]
    forecast = told(300, lambda at: ramp(at) + noise[int(at)], *[lambda _: 1000.0] * 9)
    outlook, foreseen = forecast.at(HORIZON_S), upper(forecast)
    assert outlook.together.counts.all()
    assert foreseen.keys() == {P}
    own = outlook.each.lines[0] + margin(outlook.each.errors, outlook.each.spares)[0]
    assert foreseen[P] == pytest.approx(own)


def test_what_has_just_come_has_no_share_in_what_all_come_to() -> None:
    chance = np.random.default_rng(1)
    forecast = Forecast()
    for step in range(60):
        speeds = [ramp(STEP_S * step) * share for share in chance.uniform(0.5, 1.5, 100 if step < 40 else 101).tolist()]
        measured = {TopicPartition("orders", place): speed for place, speed in enumerate(speeds)}
        forecast.measured(step * STEP_S, measured)
    assert forecast.at(HORIZON_S).together.counts.all()
    assert TopicPartition("orders", 100) not in upper(forecast)


def test_soon_after_a_ramp_has_broken_off_nothing_is_foreseen() -> None:
    def course(at: float) -> float:
        return ramp(min(at, 300)) if at < 330 else 100.0

    assert upper(told(300, course))
    for until in range(400, 1500, 50):
        assert upper(told(until, course)) == {}


def test_what_is_not_measured_for_a_moment_is_learned_anew_and_the_rest_is_not() -> None:
    forecast = told(300, ramp, ramp)
    forecast.measured(300.0, {P: ramp(300)})
    forecast.measured(305.0, {P: ramp(305), Q: ramp(305)})
    assert upper(forecast).keys() == {P}


def test_after_a_long_gap_or_when_the_clock_goes_back_all_is_learned_anew() -> None:
    for at in (400.0, 100.0):
        forecast = told(300, ramp)
        forecast.measured(at, {P: ramp(at)})
        assert upper(forecast) == {}


def test_a_short_gap_does_no_harm() -> None:
    forecast = Forecast()
    for second in [*range(0, 250, 5), *range(265, 301, 5)]:
        forecast.measured(float(second), {P: ramp(second)})
    assert abs(upper(forecast)[P] - ramp(300 + HORIZON_S)) < 1


def test_nothing_is_known_before_speeds_come() -> None:
    assert upper(Forecast()) == {}
    empty = Forecast()
    empty.measured(0.0, {})
    assert upper(empty) == {}


@given(
    st.integers(20, 40),
    st.sampled_from([1, 6, 12]),
    st.floats(-10, 50),
    st.sampled_from([0.0, 1.0, 30.0]),
    st.integers(0, 1 << 32),
)
def test_it_follows_from_the_newest_speeds_alone(
    before: int, ahead: int, slope: float, noise: float, seed: int
) -> None:
    """So who looks on, and has heard no more than these, foresees what the controller does."""
    steps = np.arange(before + MEMORY)[:, None]
    chance = np.random.default_rng(seed)
    rows = np.maximum(0.0, 500 + slope * steps + noise * chance.standard_normal((len(steps), 10)))
    rows[-chance.integers(1, MEMORY) :, 5:] *= chance.uniform(0.5, 2.0)
    whole = told_rows(rows)
    late = told_rows(rows, since=before)
    remembered = whole.at(ahead * STEP_S).each
    for other in (late.at(ahead * STEP_S).each, foretell(rows, ahead)):
        assert (remembered.counts == other.counts).all()
        assert (remembered.spares == other.spares).all()
        assert (remembered.due, remembered.held) == (other.due, other.held)
    assert whole.upper(ahead * STEP_S, NOBODY) == late.upper(ahead * STEP_S, NOBODY)


def told_rows(rows: Figures, since: int = 0) -> Forecast:
    forecast = Forecast()
    for number, row in enumerate(rows.tolist()):
        if number >= since:
            speeds = {TopicPartition("orders", place): speed for place, speed in enumerate(row)}
            forecast.measured(number * STEP_S, speeds)
    return forecast


@given(st.lists(st.floats(0, 1e12), max_size=MEMORY), st.integers(1, 12))
def test_what_is_foreseen_is_more_than_the_newest_speed_and_what_held_was_due(speeds: list[float], ahead: int) -> None:
    forecast = Forecast()
    for number, speed in enumerate(speeds):
        forecast.measured(number * STEP_S, {P: speed})
    foretold = forecast.at(ahead * STEP_S).each
    assert 0 <= foretold.held <= foretold.due <= SCORED
    for most in forecast.upper(ahead * STEP_S, NOBODY).values():
        assert most > speeds[-1]
    if len(speeds) < LINE + ahead:
        assert not foretold.counts.any()


def noisy_ramps(chance: random.Random, alike: float) -> Iterator[Course]:
    """Two ramps whose noise is alike to this share."""
    common = [chance.gauss(0, 10) for _ in range(2000)]
    for _ in range(2):
        own = [chance.gauss(0, 10) for _ in range(2000)]
        yield lambda at, own=own: 500 + 3 * at + alike * common[int(at)] + (1 - alike) * own[int(at)]  # type: ignore[misc]


def test_a_consumers_quantile_is_that_of_its_load() -> None:
    """Where errors are alike they add up; where they are not, less room is kept than for each alone.

    A third partition wanders so far that nothing is known of all together.
    """

    def room(alike: float) -> float:
        """Of both together, by what each would have alone."""
        shares = []
        for seed in range(20):
            chance = random.Random(seed)
            walk = list(accumulate(chance.gauss(0, 300) for _ in range(300)))
            forecast = told(300, *noisy_ramps(chance, alike), lambda at, walk=walk: 1e4 + walk[int(at)])  # type: ignore[misc]
            if forecast.at(HORIZON_S).together.counts.any():
                continue
            alone, together = upper(forecast), upper(forecast, Assignment({P: 1, Q: 1}))
            lines = dict(zip((P, Q), map(float, forecast.at(HORIZON_S).each.lines), strict=False))
            if alone.keys() >= {P, Q}:
                shares.append(sum(together[p] - lines[p] for p in (P, Q)) / sum(alone[p] - lines[p] for p in (P, Q)))
        return sum(shares) / len(shares)

    assert 0.999 < room(1.0) < 1.001
    assert room(0.0) < 0.9


def test_a_quantile_needs_enough_errors_and_never_lies_below_the_line() -> None:
    def of(*errors: float, spares: bool = False) -> float:
        return float(margin(np.array([errors]), np.array([spares]))[0])

    assert np.isnan(of(*[5.0] * 8, np.nan))
    assert of(*range(-8, 0), 7.0) == 7.0
    assert of(*[-5.0] * 9) == 0.0
    assert of(*range(-8, 0), 7.0, spares=True) == 0.0
    assert of(*range(1, 10), np.nan, spares=True) == 8.0


def test_quantiles_hold_about_nine_times_of_ten() -> None:
    due = held = 0
    for seed in range(10):
        chance = random.Random(seed)
        rows = np.array([[(100 + 10 * step) * chance.uniform(0.97, 1.03) for _ in range(5)] for step in range(MEMORY)])
        foretold = foretell(rows, 6)
        due, held = due + foretold.due, held + foretold.held
    assert due > 500
    assert 0.85 * due < held < 0.95 * due


def test_the_largest_error_is_spared_where_it_held_too_often_and_no_other() -> None:
    """One jump is exceeded once; where each error is larger than all before, what is foreseen is exceeded always."""
    steps = np.arange(MEMORY, dtype=float)[:, None]
    jump = foretell(100 + 10 * steps + 40 * (steps >= MEMORY - 15), 1)
    second, largest = sorted(jump.errors[0])[-2:]
    assert largest > second
    assert jump.spares.all()
    assert margin(jump.errors, jump.spares) == max(0.0, second)
    assert not foretell(100 + steps**2 + steps**3, 1).spares.any()


def test_a_size_grows_by_what_is_foreseen_and_no_further_than_a_consumer_reads() -> None:
    assert Size(40.0, 10.0).growing_to(60.0, 100.0) == Size(40.0, 10.0, 20.0)
    assert Size(40.0, 10.0).growing_to(95.0, 100.0) == Size(40.0, 5.0, 55.0)
    assert Size(40.0, 10.0).growing_to(140.0, 100.0).total == 100.0
    assert Size(140.0).growing_to(160.0, 100.0) == Size(140.0)
    assert Size(40.0, 10.0).growing_to(30.0, 100.0) == Size(40.0, 10.0)


def test_a_consumer_that_will_be_above_its_capacity_is_named_with_when_and_for_what() -> None:
    desired = Assignment({P: 1, Q: 1})
    grown = {P: Size(50.0, 0.0, 30.0), Q: Size(40.0)}
    (trigger,) = foreseen(desired, grown, lambda _: 100.0, 100.0, 35)
    assert trigger.sentence == (
        "consumer 1 will have up to 120 bytes/s to read in 35 s, above its capacity of 100; it has 90 now, and most "
        "comes from orders-0, which will need up to 80"
    )
    above_already = {P: Size(80.0, 0.0, 30.0), Q: Size(40.0)}
    assert list(foreseen(desired, above_already, lambda _: 100.0, 100.0, 35)) == []
    alone = Assignment({P: 1, Q: 2})
    assert list(foreseen(alone, {P: Size(50.0, 0.0, 60.0), Q: Size(40.0)}, lambda _: 100.0, 100.0, 35)) == []


def test_the_horizon_is_what_growing_took_lately_and_the_delay_of_speeds() -> None:
    horizon = Horizon()
    assert horizon.seconds == 25
    horizon.acted(28.0)
    assert horizon.seconds == 45
    for _ in range(9):
        horizon.acted(4.0)
    assert horizon.seconds == 20
    horizon.acted(1e6)
    assert horizon.seconds == 20
    for _ in range(9):
        horizon.acted(1e6)
    assert horizon.seconds == 60
    for told, holds in ((35.0, 35.0), (1e18, 60.0), (1e-9, 5.0)):
        horizon.inherit(Foresight(horizon_s=told, quantile=0.9, partitions=0, due=0, held=0))
        assert horizon.seconds == holds


def test_speeds_are_late_by_half_of_the_window_that_the_monitor_tells() -> None:
    horizon = Horizon()
    horizon.measured(15.0)
    assert horizon.seconds == 20
    horizon.acted(4.0)
    assert horizon.seconds == 15
    horizon.measured(60.0)
    assert horizon.seconds == 35
    horizon.measured(None)
    assert horizon.seconds == 20


def forecasting(**changes: object) -> ControllerSettings:
    given = {"consumer_capacity": 100.0, "forecast": True, "rscore_tolerance": 0.0, **changes}
    return ControllerSettings.model_validate(given)


def test_a_group_grows_before_its_consumer_is_overloaded() -> None:
    def grows_at(*, forecast: bool) -> float:
        world = World(forecasting(forecast=forecast), seed=1)
        began = world.now
        while len(world.consumers) < 2:
            elapsed = world.now - began
            world.speeds = {P: 5 + 0.15 * elapsed, Q: 5 + 0.15 * elapsed}
            world.step()
        return sum(world.speeds.values())

    assert grows_at(forecast=False) > 100
    assert 75 < grows_at(forecast=True) < 98


@pytest.mark.slow(2)
def test_a_group_does_not_shrink_into_a_climb() -> None:
    """At the highest speeds of the window one consumer would do; at those to come it would not."""

    def shrinks(*, forecast: bool) -> bool:
        world = World(forecasting(forecast=forecast, scale_down_window_s=200.0, interval_s=5.0), seed=1)
        world.speeds = {P: 45.0, Q: 45.0}
        world.settle()
        began, speed = world.now, 0.0
        while speed < 37.4:
            speed = 12 + 0.12 * (world.now - began)
            world.speeds = {P: speed, Q: speed}
            world.step()
        return any(decision.carried_out and decision.shrinks for decision in world.decisions)

    assert shrinks(forecast=False)
    assert not shrinks(forecast=True)


def breaks_off(at: float) -> float:
    """From 600 to 1,400 along a line in 5 minutes of each 15, and back within 30 s."""
    return float(np.interp(at % 900, [0, 300, 600, 630, 900], [600, 600, 1400, 600, 600]))


def reversed_day(at: float) -> float:
    """Days of 40 minutes; on every other one the load falls when it rose the day before."""
    day, clock = divmod(at, 2400)
    return float(np.interp(clock, [0, 1000, 1400, 2400], [500, 1500, 1500, 500] if day % 2 else [1500, 500, 500, 1500]))


@pytest.mark.slow(2)
@pytest.mark.parametrize("course", [breaks_off, reversed_day])
def test_a_load_that_misleads_costs_no_more_than_a_twentieth(course: Course) -> None:
    """By what consumers are for: the highest size of the scale-down window, and what was foreseen since a minute ago,
    when the assignment was considered last."""
    chance = random.Random(1)
    forecast = Forecast()
    present, planned = list[float](), list[float]()
    for step in range(round(2 * 4800 / STEP_S)):
        at = step * STEP_S
        # Measured late, as a mean of half a minute.
        speeds = [course(max(0.0, at - late)) for late in range(0, 30, 5)]
        speed = sum(speeds) / len(speeds) * chance.uniform(0.99, 1.01)
        forecast.measured(at, {P: speed})
        present.append(speed)
        planned.append(max(speed, upper(forecast).get(P, 0.0)))
    assert planned != present

    def highest(sizes: list[float], seconds: float) -> list[float]:
        back = round(seconds / STEP_S)
        return [max(sizes[max(0, place - back) : place + 1]) for place in range(len(sizes))]

    without = highest(present, 300)
    assert sum(map(max, without, highest(planned, 60))) <= 1.05 * sum(without)


@given(st.floats(0, 1e12), st.floats(0, 1e12), st.floats(0, 1e12), st.floats(1, 1e12))
def test_with_what_is_foreseen_no_size_is_smaller(speed: float, behind: float, then: float, capacity: float) -> None:
    """So no plan has less room than one that does not look ahead, whatever is foreseen."""
    present = size(speed, behind, 300.0, capacity)
    grown = present.growing_to(then, capacity)
    assert grown.total >= present.total * (1 - 1e-12)
    assert grown.total <= max(present.total, capacity) * (1 + 1e-12)
    assert grown.write_speed == speed
    assert grown.backlog >= 0
    assert grown.foreseen >= 0
