"""kcga in the simulation: its real controller and its real solver, in front of consumers that take the measured times.

What is simulated is the world around them. A consumer carries its commands out in order. It ceases to read a partition
when the stop arrives (its batch is closed), carries it out when the batch is written, and reads a new partition when it
has taken it over. The solver's answer comes `SOLVE_LIMIT_S` after the question, however soon it is there. No process
dies and no message is lost here, so heartbeats are left out, and silence is not taken for death.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random

import numpy as np

from bench.latency.queues import NOBODY, Queues, Readers
from bench.latency.times import Times
from controller.commands import Command, CreateConsumer, DeleteConsumer, Publish, Send, Solve
from controller.events import ConsumerGone, ConsumerReported, Event, Solved, SpeedsMeasured, Started
from controller.history import Beginning
from controller.machine import Controller
from controller.settings import ControllerSettings
from domain.assignment import ConsumerId
from domain.messages import Action, ConsumerCommand, ConsumerReport, ConsumerState, Order, PartitionRef
from domain.partitions import TopicPartition
from domain.speeds import Lag, WriteSpeeds
from solver import solve

WINDOW_S = 30.0
"""Of the monitor: its speeds are means over so long, and so come late."""
REPORT_EVERY_S = 1.0
"""The monitor's interval."""
MESSAGE_S = 0.1
"""What a message takes from one component to another."""
SOLVE_LIMIT_S = 0.5
"""Of a call; the answer is always given that late."""
UNCOMMITTED_S = 4.0
"""How old what a consumer has read and not committed is, in the mean: half of its 5 s of gathering, and the writing. It
counts as lag to those who look at commits."""
RECORD_BYTES = 1000
_NEVER_S = 1e9


@dataclass(slots=True)
class _Consumer:
    incarnation: str
    ready: bool = False
    applied: Order = field(default_factory=lambda: Order(0, 0))
    held: frozenset[TopicPartition] = frozenset()
    wanted: dict[TopicPartition, Order] = field(default_factory=dict)
    """What it shall read, by the commands that have arrived, and by which start."""
    free_at: float = 0.0
    """When it has carried out what it was told so far."""
    reports: int = 0


