"""A decision in words: whatever the record says, and why."""

from hypothesis import given
from hypothesis import strategies as st

from app.decisions import pick
from domain.group_view.explanation import explain
from domain.group_view.foresight import came, due_at
from domain.messages import (
    Decision,
    DecisionKind,
    Foresight,
    HeldBack,
    PlanFigures,
    PlannedPartition,
    Restraint,
    SaturatedPartition,
    Shortfall,
)
from domain.partitions import HIGHEST_ID
from domain.speeds import HIGHEST_SPEED
from tests.examples import PRINTABLE
from tests.sandbox.watch_messages import BEGAN, decision, write_speeds

FIGURES = st.floats(0, 1e100)
TIMES = st.floats(0, 32_503_680_000)
SPEEDS = st.floats(0, HIGHEST_SPEED)
COUNTS = st.integers(0, 2**63 - 1)
PARTITIONS = st.integers(0, HIGHEST_ID)
CONSUMERS = st.integers(1, 10_000)
TOPICS = st.text(PRINTABLE, min_size=1, max_size=20)
TEXT = st.text(max_size=30)
PLANS = st.builds(PlanFigures, consumers=COUNTS, rscore=FIGURES, objective=FIGURES)
FORESIGHTS = st.builds(
    Foresight,
    horizon_s=st.floats(1, HIGHEST_SPEED),
    quantile=st.floats(0.01, 0.99),
    partitions=COUNTS,
    due=COUNTS,
    held=COUNTS,
)
RECORDS = st.builds(
    Decision,
    number=COUNTS,
    epoch=COUNTS,
    decided_at=TIMES,
    triggers=st.lists(TEXT, max_size=3).map(tuple),
    grounds=st.none() | st.sampled_from(DecisionKind),
    carried_out=st.booleans(),
    reason=TEXT,
    held_back=st.lists(st.builds(HeldBack, by=st.sampled_from(Restraint), why=TEXT), max_size=3).map(tuple),
    measured_at=st.none() | TIMES,
    window_s=st.none() | FIGURES,
    recovery_time_s=st.none() | FIGURES,
    capacity=st.none() | SPEEDS,
    packing_capacity=st.none() | SPEEDS,
    migration_weight=st.none() | FIGURES,
    engine=TEXT,
    status=TEXT,
    solve_s=FIGURES,
    lower_bound=FIGURES,
    gap=st.none() | FIGURES,
    plan=PLANS,
    keeping=st.none() | PLANS,
    not_keepable=st.lists(TEXT, max_size=3).map(tuple),
    lost=st.lists(CONSUMERS, max_size=3).map(tuple),
    shortfall=st.none() | st.builds(Shortfall, excess=SPEEDS, reason=TEXT),
    saturated=st.lists(
        st.builds(SaturatedPartition, topic=TOPICS, partition=PARTITIONS, speed=SPEEDS, partitions_needed=COUNTS),
        max_size=3,
    ).map(tuple),
    foresight=st.none() | FORESIGHTS,
    assignment=st.lists(
        st.builds(
            PlannedPartition,
            topic=TOPICS,
            partition=PARTITIONS,
            speed=SPEEDS,
            backlog=SPEEDS,
            foreseen=SPEEDS,
            consumer=CONSUMERS,
            previous=st.none() | CONSUMERS,
            reason=st.none() | TEXT,
        ),
        max_size=5,
    ).map(tuple),
)


@given(RECORDS)
def test_any_record_survives_the_wire_and_can_be_told(record: Decision) -> None:
    again = Decision.decode(record.encode())
    assert again == record
    assert list(explain(again, came=1.0))


def told(record: Decision) -> str:
    return "\n".join(explain(record))


def looking_ahead() -> Decision:
    """Of a group one partition of which is to grow from 3,000 to 4,000 bytes/s in 25 s."""
    record = decision(4, BEGAN, {"orders-0": (1, 1), "orders-1": (1, 2)})
    first, moved = record.assignment
    growing = moved.model_copy(update={"speed": 4_100.0, "backlog": 100.0, "foreseen": 1_000.0})
    foresight = Foresight(horizon_s=25.0, quantile=0.9, partitions=1, due=50, held=46)
    changes = {"assignment": (first, growing), "foresight": foresight, "measured_at": BEGAN}
    return record.model_copy(update={**changes, "grounds": DecisionKind.FORCED})


def test_a_plan_that_looks_ahead_says_what_was_foreseen_how_sure_that_is_and_how_it_came_out() -> None:
    record = looking_ahead()
    words = told(record)
    assert "so the plan is for the present speeds and what is foreseen." in words
    assert (
        "Within 25 s one partition is to grow by up to 1,000 bytes/s, to 4,000: 46 of 50 forecasts held lately, 92%; "
        "90% are to." in words
    )
    assert "4,100 bytes/s, 100 of them to catch up, 1,000 of them foreseen" in words
    assert "It came" not in words
    assert "It came to 3,900 bytes/s, which is no more than foreseen." in "\n".join(explain(record, 3_900.0))
    assert "It came to 4,001 bytes/s, which is more than foreseen." in "\n".join(explain(record, 4_001.0))


