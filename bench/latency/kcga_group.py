"""kcga in the simulation: the windows of its real monitor, its real controller and solver, and the machines of its real
consumers, which take the measured times.

What is simulated is the world around them. A consumer ceases to read a partition when it obeys the stop (its batch is
closed), acknowledges that when the batch is written and committed, and reads a new partition when it has taken it over.
The solver's answer comes `ANSWERS_AFTER_S` after the question, however soon it is there. No process dies and no message
is lost here, so heartbeats are rare, and silence is not taken for death.
"""

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random

import numpy as np

from bench.latency.queues import NOBODY, Queues, Readers
from bench.latency.times import Times
from bench.machine_alone import LOOK_WITHIN_S, MachineAlone
from consumer.decide import actions
from consumer.decide.claims import RELEASED
from controller.decide.commands import Claim, Command, CreateConsumer, DeleteConsumer, Publish, Send, Solve
from controller.decide.events import ClaimHeard, ConsumerGone, ConsumerReported, Event, Solved, SpeedsMeasured, Started
from controller.decide.forecast import SCORED, STEP_S
from controller.decide.history import Beginning
from controller.decide.machine import Controller
from controller.settings import ControllerSettings
from domain.assignment import ConsumerId
from domain.messages import ConsumerCommand, ConsumerReport, Standing
from domain.partitions import TopicPartition
from domain.speeds import Lag, WriteSpeeds
from monitor.measure.estimates import SpeedEstimates
from monitor.measure.growth import LogMeasurement
from monitor.settings import MonitorSettings
from solver import Status, solve

MONITOR = MonitorSettings(topics=("^",))
"""As it is unless something is set."""
MESSAGE_S = 0.1
"""What a message takes from one component to another."""
ANSWERS_AFTER_S = 0.5
"""The solver, whatever it takes here."""
UNCOMMITTED_S = 4.0
"""How old what a consumer has read and not committed is, in the mean: half of its 5 s of gathering, and the writing. It
counts as lag to those who look at commits."""
RECORD_BYTES = 1000
_NEVER_S = 1e9


