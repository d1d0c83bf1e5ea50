"""How long things took, by what the components said: pure."""

from collections.abc import Iterable, Sequence

from bench.transcript import Told
from domain.messages import Action, ConsumerCommand, ConsumerReport, Decision

REACTION = 0.01
"""A speed has reacted when it is further than this share from all that it was before."""
CONVERGENCE = 0.05
"""A speed has converged when it stays within this share of its new value."""
NEW_VALUE = 3
"""The new value is the average of so many last ones."""


def reaction_s(before: Sequence[Told], after: Sequence[Told], stepped_at: float) -> float | None:
    """From the step of a load until a speed arrived that is none of those before it; None where none did."""
    lowest, highest = (extreme(told.speed for told in before) for extreme in (min, max))
    for told in after:
        if not lowest * (1 - REACTION) <= told.speed <= highest * (1 + REACTION):
            return told.at - stepped_at
    return None


def convergence_s(after: Sequence[Told], stepped_at: float) -> float | None:
    """From the step of a load until the first speed from which on all are close to the last; None where none is."""
    new = sum(told.speed for told in after[-NEW_VALUE:]) / NEW_VALUE
    converged: float | None = None
    for told in after:
        if abs(told.speed - new) > CONVERGENCE * new:
            converged = None
        elif converged is None:
            converged = told.at - stepped_at
    return converged


def is_for_an_overload(decision: Decision) -> bool:
    """Whether it was carried out because a consumer had too much to read."""
    return decision.carried_out and any("above its capacity" in sentence for sentence in decision.triggers)


def plan_s(decision: Decision) -> float | None:
    """From the speeds that triggered a decision, as the monitor told them, to the plan."""
    return None if decision.measured_at is None else decision.decided_at - decision.measured_at


def creates(decision: Decision) -> bool:
    """Whether the plan needs a consumer that had no partition."""
    return not {entry.consumer for entry in decision.assignment} <= {entry.previous for entry in decision.assignment}


def shrinks(decision: Decision) -> bool:
    """Whether the plan has fewer consumers than there were."""
    return decision.plan.consumers < len({entry.previous for entry in decision.assignment} - {None})


def handover_s(
    decision: Decision, commands: Iterable[ConsumerCommand], reports: Iterable[ConsumerReport]
) -> float | None:
    """From a decision to the last acknowledgement of a start of its own; None where one is still to come."""
    starts = {
        partition.key: command
        for command in commands
        if (command.epoch, command.plan, command.action) == (decision.epoch, decision.number, Action.START)
        for partition in command.partitions
    }
    moves = {entry.key for entry in decision.assignment if entry.previous != entry.consumer}
    if not moves or not moves <= starts.keys():
        return None
    acknowledged: dict[ConsumerCommand, float] = {}
    for report in reports:
        for command in starts.values():
            if report.incarnation == command.incarnation and report.applied >= command.order:
                acknowledged[command] = min(report.sent_at, acknowledged.get(command, report.sent_at))
    if not all(starts[partition] in acknowledged for partition in moves):
        return None
    return max(acknowledged[starts[partition]] for partition in moves) - decision.decided_at
