"""What partitions lead to that are on a climb, and what plans are made of it."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.decide.climb import MOST_SHARE, STEPS, Climb
from controller.decide.decider import Decider
from controller.settings import ControllerSettings
from domain.messages import DecisionKind
from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds
from solver import solve

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
ACTING_S = 10.0


def told(*courses: Sequence[float], step_s: float = 1.0) -> Climb:
    climb = Climb()
    for step, speeds in enumerate(zip(*courses, strict=True)):
        climb.measured(step * step_s, dict(zip((P, Q), speeds, strict=False)))
    return climb


def test_what_climbs_leads_as_far_as_acting_takes() -> None:
    assert told([100, 105, 110, 115, 120], [100, 100, 100, 100, 100]).most(ACTING_S) == {P: 170}
    assert told([100, 105, 110, 115, 120], [100, 105, 110, 110, 120]).most(2 * ACTING_S) == {P: 220}


def test_it_goes_on_by_the_smaller_of_the_two_newest_steps() -> None:
    assert told([100, 101, 105, 115, 130]).most(ACTING_S) == {P: 230}
    assert told([100, 101, 110, 125, 135]).most(ACTING_S) == {P: 235}
    assert told([100, 105, 110, 115, 140]).most(ACTING_S) == {P: 190}


def test_a_step_that_is_much_larger_than_the_one_before_leads_nowhere_until_there_is_another() -> None:
    assert told([100, 105, 110, 115, 400], [100, 105, 110, 140, 160]).most(ACTING_S) == {Q: 360}


def test_it_leads_to_no_more_than_two_and_a_half_times_as_much() -> None:
    assert told([100, 150, 200, 250, 300]).most(ACTING_S) == {P: 750}
    assert told([100, 150, 200, 250, 300]).most(0.8 * ACTING_S) == {P: 700}


def test_what_has_not_climbed_for_long_enough_or_hardly_climbs_does_not_climb() -> None:
    assert told([100, 105, 110, 115]).most(ACTING_S) == {}
    assert told([100, 100.2, 100.4, 100.6, 100.8]).most(ACTING_S) == {}
    assert told([100, 90, 110, 120, 130]).most(ACTING_S) == {}
    assert told([100, 110, 120, 130, 130]).most(ACTING_S) == {}
    assert Climb().most(ACTING_S) == {}


def test_all_together_fall_as_far_as_acting_takes_and_by_the_smallest_of_the_steps() -> None:
    assert told([600, 570, 540, 500, 450], [50, 60, 70, 90, 120]).fall(ACTING_S) == pytest.approx(10 * 20 / 570)
    assert told([600, 500, 400, 300, 200]).fall(ACTING_S) == 1


def test_what_has_not_fallen_for_long_enough_or_hardly_falls_does_not_fall() -> None:
    assert told([600, 570, 540, 500]).fall(ACTING_S) == 0
    assert told([600, 599, 598, 597, 596]).fall(ACTING_S) == 0
    assert told([600, 500, 510, 400, 300]).fall(ACTING_S) == 0
    assert told([100, 90, 80, 70, 60], [100, 120, 130, 140, 150]).fall(ACTING_S) == 0
    assert told([400, 300, 200, 100, 0]).fall(ACTING_S) == 0
    assert Climb().fall(ACTING_S) == 0


def test_a_partition_that_comes_or_goes_meanwhile_is_no_climb_and_no_fall() -> None:
    climb = told([600, 570, 540, 500], [600, 600, 600, 600])
    climb.measured(STEPS, {P: 450.0})
    assert climb.fall(ACTING_S) == pytest.approx(10 * 30 / 450)
    climb = told([300, 300, 300, 300])
    climb.measured(STEPS, {P: 300.0, Q: 100.0})
    assert climb.fall(ACTING_S) == 0
    assert climb.most(ACTING_S) == {}


def test_measurements_that_are_a_moment_apart_are_no_steps() -> None:
    assert told([100 + n for n in range(30)], step_s=0.1).most(ACTING_S) == {}
    assert told([100 + n for n in range(60)], step_s=0.1).most(ACTING_S) != {}


@pytest.mark.parametrize("later", [30.0, -30.0])
def test_after_a_gap_or_when_the_clock_goes_back_it_begins_anew(later: float) -> None:
    climb = told([100, 105, 110, 115, 120])
    climb.measured(5 + later, {P: 125})
    assert climb.most(ACTING_S) == {}


@given(st.lists(st.floats(0, 1e12), min_size=STEPS + 1, max_size=20), st.floats(1, 60))
def test_it_is_foreseen_to_grow_and_no_further_than_is_known(course: list[float], acting_s: float) -> None:
    for most in told(course).most(acting_s).values():
        assert course[-1] < most <= course[-1] + MOST_SHARE * course[-1]


@pytest.mark.parametrize(("forecast", "consumers"), [(False, 2), (True, 3)])
def test_a_plan_that_has_to_be_is_made_for_where_the_climb_leads(forecast: bool, consumers: int) -> None:
    settings = ControllerSettings(consumer_capacity=100.0, forecast=forecast)
    decider, partitions = Decider(settings, 1), [TopicPartition("orders", number) for number in range(6)]
    for second in range(STEPS + 1):
        speeds = dict.fromkeys(partitions, 10.0 + 1.5 * second)
        decider.measured(second, WriteSpeeds(second, speeds, window_s=5.0))
    assert not [trigger for trigger in decider.why(STEPS) if "foreseen" in str(trigger.causes)]
    question = decider.ask(STEPS, decider.why(STEPS))
    decision = decider.answered(STEPS, 1, question, solve(question.problem, settings.engine))
    assert decision.grounds is DecisionKind.FORCED
    assert decision.plan.consumers == consumers
    assert {round(entry.foreseen) for entry in decision.assignment} == ({19} if forecast else {0})