class KcgaGroup:
    """A group under kcga's controller, which finds no consumer when it begins.

    Args:
        partitions: in the order of the queues.
        settings: of the controller; heartbeats are switched off.
        times: what handovers take; each is drawn from these.
        seed: of the draws.
        monitor: the settings of the monitor.
    """

    def __init__(
        self,
        partitions: Sequence[TopicPartition],
        settings: ControllerSettings,
        times: Times,
        seed: int,
        monitor: MonitorSettings = MONITOR,
    ) -> None:
        self.readers: Readers = np.full(len(partitions), NOBODY)
        """Who reads each partition now."""
        self.migrations = 0
        self.unproven = 0
        """Answers of the exact solver that are not known to be as good as was asked for."""
        self.forecasts = self.forecasts_held = 0
        self._forecasts_at = 0.0
        """When they were counted last: each time those of a while, so that none counts twice."""
        self._partitions = partitions
        self._index: Mapping[TopicPartition, int] = {p: index for index, p in enumerate(partitions)}
        self._times = times
        self._estimates = SpeedEstimates(monitor.window_s, monitor.hold_s, follows_changes=monitor.follow_changes)
        self._estimates.follow(partitions)
        self._interval_s = monitor.interval_s
        self._chance = Random(seed)
        timeouts = ("heartbeat_timeout_s", "ready_timeout_s", "acknowledge_timeout_s", "obey_timeout_s")
        patient = dict.fromkeys(timeouts, _NEVER_S)
        self._controller = Controller(settings.model_copy(update=patient), epoch=1)
        self._consumers: dict[ConsumerId, MachineAlone] = {}
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
        if now >= self._reported_at + self._interval_s:
            self._reported_at = now
            self._handle(SpeedsMeasured(now, self._measured(now, queues)))

    def _measured(self, now: float, queues: Queues) -> WriteSpeeds:
        """What the monitor tells: speeds by its windows, and the lag by the commits."""
        self._estimates.add(
            (partition, LogMeasurement(now, topic_id=partition.topic, leader=1, stored_bytes=round(size)))
            for partition, size in zip(self._partitions, queues.so_far.tolist(), strict=True)
        )
        speeds = {p: speed.bytes_per_s for p, speed in self._estimates.speeds(now).items() if speed is not None}
        lags = {
            partition: Lag(
                round(waiting / RECORD_BYTES), waiting, waiting / speed if (speed := speeds.get(partition)) else None
            )
            for partition, waiting in zip(self._partitions, queues.uncommitted(UNCOMMITTED_S).tolist(), strict=True)
        }
        unknown = self._index.keys() - speeds.keys()
        return WriteSpeeds(now, speeds, unknown=frozenset(unknown), lags=lags, window_s=self._estimates.window_s)

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
                process = MachineAlone(consumer, f"process {self._born}", "latency", now, self._takes_s)
                self._consumers[consumer] = process
                self._later(now, partial(self._beat, consumer, process))
            case DeleteConsumer(consumer=consumer):
                self._later(now + self._draw(self._times.stop_s), partial(self._end, consumer))
            case Send(command=message):
                self._later(now + MESSAGE_S, lambda at: self._look(message.consumer, at, message))
            case Solve(plan=plan, problem=problem, engine=engine):
                solution = solve(problem, engine)
                if solution.status not in (Status.OPTIMAL, Status.HEURISTIC):
                    self.unproven += solution.objective - solution.lower_bound > problem.absolute_gap
                self._later(now + ANSWERS_AFTER_S, lambda at: self._handle(Solved(at, plan, solution)))
            case Claim(sequence=sequence, standing=standing):
                self._count_forecasts(now, standing)
                self._later(now + MESSAGE_S, lambda at: self._handle(ClaimHeard(at, sequence)))
            case Publish(decision=decision) if decision.carried_out:
                self.migrations += sum(
                    1 for entry in decision.assignment if entry.previous not in (None, entry.consumer)
                )

    def _count_forecasts(self, now: float, standing: Standing | None) -> None:
        foresight = standing.foresight if standing else None
        if foresight is not None and now >= self._forecasts_at + SCORED * STEP_S:
            self._forecasts_at = now
            self.forecasts += foresight.due
            self.forecasts_held += foresight.held

    def _draw(self, measured: Sequence[float]) -> float:
        return self._chance.choice(measured)

    def _takes_s(self, ask: actions.Ask) -> float:
        match ask:
            case actions.OpenSession():
                return self._draw(self._times.creation_s)
            case actions.TakeOver():
                return self._draw(self._times.start_s)
            case actions.Commit(positions=positions) if any(each.note == RELEASED for each in positions.values()):
                return self._draw(self._times.stop_s)
            case _:
                return 0.0

    def _end(self, consumer: ConsumerId, at: float) -> None:
        del self._consumers[consumer]
        self._handle(ConsumerGone(at, consumer))

    def _beat(self, consumer: ConsumerId, process: MachineAlone, at: float) -> None:
        if self._consumers.get(consumer) is process:
            self._look(consumer, at)
            self._later(at + LOOK_WITHIN_S, partial(self._beat, consumer, process))

    def _look(self, consumer: ConsumerId, at: float, *commands: ConsumerCommand) -> None:
        """The consumer looks around, and does what it wants to do."""
        process = self._consumers.get(consumer)
        if process is None:
            return
        for action in process.look(at, *commands):
            match action:
                case actions.StopReading(partitions=partitions):
                    for index in (self._index[partition] for partition in partitions):
                        self.readers[index] = NOBODY
                case actions.ReadFrom(positions=positions):
                    self.readers[[self._index[partition] for partition in positions]] = consumer
                case actions.Send(report=report):
                    self._later(at + MESSAGE_S, partial(self._hear, report))
                case _:
                    pass
        if process.next_answer_at < math.inf:
            self._later(process.next_answer_at, partial(self._look, consumer))

    def _hear(self, report: ConsumerReport, at: float) -> None:
        self._handle(ConsumerReported(at, report))
