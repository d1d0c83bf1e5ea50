"""A small world for the state machines of controller and consumers: a lake that is written to, a network that loses,
doubles and delays, nodes that hang, a solver that takes time, and a clock in each process.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random
from typing import TypeVar

from controller.decide.commands import Claim, Command, CreateConsumer, DeleteConsumer, Publish, Send, Solve
from controller.decide.events import (
    ClaimHeard,
    ConsumerGone,
    ConsumerReported,
    CreationFailed,
    Event,
    OperatorAsked,
    RevisionsSeen,
    Solved,
    SpeedsMeasured,
    Started,
    Ticked,
)
from controller.decide.history import Beginning, beginning, claiming
from controller.decide.machine import Controller, State
from controller.settings import ControllerSettings
from domain.assignment import ConsumerId
from domain.consumer_class import ORDINARY
from domain.messages import (
    ConsumerCommand,
    ConsumerReport,
    ControlAction,
    ControllerClaim,
    ControlRequest,
    Decision,
    MessageToController,
    Standing,
)
from domain.partitions import TopicPartition
from domain.speeds import Lag, WriteSpeeds
from solver import Problem, Solution
from tests.checked_machines import checked
from tests.controller.exhaustive import solve_exhaustively
from tests.controller.simulated_consumer import FakeConsumer
from tests.controller.simulated_lake import Lake

Message = TypeVar("Message")

GRACE_S = 2.0
"""So long after it was asked to leave a consumer is killed."""


class World:
    """Runs a controller against consumers in memory; every message may be lost, doubled, delayed and overtaken."""

    def __init__(self, settings: ControllerSettings, seed: int, chaos: float = 0.0, *, seals: bool = True) -> None:
        self.settings = settings
        self.random = Random(seed)
        self.chaos = chaos
        """The share of messages that are lost; as many are doubled, and twice as many delayed."""
        self.seals = seals
        """Whether consumers are told whom to seal; without it the world is one that must fail."""
        self.now = 87_400.0
        self.lake = Lake(self.random)
        self.consumers: dict[ConsumerId, FakeConsumer] = {}
        """The processes that the fleet knows."""
        self.zombies: list[FakeConsumer] = []
        """Those that it does not know any more, and that live."""
        self.commands: list[tuple[float, ConsumerCommand]] = []
        self.messages: list[tuple[float, MessageToController]] = []
        """On their way to the controller."""
        self.history: list[MessageToController] = []
        """What partition 0 holds."""
        self.unheard: list[MessageToController] = []
        """What has arrived there since the controller listened last."""
        self.speeds: dict[TopicPartition, float] = {}
        self.unknown: frozenset[TopicPartition] = frozenset()
        self.gone: frozenset[TopicPartition] = frozenset()
        self.monitor_skew_s = 0.0
        """What the monitor's clock is ahead."""
        self.monitor_lives = True
        self.a_clock: Callable[[], tuple[float, float]] = lambda: (0.0, 1.0)
        """Of the next consumer: what it shows at first, and how much faster than the world's it goes."""
        self.told: WriteSpeeds | None = None
        """What the monitor told last."""
        self.lags: dict[TopicPartition, float] = {}
        """In bytes; partitions that are left out have none."""
        self.lags_unknown: frozenset[TopicPartition] = frozenset()
        self.solver: Callable[[Problem], Solution] = solve_exhaustively
        self.solver_s = 0.0
        """What it takes."""
        self.questions: list[tuple[float, Solve]] = []
        """With when each will be answered."""
        self.decisions: list[Decision] = []
        self.sealed: list[str] = []
        """Whom starts have named."""
        self.most_readers = 0
        self.born = 0
        self.room = math.inf
        """No more consumers can be than this."""
        self.refuses = True
        """Whether more are refused at once; otherwise they are, and never become ready."""
        self.revision: str | None = None
        """What consumers begin with now."""
        self.broken: set[str | None] = set()
        """Revisions with which none becomes ready."""
        self.began_with: dict[ConsumerId, str | None] = {}
        self.class_names: dict[ConsumerId, str] = {}
        """Of which class the newest consumer of each number is."""
        self.asked: list[tuple[float, ConsumerId]] = []
        """When which consumer was to be created."""
        self.begin_controller()

    @property
    def paused(self) -> bool:
        """What a controller that began now would be told of it."""
        return self._beginning().paused

    def _beginning(self) -> Beginning:
        """From the newest claim on: what was said before it is not looked at."""
        for message in reversed(self.history):
            if isinstance(message, ControllerClaim):
                return beginning(self.history[message.heard_to :], message)
        return beginning(self.history)

    @property
    def processes(self) -> Iterable[FakeConsumer]:
        return [*self.consumers.values(), *self.zombies]

    def begin_controller(self) -> None:
        """The controller before this one, if any, is dead: what it knew is lost, except for what is on the topics."""
        claims = [each for each in self.messages if isinstance(each[1], ControllerClaim)]
        self.messages = [each for each in self.messages if each not in claims]
        self.history += [claim for _, claim in claims]  # they were sent: whoever begins finds them
        begun = replace(self._beginning(), speeds=self.told)
        self.unheard.clear()
        self.questions.clear()
        self.controller = Controller(self.settings, begun.epoch)
        self.claim(begun.claim(self.now), begun.epoch)
        self.epoch = begun.epoch
        self.listens = True
        decided = tuple(d for d in self.decisions if d.decided_at > self.now - self.settings.migration_window_s)
        self.handle(Started(self.now, frozenset(self.consumers), begun, decided), self.seen())

    @property
    def standing(self) -> Standing | None:
        """What the newest claim says of the group."""
        return next((each.standing for each in reversed(self.history) if isinstance(each, ControllerClaim)), None)

    def handle(self, *events: Event) -> None:
        if self.listens:
            for command in checked(self.controller, *events):
                self.perform(command)

    def perform(self, command: Command) -> None:
        match command:
            case CreateConsumer(consumer=consumer):
                assert consumer not in self.consumers, "two processes with one number"
                self.class_names[consumer] = command.class_name
                self.create(consumer)
            case DeleteConsumer(consumer=consumer):
                self.delete(consumer)
            case Send(command=message):
                self.sealed += message.seal
                told = message if self.seals else message.model_copy(update={"seal": ()})
                self.commands += [(arrival, told) for arrival in self.arrivals()]
            case Solve() if self.solver_s:
                self.questions.append((self.now + self.solver_s, command))
            case Solve():
                self.answer(command)
            case Publish(decision=decision):
                self.decisions.append(decision)
            case Claim():
                self.claim(command, self.epoch)

    def answer(self, question: Solve) -> None:
        self.handle(Solved(self.now, question.plan, self.solver(question.problem)))

    def create(self, consumer: ConsumerId) -> None:
        """It begins, where there is room for it."""
        self.asked.append((self.now, consumer))
        has_room = len(self.consumers) < self.room
        if has_room or not self.refuses:
            self.consumers[consumer] = self.a_process(consumer)
            self.consumers[consumer].silent = not has_room or self.revision in self.broken
            self.began_with[consumer] = self.revision
        else:
            self.handle(CreationFailed(self.now, consumer, "exceeded quota"))

    def a_process(self, consumer: ConsumerId) -> FakeConsumer:
        self.born += 1
        shows, pace = self.a_clock()
        return FakeConsumer(consumer, f"process {self.born}", shows, pace)

    def claim(self, claim: Claim, epoch: int) -> None:
        heard_to = len(self.history) - len(self.unheard)
        message = claiming(claim, epoch, f"controller {epoch}", self.now, heard_to)
        self.messages.append((self.now + 0.1 if claim.sequence else self.now, message))

    def arrivals(self) -> list[float]:
        """When the copies of a message that is sent now arrive."""
        copies = 0 if self.random.random() < self.chaos else 2 if self.random.random() < self.chaos else 1
        return [
            self.now + (self.random.uniform(0, 5) if self.random.random() < 2 * self.chaos else 0.1)
            for _ in range(copies)
        ]

    def delete(self, consumer: ConsumerId) -> None:
        """It is asked to leave, and killed where it does not; on a node that hangs nothing comes of either."""
        process = self.consumers.get(consumer)
        if process is not None and not process.doomed:
            process.killed_at = self.now + GRACE_S

    def kill(self, consumer: ConsumerId) -> None:
        process = self.consumers.pop(consumer)
        process.ended = True
        self.handle(ConsumerGone(self.now, consumer))

    def lose(self, consumer: ConsumerId) -> None:
        """Its node is cut off and given up: the fleet says that it is gone, but it is only frozen."""
        process = self.consumers.pop(consumer)
        process.frozen = True
        self.zombies.append(process)
        self.handle(ConsumerGone(self.now, consumer))

    def restart(self, consumer: ConsumerId) -> None:
        """Another process comes under its number, and nobody says so; the one before is frozen, not dead."""
        process = self.consumers[consumer]
        process.frozen = True
        self.zombies.append(process)
        self.consumers[consumer] = self.a_process(consumer)

    def wake(self) -> None:
        """All that is frozen, or cut off, goes on as it was."""
        for process in self.processes:
            process.frozen = process.silent = False

    def ask(self, action: ControlAction, topic: str | None = None) -> None:
        self.history.append(ControlRequest(action=action, topic=topic, sent_at=self.now))
        self.handle(OperatorAsked(self.now, action, topic))

    def step(self, seconds: float = 0.5, *, monitor: bool = True) -> None:
        """Lets time pass: what is due arrives, consumers go on, and the monitor, if it lives, measures speeds."""
        self.now += seconds
        written = (partition for partition in sorted(self.speeds) if self.speeds[partition] > 0)
        self.lake.produced.update({partition: self.random.randrange(3) for partition in written})
        for command in self._due(self.commands):
            for process in self.processes:
                if process.consumer == command.consumer and not process.silent:
                    process.inbox.append(command)
        self._let_consumers_go_on(seconds)
        for consumer, process in list(self.consumers.items()):
            if process.ended or (self.now >= process.killed_at and not process.frozen):
                self.kill(consumer)
        for message in self._due(self.messages):
            self.history.append(message)
            self.unheard.append(message)
        if not self.listens:
            return
        unheard, self.unheard = self.unheard, []
        events: list[Event] = []
        for message in unheard:
            match message:
                case ConsumerReport():
                    events.append(ConsumerReported(self.now, message))
                case ControllerClaim(epoch=self.epoch, sequence=sequence):
                    events.append(ClaimHeard(self.now, sequence))
                case _:
                    pass
        if monitor and self.monitor_lives:
            self.told = self.write_speeds()
            events.append(SpeedsMeasured(self.now, self.told))
        self.handle(*events, self.seen(), Ticked(self.now))
        for question in self._due(self.questions):
            self.answer(question)

    def seen(self) -> RevisionsSeen:
        """What the fleet shows of its consumers."""
        outdated = frozenset(number for number in self.consumers if self.began_with[number] != self.revision)
        class_names = {number: self.class_names.get(number, ORDINARY) for number in self.consumers}
        return RevisionsSeen(self.now, self.revision, outdated, class_names)

    def write_speeds(self) -> WriteSpeeds:
        """What the monitor tells: of partitions whose lag is not told (`lags_unknown`), none, else `lags` or no lag."""
        named = self.speeds.keys() | self.unknown
        behind = {p: self.lags.get(p, 0.0) for p in named - self.lags_unknown}
        lags = {p: Lag(math.ceil(in_bytes), in_bytes, None) for p, in_bytes in behind.items()}
        at = self.now + self.monitor_skew_s
        return WriteSpeeds(at, dict(self.speeds), self.unknown, lags=lags, gone=self.gone)

    def _due(self, on_their_way: list[tuple[float, Message]]) -> list[Message]:
        due = [message for arrival, message in on_their_way if arrival <= self.now]
        on_their_way[:] = [(arrival, message) for arrival, message in on_their_way if arrival > self.now]
        return due

    def _let_consumers_go_on(self, seconds: float) -> None:
        for _ in range(2):
            for process in self.processes:
                begun = process.begun
                process.step(self.lake, seconds / 2)
                if process.begun > begun:
                    self._count_readers()
            self.lake.work()
        for process in self.processes:
            for report in process.take_reports():
                self.messages += [(arrival, report) for arrival in self.arrivals()]

    def _count_readers(self) -> None:
        readers = Counter(
            partition
            for process in self.processes
            if not process.ended
            for partition in process.reading
            if process.reads(partition, self.lake)
        )
        self.most_readers = max(self.most_readers, *readers.values(), 0)

    @property
    def converged(self) -> bool:
        """Whether each partition has exactly one reader that goes on, and the controller is content."""
        readers = [
            partition
            for partition in self.speeds
            for process in self.processes
            if process.speaks and process.reads(partition, self.lake)
        ]
        return self.controller.state is State.SENTINEL and sorted(readers) == sorted(self.speeds)

    def settle(self, steps: int = 400) -> None:
        """Without further faults the group has to converge."""
        self.chaos = 0.0
        for _ in range(steps):
            self.step()
        assert self.converged
