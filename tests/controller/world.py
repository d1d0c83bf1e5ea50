"""A small world for the state machine: consumers that follow the protocol, a network that loses, doubles and delays."""

from dataclasses import dataclass, field
from random import Random

from controller.commands import Command, CreateConsumer, DeleteConsumer, Publish, Restate, Send, Solve
from controller.events import (
    ConsumerGone,
    ConsumerReported,
    Event,
    OperatorAsked,
    Solved,
    SpeedsMeasured,
    Started,
    Ticked,
)
from controller.machine import Controller, State
from controller.settings import ControllerSettings
from domain.assignment import ConsumerId
from domain.messages import (
    Action,
    ConsumerCommand,
    ConsumerReport,
    ConsumerState,
    ControlAction,
    Decision,
    Order,
    PartitionRef,
)
from domain.partitions import TopicPartition
from domain.speeds import Lag, WriteSpeeds
from tests.controller.exhaustive import solve_exhaustively


@dataclass
class FakeConsumer:
    """A process that follows the protocol of `domain.messages.metadata` to the letter."""

    consumer: ConsumerId
    incarnation: str
    ready: bool = False
    silent: bool = False
    """It hangs: it goes on reading what it holds, and neither hears nor says anything."""
    applied: Order = field(default_factory=lambda: Order(0, 0))
    held: set[TopicPartition] = field(default_factory=set)
    reports: int = 0

    def apply(self, command: ConsumerCommand) -> None:
        if self.silent or command.incarnation != self.incarnation or command.order <= self.applied:
            return
        partitions = {partition.key for partition in command.partitions}
        self.held = self.held - partitions if command.action is Action.STOP else self.held | partitions
        self.applied = command.order

    def report(self, at: float) -> ConsumerReport:
        self.reports += 1
        return ConsumerReport(
            consumer=self.consumer,
            incarnation=self.incarnation,
            sequence=self.reports,
            sent_at=at,
            state=ConsumerState.READY if self.ready else ConsumerState.STARTING,
            applied_epoch=self.applied.epoch,
            applied_sequence=self.applied.sequence,
            partitions=tuple(PartitionRef.of(partition) for partition in sorted(self.held)),
        )


class World:
    """Runs a controller against fake consumers; every message may be lost, doubled, delayed and overtaken."""

    def __init__(self, settings: ControllerSettings, seed: int, chaos: float = 0.0) -> None:
        self.settings = settings
        self.random = Random(seed)
        self.chaos = chaos
        """The share of messages that are lost; as many are doubled, and twice as many delayed."""
        self.now = 1_000.0
        self.consumers: dict[ConsumerId, FakeConsumer] = {}
        self.commands: list[tuple[float, ConsumerCommand]] = []
        self.reports: list[tuple[float, ConsumerReport]] = []
        self.speeds: dict[TopicPartition, float] = {}
        self.unknown: frozenset[TopicPartition] = frozenset()
        self.lags: dict[TopicPartition, float] = {}
        """In bytes; partitions that are left out have none."""
        self.lags_unknown: frozenset[TopicPartition] = frozenset()
        self.decisions: list[Decision] = []
        self.most_readers = 0
        self.born = 0
        self.epoch = 0
        self.paused = False
        """What a controller said last of it, and the next one begins with."""
        self.begin_controller()

    def begin_controller(self) -> None:
        """The controller before this one, if any, is dead: what it knew is lost."""
        self.epoch += 1
        self.controller = Controller(self.settings, self.epoch)
        self.handle(Started(self.now, frozenset(self.consumers), self.paused))

    def handle(self, event: Event) -> None:
        for command in self.controller.handle(event):
            self.perform(command)

    def perform(self, command: Command) -> None:
        match command:
            case CreateConsumer(consumer=consumer):
                assert consumer not in self.consumers, "two processes with one number"
                self.born += 1
                self.consumers[consumer] = FakeConsumer(consumer, f"process {self.born}")
            case DeleteConsumer(consumer=consumer):
                if self.consumers.pop(consumer, None) is not None:
                    self.handle(ConsumerGone(self.now, consumer))
            case Send(command=message):
                self.commands += [(arrival, message) for arrival in self.arrivals()]
            case Solve(plan=plan, problem=problem):
                self.handle(Solved(self.now, plan, solve_exhaustively(problem)))
            case Publish(decision=decision):
                self.decisions.append(decision)
            case Restate(paused=paused):
                self.paused = paused

    def arrivals(self) -> list[float]:
        """When the copies of a message that is sent now arrive."""
        copies = 0 if self.random.random() < self.chaos else 2 if self.random.random() < self.chaos else 1
        return [
            self.now + (self.random.uniform(0, 5) if self.random.random() < 2 * self.chaos else 0.1)
            for _ in range(copies)
        ]

    def kill(self, consumer: ConsumerId) -> None:
        del self.consumers[consumer]
        self.handle(ConsumerGone(self.now, consumer))

    def ask(self, action: ControlAction) -> None:
        self.handle(OperatorAsked(self.now, action))

    def step(self, seconds: float = 0.5, *, monitor: bool = True) -> None:
        """Lets time pass: what is due arrives, consumers report, and the monitor, if it lives, measures speeds."""
        self.now += seconds
        due = [command for arrival, command in self.commands if arrival <= self.now]
        self.commands = [(arrival, command) for arrival, command in self.commands if arrival > self.now]
        for command in due:
            if (consumer := self.consumers.get(command.consumer)) is not None:
                consumer.apply(command)
                self.watch()
        for consumer in self.consumers.values():
            if consumer.silent:
                continue
            self.reports += [(arrival, consumer.report(self.now)) for arrival in self.arrivals()]
            consumer.ready = True
        reported = [report for arrival, report in self.reports if arrival <= self.now]
        self.reports = [(arrival, report) for arrival, report in self.reports if arrival > self.now]
        for report in reported:
            self.handle(ConsumerReported(self.now, report))
        if monitor:
            self.handle(SpeedsMeasured(self.now, self.write_speeds()))
        self.handle(Ticked(self.now))

    def write_speeds(self) -> WriteSpeeds:
        """What the monitor tells: of partitions whose lag is not told (`lags_unknown`), none, else `lags` or no lag."""
        named = self.speeds.keys() | self.unknown
        lags = {p: Lag(0, self.lags.get(p, 0.0), None) for p in named - self.lags_unknown}
        return WriteSpeeds(self.now, dict(self.speeds), self.unknown, lags=lags)

    def watch(self) -> None:
        readers: dict[TopicPartition, int] = {}
        for consumer in self.consumers.values():
            for partition in consumer.held:
                readers[partition] = readers.get(partition, 0) + 1
        self.most_readers = max(self.most_readers, *readers.values(), 0) if readers else self.most_readers

    def settle(self, steps: int = 400) -> None:
        """Without further faults the group has to converge."""
        self.chaos = 0.0
        for _ in range(steps):
            self.step()
        assert self.controller.state is State.SENTINEL
        held = [partition for consumer in self.consumers.values() for partition in consumer.held]
        assert sorted(held) == sorted(self.speeds), "each partition has exactly one consumer"
