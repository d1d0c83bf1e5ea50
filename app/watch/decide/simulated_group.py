"""A whole controller, and a group that obeys it at once and keeps up, on a clock of their own."""

import math
from collections.abc import Iterator

from controller.decide import commands, question
from controller.decide.commands import Claim, Command, CreateConsumer, DeleteConsumer, Publish, Send
from controller.decide.events import (
    ClaimHeard,
    ConsumerGone,
    ConsumerReported,
    Event,
    Solved,
    SpeedsMeasured,
    Started,
    Ticked,
)
from controller.decide.history import Beginning
from controller.decide.machine import Controller
from controller.settings import ControllerSettings
from domain.assignment import Assignment, ConsumerId
from domain.consumer_class import ConsumerClass
from domain.messages import Action, ConsumerCommand, ConsumerReport, ConsumerState, Decision, PartitionRef
from domain.speeds import WriteSpeeds

TICK_S = 1.0


class SimulatedGroup:
    """Begins without any consumers, at 0 o'clock.

    Args:
        settings: of the controller.
        solve: answers its questions, in no time by the clock here.
    """

    def __init__(self, settings: ControllerSettings, solve: question.Solve) -> None:
        self.decisions: list[Decision] = []
        self._settings = settings
        self._solve = solve
        self._controller = Controller(settings, epoch=1)
        self._now = 0.0
        self._born = 0
        self._reports: dict[ConsumerId, ConsumerReport] = {}
        """The newest of each consumer that there is."""
        self._class_names: dict[ConsumerId, str] = {}
        """Of which class the newest consumer of each number is."""
        self._happen([Started(0.0, frozenset(), Beginning(epoch=1))])

    @property
    def assignment(self) -> Assignment:
        """Who reads what."""
        return Assignment(
            {partition.key: report.consumer for report in self._reports.values() for partition in report.partitions}
        )

    @property
    def consumers(self) -> frozenset[ConsumerId]:
        """Those that exist, with or without partitions."""
        return frozenset(self._reports)

    @property
    def classes(self) -> dict[ConsumerId, ConsumerClass]:
        """Of which class each consumer that exists is."""
        return {consumer: self._settings.class_named(self._class_names[consumer]) for consumer in self._reports}

    @property
    def price(self) -> float:
        """Of the consumers that have partitions, in ordinary ones."""
        classes = self.classes
        return math.fsum(classes[consumer].price for consumer in self.assignment.consumers)

    def measured(self, at: float, speeds: WriteSpeeds) -> None:
        """Time passes until then, which must not go back, and speeds come."""
        while self._now + TICK_S < at:
            self._pass_time(self._now + TICK_S)
        self._pass_time(at, SpeedsMeasured(at, speeds))

    def _pass_time(self, at: float, *events: Event) -> None:
        self._now = at
        reported = [self._report(consumer) for consumer in sorted(self._reports)]
        self._happen([*reported, *events, Ticked(at)])

    def _happen(self, events: list[Event]) -> None:
        """And whatever comes of it."""
        while events:
            commands = self._controller.handle(*events)
            events = [event for command in commands for event in self._perform(command)]

    def _perform(self, command: Command) -> Iterator[Event]:
        match command:
            case CreateConsumer(consumer=consumer, class_name=class_name):
                self._born += 1
                self._class_names[consumer] = class_name
                self._reports[consumer] = ConsumerReport(
                    consumer=consumer,
                    incarnation=f"process {self._born}",
                    sequence=0,
                    sent_at=self._now,
                    state=ConsumerState.READY,
                )
                yield ConsumerReported(self._now, self._reports[consumer])
            case DeleteConsumer(consumer=consumer):
                del self._reports[consumer]
                yield ConsumerGone(self._now, consumer)
            case Send(command=message):
                yield self._obey(message)
            case commands.Solve(plan=plan, problem=problem, engine=engine):
                yield Solved(self._now, plan, self._solve(problem, engine))
            case Publish(decision=decision):
                self.decisions.append(decision)
            case Claim(sequence=sequence):
                yield ClaimHeard(self._now, sequence)

    def _obey(self, command: ConsumerCommand) -> ConsumerReported:
        held = {partition.key for partition in self._reports[command.consumer].partitions}
        named = {partition.key for partition in command.partitions}
        held = held | named if command.action is Action.START else held - named
        return self._report(
            command.consumer,
            applied_epoch=command.epoch,
            applied_sequence=command.sequence,
            partitions=tuple(map(PartitionRef.of, sorted(held))),
        )

    def _report(self, consumer: ConsumerId, **changes: object) -> ConsumerReported:
        before = self._reports[consumer]
        changed = {"sequence": before.sequence + 1, "sent_at": self._now, **changes}
        self._reports[consumer] = before.model_copy(update=changed)
        return ConsumerReported(self._now, self._reports[consumer])
