"""Machines that are asked after every turn whether what should hold does."""

from collections import Counter

from consumer.decide import events
from consumer.decide import invariants as of_consumer
from consumer.decide.actions import Action
from consumer.decide.machine import ConsumerMachine
from controller.decide import invariants as of_controller
from controller.decide.commands import Command
from controller.decide.events import Event
from controller.decide.machine import Controller, State
from domain.messages import ConsumerState

SEEN: Counter[tuple[State, State] | tuple[ConsumerState, ConsumerState]] = Counter()
"""How often each transition was seen in this process."""


def checked(machine: Controller, *happened: Event) -> list[Command]:
    """What the controller does about the events."""
    before = machine.state
    commands = machine.handle(*happened)
    _require_none(list(of_controller.broken(before, machine, commands)))
    SEEN[before, machine.state] += 1
    return commands


def checked_consumer(machine: ConsumerMachine, *happened: events.Event) -> list[Action]:
    """What the consumer does about the events."""
    before = machine.state
    actions = machine.handle(*happened)
    _require_none(list(of_consumer.broken(before, machine, actions)))
    SEEN[before, machine.state] += 1
    return actions


def _require_none(broken: list[str]) -> None:
    assert not broken, " ".join(broken)
