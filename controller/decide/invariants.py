"""Which state of the controller may follow which, and what holds after every turn.

Tests ask after each event of every world that they make up or explore (`broken`); `docs/states.md` says it in words.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from controller.decide.commands import Claim, Command, DeleteConsumer, Send
from controller.decide.machine import Controller, State
from domain.messages import Action, ConsumerCommand, writer

FOLLOWS: Mapping[tuple[State, State], str] = MappingProxyType(
    {
        (State.SYNCHRONIZE, State.SENTINEL): "every consumer that was found obeys, or is given up",
        (State.SYNCHRONIZE, State.REASSIGN): "so they do, and a plan is wanted",
        (State.SYNCHRONIZE, State.MANAGE): "so they do, and steps are due",
        (State.SENTINEL, State.REASSIGN): "a trigger, the interval or an operator wants a plan",
        (
            State.SENTINEL,
            State.MANAGE,
        ): "a partition has no reader, a consumer is missing, or nobody is to read",
        (State.REASSIGN, State.SENTINEL): "the plan is held back, or there is none",
        (State.REASSIGN, State.MANAGE): "the plan is carried out, or steps were due already",
        (State.MANAGE, State.SENTINEL): "no step is left",
        (State.MANAGE, State.REASSIGN): "a plan is wanted meanwhile; steps go on",
    }
)
"""From one state to another, within one turn: when."""


def _starts_what_nobody_else_may_read(machine: Controller, commands: Sequence[Command]) -> bool:
    counted_on = [member for member in machine.group.values() if not member.condemned]
    return not any(
        reference.key in member.known_to_read
        for start in _starts(commands)
        for reference in start.partitions
        for member in counted_on
        if member.consumer != start.consumer
    )


def _plans_with_those_there_are(machine: Controller, _: Sequence[Command]) -> bool:
    return machine.state is State.SYNCHRONIZE or machine.desired.consumers.isdisjoint(machine.group.taken)


def _is_at_rest(machine: Controller, _: Sequence[Command]) -> bool:
    plan = machine.desired.by_consumer
    return machine.state is not State.SENTINEL or all(
        member.known_to_read == frozenset(plan.get(consumer, ()))
        for consumer, member in machine.group.items()
        if not member.condemned
    )


def _starts_once_all_obey(machine: Controller, commands: Sequence[Command]) -> bool:
    return machine.state is not State.SYNCHRONIZE or not list(_starts(commands))


def _claims_whom_it_starts(_: Controller, commands: Sequence[Command]) -> bool:
    claimed = {name for command in commands if isinstance(command, Claim) for name in command.members}
    return all(writer(start.consumer, start.incarnation) in claimed for start in _starts(commands))


def _counts_off_whom_it_ends(machine: Controller, commands: Sequence[Command]) -> bool:
    ended = {command.consumer for command in commands if isinstance(command, DeleteConsumer)}
    return ended.isdisjoint(machine.group.alive)


def _starts(commands: Sequence[Command]) -> Iterator[ConsumerCommand]:
    for command in commands:
        if isinstance(command, Send) and command.command.action is Action.START:
            yield command.command


HOLDS: Mapping[str, Callable[[Controller, Sequence[Command]], bool]] = MappingProxyType(
    {
        "Nobody is told to read what another may read who is counted on.": _starts_what_nobody_else_may_read,
        "Nobody is to read a partition who is not counted on.": _plans_with_those_there_are,
        "In Sentinel everybody who is counted on reads what is planned, and nothing else.": _is_at_rest,
        "Nobody is told to read before all consumers that were found obey.": _starts_once_all_obey,
        "Who is told to read is named by a claim of the same turn.": _claims_whom_it_starts,
        "Who is to be ended is not counted on any more.": _counts_off_whom_it_ends,
    }
)
"""What is true of the machine, and of what it wants done, after every turn."""


def broken(before: State, machine: Controller, commands: Sequence[Command]) -> Iterator[str]:
    """What should hold after a turn and does not.

    Args:
        before: the state that the turn began in.
        machine: after it.
        commands: of the turn.
    """
    if before is not machine.state and (before, machine.state) not in FOLLOWS:
        yield f"{before} is followed by {machine.state}"
    yield from (words for words, holds in HOLDS.items() if not holds(machine, commands))
