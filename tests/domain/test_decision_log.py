"""What decisions add up to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.group_view.decision_log import DecisionLog, DecisionTotals, Planned
from domain.messages import Decision
from tests.sandbox.watch_messages import BEGAN, decision, partition

ALONE = {"orders-0": (None, 1), "orders-1": (None, 1)}
APART = {"orders-0": (1, 1), "orders-1": (1, 2)}
TOGETHER = {"orders-0": (1, 1), "orders-1": (2, 1)}


def log_of(*decisions: Decision) -> DecisionLog:
    log = DecisionLog()
    for each in decisions:
        log.add(each)
    return log


def test_the_first_plan_is_a_start_and_no_scale_up() -> None:
    assert log_of(decision(1, BEGAN, ALONE)).totals == DecisionTotals(carried_out=1, solve_s=0.01)


def test_a_first_plan_that_finds_consumers_is_compared_with_them() -> None:
    assert log_of(decision(8, BEGAN, APART)).totals.scale_ups == 1


def test_more_consumers_than_before_are_a_scale_up_and_fewer_a_scale_down() -> None:
    log = log_of(
        decision(1, BEGAN, ALONE),
        decision(2, BEGAN + 9, APART, rscore=0.5),
        decision(3, BEGAN + 20, TOGETHER, rscore=0.25),
    )
    assert log.totals == DecisionTotals(
        carried_out=3, scale_ups=1, scale_downs=1, migrations=2, rscore=0.75, solve_s=0.03
    )


def test_a_decision_that_is_not_carried_out_counts_for_nothing_and_is_kept() -> None:
    log = log_of(decision(1, BEGAN, ALONE), decision(2, BEGAN + 9, APART, rscore=0.5, carried_out=False))
    assert log.totals == DecisionTotals(carried_out=1, held_back=1, solve_s=0.02)
    assert [record.number for record in log.records] == [1, 2]
    assert log.plan == {partition("orders-0"): Planned(1, None), partition("orders-1"): Planned(1, None)}


def test_the_number_of_a_new_controller_begins_again_and_its_decisions_come_after() -> None:
    log = log_of(decision(1, BEGAN + 30, APART, epoch=2), decision(1, BEGAN, ALONE), decision(2, BEGAN + 9, ALONE))
    assert [(record.epoch, record.number) for record in log.records] == [(1, 1), (1, 2), (2, 1)]
    assert log.plan[partition("orders-1")].consumer == 2
    assert log.totals.scale_ups == 1


consumers = st.integers(1, 4)
decisions = st.builds(
    lambda place, plan, carried_out: decision(
        place[1],
        BEGAN + 100 * place[0] + place[1],
        {f"orders-{number}": entry for number, entry in enumerate(plan)},
        epoch=place[0],
        carried_out=carried_out,
        rscore=0.25 * len(plan),
    ),
    st.tuples(st.integers(1, 2), st.integers(1, 6)),
    st.lists(st.tuples(st.none() | consumers, consumers), max_size=4),
    st.booleans(),
)


@given(st.data())
def test_decisions_late_or_twice_add_up_to_the_same(data: st.DataObject) -> None:
    made = data.draw(st.lists(decisions, unique_by=lambda each: (each.epoch, each.number), max_size=8))
    arrived = data.draw(st.permutations(made)) + made[:3]
    log = log_of(*arrived)
    in_order = log_of(*sorted(made, key=lambda each: (each.epoch, each.number)))
    assert (log.records, log.totals, log.plan) == (in_order.records, in_order.totals, in_order.plan)


@pytest.mark.parametrize(
    ("changed", "ups", "downs"),
    [
        pytest.param({}, 1, 0, id="more than read"),
        pytest.param({"lost": (2,)}, 0, 0, id="one instead of one that was lost"),
        pytest.param({"lost": (2, 3)}, 0, 1, id="fewer than with those that were lost"),
        pytest.param({"consumers_before": 2}, 0, 0, id="as many as were on their way"),
        pytest.param({"consumers_before": 0}, 0, 0, id="a start"),
    ],
)
def test_a_scale_up_is_a_plan_with_more_consumers_than_there_were(
    changed: dict[str, object], ups: int, downs: int
) -> None:
    """After a death and a replacement the page counted 1, and `kcga_scale_ups_total` 2."""
    totals = log_of(decision(1, BEGAN, APART).model_copy(update=changed)).totals
    assert (totals.scale_ups, totals.scale_downs) == (ups, downs)


def test_what_is_no_longer_remembered_still_counts() -> None:
    short, whole = DecisionLog(kept=2), DecisionLog()
    for number, consumers in enumerate((1, 3, 2, 4, 4), start=1):
        plan = {f"orders-{place}": (1, 1 + place % consumers) for place in range(4)}
        for log in (short, whole):
            log.add(decision(number, BEGAN + number, plan, rscore=0.5))
    assert short.totals == whole.totals
    assert [record.number for record in short.records] == [4, 5]
    short.add(decision(1, BEGAN + 1, {"orders-0": (1, 2)}, rscore=0.5))
    assert short.totals == whole.totals
