"""What the benchmark of the reaction takes from what the components say."""

import pytest

from bench.timings import convergence_s, creates, handover_s, is_for_an_overload, plan_s, reaction_s, shrinks
from bench.transcript import Told
from domain.messages import Action, ConsumerCommand, ConsumerReport, ConsumerState, Decision, PartitionRef
from tests.sandbox.watch_messages import decision, partition

DECIDED_AT = 1_000.0


def told(*speeds: tuple[float, float]) -> list[Told]:
    return [Told(at, speed) for at, speed in speeds]


def test_a_speed_has_reacted_when_it_is_none_of_those_before() -> None:
    before = told((8, 100.0), (9, 104.0))
    assert reaction_s(before, told((10.2, 104.5), (11.2, 98.9), (12.2, 200.0)), stepped_at=10) == pytest.approx(1.2)
    assert reaction_s(before, told((10.2, 102.0)), stepped_at=10) is None


def test_a_speed_has_converged_when_it_stays_with_its_new_value() -> None:
    after = told((11, 50.0), (12, 98.0), (13, 120.0), (14, 96.0), (15, 100.0), (16, 100.0), (17, 100.0))
    assert convergence_s(after, stepped_at=10) == 4
    assert convergence_s(told((11, 10.0), (12, 20.0), (13, 90.0)), stepped_at=10) is None


def command(number: int, consumer: int, action: Action, *names: str, plan: int = 1) -> ConsumerCommand:
    return ConsumerCommand(
        consumer=consumer,
        incarnation=f"process {consumer}",
        epoch=1,
        plan=plan,
        sequence=number,
        action=action,
        partitions=tuple(PartitionRef.of(partition(name)) for name in names),
    )


def obeyed(consumer: int, sequence: int, at: float) -> ConsumerReport:
    return ConsumerReport(
        consumer=consumer,
        incarnation=f"process {consumer}",
        sequence=1,
        sent_at=at,
        state=ConsumerState.READY,
        applied_epoch=1,
        applied_sequence=sequence,
    )


PLAN = decision(1, DECIDED_AT, {"orders-0": (1, 2), "orders-1": (1, 3), "orders-2": (1, 1)})
COMMANDS = [
    command(1, 1, Action.STOP, "orders-0", "orders-1"),
    command(2, 2, Action.START, "orders-0"),
    command(3, 3, Action.START, "orders-1"),
]


def test_a_handover_ends_with_the_last_start_that_is_acknowledged() -> None:
    reports = [obeyed(1, 1, 1_000.5), obeyed(2, 2, 1_001.0), obeyed(3, 3, 1_002.5), obeyed(3, 3, 1_003.5)]
    assert handover_s(PLAN, COMMANDS, reports) == 2.5
    assert handover_s(PLAN, COMMANDS, reports[:2]) is None
    assert handover_s(PLAN, COMMANDS[:2], reports) is None


def test_the_starts_of_another_plan_say_nothing_of_this_one() -> None:
    of_next = [command(9, 2, Action.START, "orders-0", plan=2), command(10, 3, Action.START, "orders-1", plan=2)]
    assert handover_s(PLAN, of_next, [obeyed(2, 9, 1_001.0), obeyed(3, 10, 1_001.0)]) is None


@pytest.mark.parametrize(
    ("plan", "grows", "falls"),
    [
        ({"orders-0": (1, 1), "orders-1": (1, 2)}, True, False),
        ({"orders-0": (1, 2), "orders-1": (2, 1)}, False, False),
        ({"orders-0": (1, 1), "orders-1": (2, 1)}, False, True),
    ],
)
def test_plans_that_create_or_remove_consumers_are_told_apart(
    plan: dict[str, tuple[int | None, int]], grows: bool, falls: bool
) -> None:
    made = decision(1, DECIDED_AT, plan)
    assert (creates(made), shrinks(made)) == (grows, falls)


def test_a_decision_for_an_overload_is_timed_from_the_speeds_that_showed_it() -> None:
    overload = "consumer 1 has 110 bytes/s to read, above its capacity of 100"
    made: Decision = PLAN.model_copy(update={"triggers": (overload,), "measured_at": DECIDED_AT - 0.25})
    assert is_for_an_overload(made)
    assert not is_for_an_overload(PLAN)
    assert plan_s(made) == 0.25