def test_how_it_came_out_is_told_by_what_was_measured_at_the_moment_that_was_foreseen() -> None:
    record = looking_ahead()

    def at(seconds: float, **speeds: float) -> float | None:
        named = {name.replace("_", "-"): speed for name, speed in speeds.items()}
        return came(record, write_speeds(BEGAN + seconds, named))

    assert due_at(record) == BEGAN + 25
    assert at(24, orders_0=1.0, orders_1=3_900.0) is None
    assert at(25, orders_0=1.0, orders_1=3_900.0) == 3_900.0
    assert at(300, orders_0=1.0, orders_1=3_900.0) is None
    assert at(25, orders_0=1.0) is None
    assert due_at(record.model_copy(update={"foresight": None})) is None


def test_a_plan_for_a_group_that_is_behind_says_what_of_it_is_to_catch_up() -> None:
    record = decision(4, BEGAN, {"orders-0": (1, 1), "orders-1": (1, 2)})
    first, moved = record.assignment
    behind = moved.model_copy(update={"speed": 3_000.0, "backlog": 1_200.0})
    words = told(record.model_copy(update={"recovery_time_s": 300.0, "assignment": (first, behind)}))
    assert (
        "Of the 3,001 bytes/s that were planned with, 1,200 are to drain within 300 s what the group is behind."
        in words
    )
    assert "orders-1 from consumer 1 to consumer 2 (3,000 bytes/s, 1,200 of them to catch up)" in words
    assert "behind" not in told(record.model_copy(update={"recovery_time_s": 300.0}))


def test_a_scale_up_says_why_and_why_each_partition_moved() -> None:
    record = decision(
        4, BEGAN, {"orders-0": (1, 1), "orders-1": (1, 2), "orders-2": (None, 2)}, triggers=("consumer 1 has too much",)
    )
    first, moved, started = record.assignment
    record = record.model_copy(
        update={
            "grounds": DecisionKind.FORCED,
            "capacity": 4.0,
            "assignment": (
                first,
                moved.model_copy(update={"reason": "its consumer was above its capacity"}),
                started.model_copy(update={"reason": "nobody read it"}),
            ),
        }
    )
    words = told(record)
    assert words.startswith("Decision 4 of epoch 1, 2023-11-14 22:13:20 UTC: scaled up from 1 to 2 consumers.")
    assert "  - consumer 1 has too much" in words
    assert (
        "orders-1 from consumer 1 to consumer 2 (1 bytes/s, 25% of a consumer): its consumer was above its capacity"
    ) in words
    assert "  - orders-2 to consumer 2 (1 bytes/s, 25% of a consumer): nobody read it" in words
    assert "orders-0" not in words


def test_a_plan_that_is_held_back_says_by_what() -> None:
    record = decision(5, BEGAN, {"orders-0": (1, 1), "orders-1": (2, 1)}, carried_out=False, rscore=0.3)
    record = record.model_copy(
        update={
            "grounds": DecisionKind.VOLUNTARY,
            "window_s": 300.0,
            "keeping": PlanFigures(consumers=2, rscore=0.0, objective=2.0),
            "held_back": (HeldBack(by=Restraint.BUDGET, why="0.10 is left"),),
        }
    )
    words = told(record)
    assert "nothing is changed" in words
    assert "  - migration budget: 0.10 is left" in words
    assert "Keeping everything would have cost 2.00 (2 consumers, Rscore 0.00)." in words
    assert "the highest speeds of the last 300 s" in words
    assert "What moves, if it were carried out:\n  - orders-1 from consumer 2 to consumer 1" in words


def test_a_record_of_an_older_version_can_be_told() -> None:
    words = told(decision(1, BEGAN, {"orders-0": (None, 1)}))
    assert "the group starts with 1 consumer" in words


def test_what_is_parked_is_told_with_why() -> None:
    left_out = decision(1, BEGAN, {"orders-0": (None, 1)}).model_copy(update={"parked": {"clicks": "another type"}})
    words = told(left_out)
    assert "What has no reader, because its table takes nothing:" in words
    assert "clicks is parked: another type; kcga unpark clicks has it tried at once" in words


EPOCHS = [decision(number, BEGAN, {}, epoch=epoch) for epoch, number in ((2, 3), (2, 3), (2, 1), (1, 4), (1, 2))]


def test_the_newest_decision_is_found_unless_another_is_named() -> None:
    assert pick(EPOCHS, None, None) == EPOCHS[0]
    assert pick(EPOCHS, 1, None) == EPOCHS[2]
    assert pick(EPOCHS, 2, 1) == EPOCHS[4]
    assert pick(EPOCHS, None, 1) == EPOCHS[3]


def test_a_decision_that_is_not_there_is_not_found() -> None:
    for number, epoch in ((2, None), (4, None), (3, 1), (None, 7), (1, 3)):
        assert pick(EPOCHS, number, epoch) is None
    assert pick([], None, None) is None


def test_the_price_and_the_classes_of_a_plan_are_told() -> None:
    plan = PlanFigures(consumers=2, rscore=0.0, objective=4.0, price=4.0)
    of_large = {"plan": plan, "classes": {"large": (3,)}}
    lines = list(explain(decision(1, BEGAN, {"orders-0": (None, 3)}).model_copy(update=of_large)))
    assert "The plan costs 4.00 (2 consumers at a price of 4.00, Rscore 0.00)." in lines
    assert lines[lines.index("Of its consumers are:") + 1] == "  - large: 3"
