"""What a decision rests on is the same for all who heard the same, whenever each of them did."""

from hypothesis import given
from hypothesis import strategies as st

from controller.decide.decider import Decider
from controller.decide.triggers import REPLAN
from controller.settings import ControllerSettings
from domain.partitions import TopicPartition
from domain.speeds import Lag, WriteSpeeds

PARTITIONS = [TopicPartition("orders", number) for number in range(2)]
NUMBERS = st.floats(0, 100)
MEASUREMENTS = st.lists(st.tuples(st.floats(0.1, 9), st.floats(0, 3), NUMBERS, NUMBERS), min_size=1, max_size=40)
"""Of each: how long after the one before, how much later it is heard, speeds and lags."""


@given(measurements=MEASUREMENTS)
def test_who_hears_measurements_later_asks_for_the_same_plan(
    measurements: list[tuple[float, float, float, float]],
) -> None:
    settings = ControllerSettings(
        consumer_capacity=100.0, scale_down_window_s=30.0, recovery_time_s=30.0, speeds_timeout_s=30.0, forecast=True
    )
    at_once, later = Decider(settings, 1), Decider(settings, 1)
    measured_at = heard_at = 0.0
    for passed, late, speed, behind in measurements:
        measured_at += passed
        heard_at = max(heard_at, measured_at + late)
        lags = dict.fromkeys(PARTITIONS, Lag(1, 100 * behind, None))
        speeds = WriteSpeeds(measured_at, dict.fromkeys(PARTITIONS, speed), lags=lags, window_s=5.0)
        at_once.measured(measured_at, speeds)
        later.measured(heard_at, speeds)
    assert at_once.ask(heard_at, (REPLAN,)) == later.ask(heard_at, (REPLAN,))