class KcgaGroup:
    """A group under kcga's controller, which finds no consumer when it begins.

    Args:
        partitions: in the order of the queues.
        settings: of the controller; heartbeats are switched off.
        times: what handovers take; each is drawn from these.
        seed: of the draws.
        window_s: of the monitor.
    """

    def __init__(
        self,
        partitions: Sequence[TopicPartition],
        settings: ControllerSettings,
        times: Times,
        seed: int,
        window_s: float = WINDOW_S,
    ) -> None:
        self.readers: Readers = np.full(len(partitions), NOBODY)
        """Who reads each partition now."""
        self.migrations = 0
        self._partitions = partitions
        self._index: Mapping[TopicPartition, int] = {p: index for index, p in enumerate(partitions)}
        self._times = times
        self._window_s = window_s
        self._chance = Random(seed)
        timeouts = ("heartbeat_timeout_s", "ready_timeout_s", "acknowledge_timeout_s", "obey_timeout_s")
        patient = dict.fromkeys(timeouts, _NEVER_S)
        self._controller = Controller(settings.model_copy(update=patient), epoch=1)
        self._consumers: dict[ConsumerId, _Consumer] = {}
        self._born = 0
        self._due: list[tuple[float, int, Callable[[float], None]]] = []
        self._scheduled = 0
        self._reported_at = 0.0
        self._handle(Started(0.0, frozenset(), Beginning(epoch=1)))

    @property
    def consumers(self) -> int:
        """How many exist, those that begin or end included."""
        return len(self._consumers)

    def advance(self, now: float, queues: Queues) -> None:
        """Everything that happens until `now`."""
        while self._due and self._due[0][0] <= now:
            at, _, happen = heapq.heappop(self._due)
            happen(at)
        if now >= self._reported_at + REPORT_EVERY_S:
            self._reported_at = now
            self._handle(SpeedsMeasured(now, self._measured(now, queues)))

    def _measured(self, now: float, queues: Queues) -> WriteSpeeds:
        """What the monitor tells: mean speeds of its window, and the lag by the commits."""
        speeds = dict(zip(self._partitions, queues.speeds(self._window_s).tolist(), strict=True))
        lags = {
            partition: Lag(
                round(waiting / RECORD_BYTES), waiting, waiting / speeds[partition] if speeds[partition] else None
            )
            for partition, waiting in zip(self._partitions, queues.uncommitted(UNCOMMITTED_S).tolist(), strict=True)
        }
        return WriteSpeeds(now, speeds, lags=lags)

    def _later(self, at: float, happen: Callable[[float], None]) -> None:
        self._scheduled += 1
        heapq.heappush(self._due, (at, self._scheduled, happen))

    def _handle(self, event: Event) -> None:
        for command in self._controller.handle(event):
            self._perform(event.at, command)

    def _perform(self, now: float, command: Command) -> None:
        match command:
            case CreateConsumer(consumer=consumer):
                self._born += 1
                self._consumers[consumer] = _Consumer(f"process {self._born}")
                self._later(now + self._draw(self._times.creation_s), partial(self._get_ready, consumer))
            case DeleteConsumer(consumer=consumer):
                self._later(now + self._draw(self._times.stop_s), partial(self._end, consumer))
            case Send(command=message):
                self._later(now + MESSAGE_S, partial(self._arrive, message))
            case Solve(plan=plan, problem=problem, engine=engine):
                solution = solve(problem, engine)
                self._later(now + SOLVE_LIMIT_S, lambda at: self._handle(Solved(at, plan, solution)))
            case Publish(decision=decision) if decision.carried_out:
                self.migrations += sum(
                    1 for entry in decision.assignment if entry.previous not in (None, entry.consumer)
                )

    def _draw(self, measured: Sequence[float]) -> float:
        return self._chance.choice(measured)

    def _get_ready(self, consumer: ConsumerId, at: float) -> None:
        self._consumers[consumer].ready = True
        self._report(consumer, at)

    def _end(self, consumer: ConsumerId, at: float) -> None:
        del self._consumers[consumer]
        self._handle(ConsumerGone(at, consumer))

    def _arrive(self, command: ConsumerCommand, at: float) -> None:
        """The batch in hand is closed and written; then the command is carried out, after those before it."""
        consumer = self._consumers[command.consumer]
        is_stop = command.action is Action.STOP
        for ref in command.partitions:
            if is_stop:
                consumer.wanted.pop(ref.key, None)
                index = self._index[ref.key]
                if self.readers[index] == command.consumer:
                    self.readers[index] = NOBODY
            else:
                consumer.wanted[ref.key] = command.order
        spent_s = self._draw(self._times.stop_s) if is_stop else 0.0
        consumer.free_at = max(consumer.free_at, at + spent_s)
        self._later(consumer.free_at, partial(self._carry_out, command))
        if not is_stop:
            placed_at = max(consumer.free_at, at + self._draw(self._times.start_s))
            self._later(placed_at, partial(self._read, command))

    def _carry_out(self, command: ConsumerCommand, at: float) -> None:
        consumer = self._consumers[command.consumer]
        partitions = frozenset(ref.key for ref in command.partitions)
        is_stop = command.action is Action.STOP
        consumer.held = consumer.held - partitions if is_stop else consumer.held | partitions
        consumer.applied = command.order
        self._report(command.consumer, at)

    def _read(self, command: ConsumerCommand, _at: float) -> None:
        consumer = self._consumers.get(command.consumer)
        for ref in command.partitions:
            if consumer is not None and consumer.wanted.get(ref.key) == command.order:
                self.readers[self._index[ref.key]] = command.consumer

    def _report(self, number: ConsumerId, at: float) -> None:
        consumer = self._consumers[number]
        consumer.reports += 1
        report = ConsumerReport(
            consumer=number,
            incarnation=consumer.incarnation,
            sequence=consumer.reports,
            sent_at=at,
            state=ConsumerState.READY if consumer.ready else ConsumerState.STARTING,
            applied_epoch=consumer.applied.epoch,
            applied_sequence=consumer.applied.sequence,
            partitions=tuple(PartitionRef.of(partition) for partition in sorted(consumer.held)),
        )
        self._later(at + MESSAGE_S, lambda at: self._handle(ConsumerReported(at, report)))
