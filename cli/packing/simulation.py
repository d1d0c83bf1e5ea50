"""Replays a stream through an engine, which evolves its own assignment, and what came of it by the paper's metrics."""

import math
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import repeat
from statistics import fmean

from cli.files.stream_file import Measurement
from cli.packing.engine_spec import EngineSpec
from domain.assignment import Assignment, ConsumerId
from domain.consumer_class import ConsumerClass
from domain.partitions import TopicPartition
from domain.rscore import rscore
from heuristics import pack
from solver import Problem, Status, solve

FIRST_CONSUMER = 0
"""As in the recorded runs of the paper's authors."""


class Policy(StrEnum):
    """What a stream is replayed through."""

    ENGINES = "engines"
    CONTROLLER = "controller"


@dataclass(frozen=True, slots=True)
class Answer:
    """What an engine assigned at one iteration, and what it cost."""

    algorithm: str
    iteration: int
    consumers: int
    rscore: float
    reassigned: int
    """Partitions that had a consumer at the iteration before, and now have another."""
    seconds: float
    """Wall time of the call."""
    status: Status
    gap: float | None
    """`(objective - lower bound) / objective`; None for heuristics, which prove nothing."""
    price: float
    """Of all consumers, in ordinary ones: as many as there are where there are no other classes."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """How streams are replayed."""

    capacity: float
    """Of a consumer, in the unit of the speeds."""
    time_limit_s: float = 1.0
    """Of one call of an exact engine."""
    seed: int = 0
    classes: tuple[ConsumerClass, ...] = ()
    """What consumers there may be beside those of `capacity`."""

    def replay(
        self, spec: EngineSpec, measurements: Iterable[Measurement], shares: Iterable[float] = repeat(1.0)
    ) -> Iterator[tuple[Answer, Assignment]]:
        """The engine's answer to each measurement, starting from nothing.

        Args:
            spec: the engine.
            measurements: in their order.
            shares: for each of them, up to which an exact engine gives consumers partitions, beside that of `spec`.
        """
        seeds = random.Random(self.seed)
        current, classes = Assignment(), dict[ConsumerId, ConsumerClass]()
        for measurement, share in zip(measurements, shares, strict=False):
            seed = seeds.getrandbits(31)
            began = time.perf_counter()
            if spec.is_heuristic and not self.classes:
                status, gap = Status.HEURISTIC, None
                assignment = pack(
                    spec.engine, measurement.speeds, self.capacity, current, first_consumer=FIRST_CONSUMER, seed=seed
                )
            else:
                filling = replace(spec, packing_share=share * spec.packing_share)
                problem = self._problem(filling, measurement.speeds, current, classes, seed)
                solution = solve(problem, spec.engine)
                assignment, status, classes = solution.assignment, solution.status, dict(solution.classes)
                gap = None if spec.is_heuristic else solution.gap
            seconds = time.perf_counter() - began
            migrations = current.migrations_to(assignment)
            yield (
                Answer(
                    algorithm=spec.name,
                    iteration=measurement.iteration,
                    consumers=len(assignment.consumers),
                    rscore=rscore(migrations, measurement.speeds, self.capacity),
                    reassigned=len(migrations),
                    seconds=seconds,
                    status=status,
                    gap=gap,
                    price=math.fsum(of.price for of in classes.values()) if classes else len(assignment.consumers),
                ),
                assignment,
            )
            current = assignment

    def _problem(
        self,
        spec: EngineSpec,
        speeds: Mapping[TopicPartition, float],
        current: Assignment,
        classes: Mapping[ConsumerId, ConsumerClass],
        seed: int,
    ) -> Problem:
        return Problem(
            speeds=speeds,
            capacity=self.capacity,
            packing_capacity=spec.packing_share * self.capacity,
            current=current,
            migration_weight=spec.migration_weight,
            first_consumer=FIRST_CONSUMER,
            time_limit_s=self.time_limit_s,
            seed=seed,
            classes=self.classes,
            class_names={consumer: of.name for consumer, of in classes.items()} if self.classes else {},
        )


@dataclass(frozen=True, slots=True)
class Summary:
    """An engine over a whole stream."""

    algorithm: str
    iterations: int
    mean_consumers: float
    mean_price: float
    cbs: float
    """Cardinal bin score: how many more consumers it has than the engine with the fewest, as a share, in the mean."""
    mean_rscore: float
    mean_reassigned: float
    proven: float | None
    """The share of iterations with a proven optimum; None for heuristics."""
    mean_gap: float | None
    mean_seconds: float
    """Of a call."""
    longest_seconds: float


def summarize(answers: Mapping[str, Sequence[Answer]]) -> list[Summary]:
    """One summary for each engine, by the paper's metrics (section Metrics); A is the engines that are given.

    Args:
        answers: of each engine, to the same measurements in the same order, one or more.
    """
    fewest = [min(answer.consumers for answer in row) for row in zip(*answers.values(), strict=True)]
    return [_summary(algorithm, given, fewest) for algorithm, given in answers.items()]


def _summary(algorithm: str, answers: Sequence[Answer], fewest: Sequence[int]) -> Summary:
    gaps = [answer.gap for answer in answers if answer.gap is not None]
    seconds = [answer.seconds for answer in answers]
    return Summary(
        algorithm=algorithm,
        iterations=len(answers),
        mean_consumers=fmean(answer.consumers for answer in answers),
        mean_price=fmean(answer.price for answer in answers),
        cbs=fmean((answer.consumers - least) / least for answer, least in zip(answers, fewest, strict=True)),
        mean_rscore=fmean(answer.rscore for answer in answers),
        mean_reassigned=fmean(answer.reassigned for answer in answers),
        proven=fmean(answer.status is Status.OPTIMAL for answer in answers) if gaps else None,
        mean_gap=fmean(gaps) if gaps else None,
        mean_seconds=fmean(seconds),
        longest_seconds=max(seconds),
    )


def pareto_front(points: Sequence[tuple[float, float]]) -> list[int]:
    """The indices of the points that none is better than, in ascending order of both less-is-better coordinates.

    A point is better than another if it is less in one coordinate and not more in the other; of equal points none is.
    """
    front: list[int] = []
    for index in sorted(range(len(points)), key=lambda index: (points[index], index)):
        if not front or points[index][1] < points[front[-1]][1] or points[index] == points[front[-1]]:
            front.append(index)
    return front
