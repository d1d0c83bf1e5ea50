"""Replays a stream through the whole controller: triggers, restraints, spares and hand-overs, not the solver alone."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from app.settings import load
from app.watch.decide.simulated_group import SimulatedGroup
from cli.files.stream_file import Measurement
from cli.packing.simulation import Answer, Policy
from cli.ranges import require
from controller.settings import ControllerSettings
from domain.assignment import HIGHEST_CONSUMER, Assignment
from domain.messages import Decision
from domain.partitions import TopicPartition
from domain.rscore import rscore
from domain.speeds import HIGHEST_SPEED, LEAST_CAPACITY, Lag, WriteSpeeds
from monitor.settings import MonitorSettings
from solver import Problem, Solution, Status, solve


@dataclass(slots=True)
class ControllerReplay:
    """A stream holds no backlogs: nothing is ever behind."""

    settings: ControllerSettings
    interval_s: float
    """From one measurement to the next."""
    decisions: list[Decision] = field(default_factory=list)
    """What was decided so far."""
    _solving_s: float = 0.0
    """For the measurement."""

    def replay(self, measurements: Sequence[Measurement]) -> Iterator[tuple[Answer, Assignment]]:
        """Who reads what once everything is done that a measurement brings about.

        A partition that a measurement leaves out is of unknown speed, unless none after it names it: then it is gone.
        """
        last = {partition: place for place, each in enumerate(measurements) for partition in each.speeds}
        group = SimulatedGroup(self.settings, self._solve)
        self.decisions = group.decisions
        named: set[TopicPartition] = set()
        before = Assignment()
        for place, measurement in enumerate(measurements):
            self._solving_s = 0.0
            at = self.interval_s * (place + 1)
            named |= measurement.speeds.keys()
            gone = frozenset(partition for partition in named if last[partition] < place)
            unknown = frozenset(named - gone - measurement.speeds.keys())
            lags = dict.fromkeys(measurement.speeds, Lag(0, 0.0, None))
            group.measured(at, WriteSpeeds(at, measurement.speeds, unknown, lags=lags, gone=gone))
            after = group.assignment
            migrations = before.migrations_to(after)
            speeds = {**dict.fromkeys((each.partition for each in migrations), 0.0), **measurement.speeds}
            yield (
                Answer(
                    algorithm=Policy.CONTROLLER.value,
                    iteration=measurement.iteration,
                    consumers=len(after.consumers),
                    rscore=rscore(migrations, speeds, self.settings.consumer_capacity),
                    reassigned=len(migrations),
                    seconds=self._solving_s,
                    status=Status.HEURISTIC,
                    gap=None,
                    price=group.price,
                ),
                after,
            )
            before = after

    def _solve(self, problem: Problem, engine: str) -> Solution:
        began = time.perf_counter()
        solution = solve(problem, engine)
        self._solving_s += time.perf_counter() - began
        return solution


def controller_replay(file: Path | None, capacity: float, time_limit_s: float) -> ControllerReplay:
    """By the settings in the file; without one, by the other arguments, and with as many consumers as it takes.

    Raises:
        UsageError: something in the file, or the capacity, is wrong.
    """
    if file is not None:
        settings = load(file)
        return ControllerReplay(settings.of_controller, settings.monitor.interval_s)
    capacity = require("--capacity", capacity, LEAST_CAPACITY, HIGHEST_SPEED)
    controller = ControllerSettings(
        consumer_capacity=capacity, time_limit_s=time_limit_s, max_consumers=HIGHEST_CONSUMER
    )
    return ControllerReplay(controller, MonitorSettings.model_fields["interval_s"].default)
