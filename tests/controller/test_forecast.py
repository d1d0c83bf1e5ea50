"""What is foreseen of a partition's speed, and when."""

import random
from collections.abc import Callable

from controller.decide.forecast import EVERY_S, Forecast
from controller.decide.sizes import Size
from controller.decide.triggers import foreseen
from controller.settings import ControllerSettings
from domain.assignment import Assignment
from domain.partitions import TopicPartition
from tests.controller.world import World

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
HORIZON_S = 30.0


def told(course: Callable[[float], float], seconds: float, forecast: Forecast | None = None) -> Forecast:
    forecast = forecast or Forecast(HORIZON_S)
    for step in range(round(seconds)):
        forecast.measured(float(step), {P: course(float(step))})
    return forecast


def test_on_a_ramp_the_line_is_foreseen_once_it_is_proven() -> None:
    assert told(lambda at: 100 + 2 * at, 60).upper == {}
    seconds = 300
    foretold = told(lambda at: 100 + 2 * at, seconds).upper[P]
    comes = 100 + 2 * (seconds - EVERY_S + HORIZON_S)
    assert 0.99 * comes < foretold < 1.05 * comes


def test_nothing_is_foreseen_of_what_stays_falls_or_wanders() -> None:
    chance, level = random.Random(1), [100.0]
    for _ in range(2000):
        level.append(max(0.0, level[-1] + chance.gauss(0, 3)))
    assert told(lambda _: 100.0, 600).upper == {}
    assert told(lambda at: 2000 - 2 * at, 600).upper == {}
    proven = [bool(told(lambda at: level[int(at)], until).upper) for until in range(200, 2000, 50)]
    assert sum(proven) <= 0.1 * len(proven)


def test_after_a_ramp_has_broken_off_nothing_is_foreseen() -> None:
    """The quantile was kept in bytes/s, and stayed high when the errors had gone: twice the consumers."""

    def course(at: float) -> float:
        return 100 + min(at, 300) * 2 if at < 330 else 100.0

    assert told(course, 300).upper
    assert told(course, 600).upper == {}
    assert told(course, 1500).upper == {}


def test_the_quantile_holds_nine_times_of_ten() -> None:
    chance = random.Random(2)
    forecast = told(lambda at: (100 + 2 * at) * chance.uniform(0.97, 1.03), 1500)
    ((_, held),) = forecast.calibration
    assert 0.7 <= held <= 1.0


def test_after_a_gap_it_is_learned_anew() -> None:
    forecast = told(lambda at: 100 + 2 * at, 300)
    forecast.measured(400, {P: 900.0})
    assert forecast.upper == {}


def test_a_consumer_that_will_be_above_its_capacity_is_named_with_when_and_for_what() -> None:
    desired, now = Assignment({P: 1, Q: 1}), {P: Size(50.0), Q: Size(40.0)}
    ahead = {P: Size(80.0), Q: Size(40.0)}
    (trigger,) = foreseen(desired, now, ahead, lambda _: 100.0, 35)
    assert trigger.sentence == (
        "consumer 1 will have 120 bytes/s to read in 35 s, above its capacity of 100; orders-0 will need 80"
    )
    assert list(foreseen(desired, ahead, ahead, lambda _: 100.0, 35)) == [], "it is above it already"


def test_a_group_grows_before_its_consumer_is_overloaded() -> None:
    def grows_at(*, forecast: bool) -> float:
        world = World(ControllerSettings(consumer_capacity=100.0, forecast=forecast), seed=1)
        began = world.now
        while len(world.consumers) < 2:
            elapsed = world.now - began
            world.speeds = {P: 5 + 0.15 * elapsed, Q: 5 + 0.15 * elapsed}
            world.step()
        return sum(world.speeds.values())

    assert grows_at(forecast=False) > 100
    assert 75 < grows_at(forecast=True) < 98
