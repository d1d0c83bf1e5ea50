"""What policies make of a load, and what it costs who knows all of it: at least, and by a plan."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from typing import Self

import numpy as np

from bench.regret.foresight import bound, plan
from bench.regret.loads import DAY, LOADS, PAST, WEEK
from bench.regret.trajectories import Floats, Trajectory, Window
from cli.files.stream_file import Measurement
from cli.packing.engine_spec import EngineSpec
from cli.packing.simulation import Simulation
from domain.assignment import Assignment
from domain.partitions import TopicPartition
from domain.rscore import rscore
from heuristics import HEURISTICS
from solver import Problem, Status, solve
from solver.problem import LOAD_TOLERANCE

LIMIT_S = 600.0
"""Of one call: every answer is a proven optimum, so none depends on how fast the machine is."""
WARM_UP = DAY + 4
"""Steps before those that are counted: policies begin without consumers, and for a day without a day before."""


WEIGHTS = (0.5, 1.0, 2.0, 4.0)
"""Each lambda: what is paid for an Rscore of 1, in consumers for a step."""
DECIDED = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
"""Each lambda' that is decided with."""
SHARES = (1.0, 0.95)
DECIDED_AHEAD = (0.5, 1.0, 2.0)
"""Each lambda' that is decided with where there is room for what comes."""
HORIZONS = (1, 3, 5)
"""The steps that are looked ahead."""
LINES = (3, 4)
"""The steps that a line goes through."""
LEAST_SHARE = 0.6
"""A consumer is packed up to that at least, however much is to come."""
CLOSE = 0.005
"""The bound is searched for until it is that close to the relaxation's optimum, as a share of it."""


@dataclass(frozen=True, slots=True)
class Span:
    """The steps that are counted, as windows of equal length; each begins with the step that the one before ends with.

    That step's consumers count half in each of the two. So every step counts once, and every change from one to the
    next is within a window.
    """

    windows: int
    changes: int
    """From step to step, in each window."""

    @property
    def steps(self) -> int:
        return self.windows * self.changes + 1

    def parts(self) -> list[tuple[slice, Floats]]:
        """The steps of each window, the first counted one being 0, and the price of a consumer at each."""
        found = []
        for number in range(self.windows):
            prices = np.ones(self.changes + 1)
            prices[0] = 1.0 if number == 0 else 0.5
            prices[-1] = 1.0 if number == self.windows - 1 else 0.5
            first = number * self.changes
            found.append((slice(first, first + self.changes + 1), prices))
        return found


@dataclass(frozen=True, slots=True)
class Course:
    """A policy on a load, over the steps that are counted."""

    consumers: float
    """The sum over the steps."""
    rscore: float
    """The same, of what moved between them, in consumers."""
    assignments: tuple[Assignment, ...]
    proven: bool

    @classmethod
    def counted(cls, assignments: Sequence[Assignment], rscores: Sequence[float], *, proven: bool) -> Self:
        """Of all steps: the first `WARM_UP` are not counted, nor is what moves after the last of them."""
        return cls(
            consumers=float(sum(len(assignment.consumers) for assignment in assignments[WARM_UP:])),
            rscore=sum(rscores[WARM_UP + 1 :]),
            assignments=tuple(assignments[WARM_UP:]),
            proven=proven,
        )

    def cost(self, weight: float) -> float:
        return self.consumers + weight * self.rscore


def replay(name: str, sizes: Floats, seed: int, growth: Floats | None = None) -> Course:
    """A policy on a load.

    Args:
        name: of the policy, as in `kcga simulate`.
        sizes: partitions (columns) at each step (rows), in consumers.
        seed: of what is left to chance.
        growth: at each step, what the load comes to over what it is: an exact engine leaves room for that.
    """
    names = [TopicPartition("topic", number) for number in range(sizes.shape[1])]
    stream = [Measurement(step, dict(zip(names, row, strict=True))) for step, row in enumerate(sizes.tolist())]
    shares = np.ones(len(sizes)) if growth is None else np.maximum(LEAST_SHARE, 1 / growth)
    answers = list(Simulation(1.0, LIMIT_S, seed).replay(EngineSpec.parse(name), stream, shares.tolist()))
    return Course.counted(
        [assignment for _, assignment in answers],
        [answer.rscore for answer, _ in answers],
        proven=name in HEURISTICS or all(answer.status is Status.OPTIMAL for answer, _ in answers),
    )


def known(sizes: Floats, horizon: int) -> Floats:
    """At each step, what all partitions together come to in the next ones at most, over what they are."""
    totals = sizes.sum(axis=1)
    highest = [totals[step : step + horizon + 1].max() for step in range(len(totals))]
    growth: Floats = np.array(highest) / totals
    return growth


def by_line(steps: int, sizes: Floats, horizon: int) -> Floats:
    """The same by the line through so many of the newest steps, where that rises."""
    totals = sizes.sum(axis=1)
    slopes = np.zeros(len(totals))
    places = np.arange(steps) - (steps - 1) / 2
    slopes[steps - 1 :] = np.lib.stride_tricks.sliding_window_view(totals, steps) @ places / (places @ places)
    growth: Floats = 1 + np.maximum(0.0, horizon * slopes) / totals
    return growth


def as_before(steps: int, sizes: Floats, horizon: int) -> Floats:
    """The same as it was so many steps before, where that is known."""
    growth = np.ones(len(sizes))
    growth[steps:] = known(sizes, horizon)[:-steps]
    return growth


LOOKS: Mapping[str, Callable[[Floats, int], Floats]] = {
    "known": known,
    **{f"line {steps}": partial(by_line, steps) for steps in LINES},
    "day": partial(as_before, DAY),
    "week": partial(as_before, WEEK),
}
"""What tells how much is to come."""


def looks(load: str) -> list[str]:
    """Those of a load: weeks are looked back at where weeks are alike."""
    return [look for look in LOOKS if look != "week" or PAST.get(load, 0) >= WEEK]


def fewest_consumers(row: Floats) -> int:
    """How many consumers these sizes take at least: a proven bound."""
    speeds = {TopicPartition("topic", number): size for number, size in enumerate(row.tolist())}
    solution = solve(Problem(speeds=speeds, capacity=1.0, migration_weight=0.0, time_limit_s=LIMIT_S))
    return math.ceil(solution.lower_bound - LOAD_TOLERANCE)


def trajectories(assignments: Sequence[Assignment]) -> list[Trajectory]:
    """What each consumer has at each step."""
    consumers = sorted({consumer for assignment in assignments for consumer in assignment.consumers})
    held = [
        {c: sum(1 << p.partition for p in having) for c, having in assignment.by_consumer.items()}
        for assignment in assignments
    ]
    return [tuple(step.get(consumer, 0) for step in held) for consumer in consumers]


def followed(trajectories: Sequence[Trajectory], sizes: Floats) -> Course:
    """What comes of trajectories that cover each partition at each step: it costs no more than they do together.

    Where several have a partition, it moves as little as these allow, and when it is smallest.
    """
    partitions = sizes.shape[1]
    items = np.arange(partitions)
    sets = np.array(trajectories, dtype=np.int64).T[:, :, None]
    held = (sets >> items & 1).astype(bool)
    moved = [np.where(held[0], 0.0, np.inf)]
    """The least that moves up to each step, by trajectory that has the partition then."""
    for having, row in zip(held[1:], sizes[1:], strict=True):
        moved.append(np.where(having, np.minimum(moved[-1], moved[-1].min(axis=0) + row), np.inf))
    consumers = [moved[-1].argmin(axis=0)]
    for before, row in zip(reversed(moved[:-1]), reversed(sizes[1:]), strict=True):
        stays = before[consumers[-1], items] <= before.min(axis=0) + row
        consumers.append(np.where(stays, consumers[-1], before.argmin(axis=0)))
    names = [TopicPartition("topic", number) for number in range(partitions)]
    assignments = [Assignment(dict(zip(names, row.tolist(), strict=True))) for row in reversed(consumers)]
    return Course(
        consumers=float(sum(len(assignment.consumers) for assignment in assignments)),
        rscore=math.fsum(
            rscore(before.migrations_to(after), dict(zip(names, row, strict=True)), 1.0)
            for (before, after), row in zip(pairwise(assignments), sizes[1:].tolist(), strict=True)
        ),
        assignments=tuple(assignments),
        proven=False,
    )


@dataclass(frozen=True, slots=True)
class Least:
    """What the counted steps cost whoever knows all of them, and begins as they like."""

    bound: float
    """No less."""
    relaxed: float
    """The relaxation's optimum is not above that."""
    plan: Course | None
    """How it can be done; None where it was not asked for."""

    def regret(self, cost: float) -> float:
        """What is paid above the bound, as a share of it."""
        return cost / self.bound - 1


def least(
    sizes: Floats,
    weights: Sequence[float],
    span: Span,
    courses: Sequence[Course],
    *,
    rounds: int,
    close: float,
    repairs: int | None = None,
) -> Mapping[float, Least]:
    """What the counted steps cost who knows them, for each lambda.

    Args:
        sizes: as in `replay`.
        weights: each lambda.
        span: the counted steps.
        courses: of policies, whose trajectories are the first columns.
        rounds: as in `foresight.bound`.
        close: the same.
        repairs: as in `foresight.plan`; None for no plan. There is none of several windows: theirs would not meet.
    """
    found = {weight: Least(0.0, 0.0, None) for weight in weights}
    falling = sorted(weights, reverse=True)
    counted = sizes[WARM_UP:]
    fewest = np.array([fewest_consumers(row) for row in counted] if weights else [])
    for part, prices in span.parts() if weights else ():
        window = Window(counted[part], prices, fewest[part])
        pool = dict.fromkeys(each for course in courses for each in trajectories(course.assignments[part]))
        duals = np.column_stack([window.sizes * prices[:, None], np.zeros_like(prices)])
        reached, plans = {}, dict[float, Course]()
        for weight in falling:  # the dearer migrations are, the sooner it is done
            reached[weight] = bound(window, weight, pool, duals, rounds=rounds, close=close)
            duals = reached[weight].duals
            if repairs is not None:
                planned = plan(window, weight, pool, reached[weight], repairs=repairs)
                pool |= dict.fromkeys(planned)
                plans[weight] = min(followed(planned, window.sizes), *courses, key=lambda each: each.cost(weight))
        best = 0.0
        for weight in reversed(falling):  # what is proven for one lambda holds for every greater one
            best = max(best, reached[weight].value)
            before = found[weight]
            found[weight] = Least(before.bound + best, before.relaxed + reached[weight].relaxed, plans.get(weight))
    return found


@dataclass(frozen=True, slots=True)
class Job:
    """A load with a seed."""

    load: str
    seed: int
    partitions: int
    span: Span
    rounds: int
    bounded: bool
    """Whether the bound is asked for, which takes most of the time."""
    repairs: int | None
    """Of plans beside it; None for none."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it; the sums are over the counted steps."""

    load: str
    seed: int
    totals: Mapping[str, tuple[float, float]]
    """Of each policy, consumers and Rscore."""
    least: Mapping[float, Least]
    """For each lambda; empty where it was not asked for."""
    proven: bool
    """Whether every answer of the exact solver was an optimum, and proven so."""
    steps: int

    def cost(self, policy: str, weight: float) -> float:
        consumers, rscore = self.totals[policy]
        return consumers + weight * rscore

    def regret(self, policy: str, weight: float) -> float:
        """What the policy pays above the bound, as a share of the bound."""
        return self.least[weight].regret(self.cost(policy, weight))


def exact(weight: float, share: float = 1.0) -> str:
    return f"exact@{weight:g}" + ("" if share == 1 else f"/{share:g}")


def ahead(weight: float, look: str, horizon: int) -> str:
    return f"{exact(weight)} {look} for {horizon}"


def perform(job: Job) -> Outcome:
    past = PAST.get(job.load, 0)
    whole = LOADS[job.load](job.partitions, past + WARM_UP + job.span.steps, job.seed)
    sizes = whole[past:]
    names = [*HEURISTICS, *(exact(*each) for each in product(DECIDED, SHARES))]
    courses = {name: replay(name, sizes, job.seed) for name in names}
    for look, horizon in product(looks(job.load), HORIZONS):
        growth = LOOKS[look](whole, horizon)[past:]
        for weight in DECIDED_AHEAD:
            courses[ahead(weight, look, horizon)] = replay(exact(weight), sizes, job.seed, growth)
    first = [courses[name] for name in ("mwf", *(exact(weight) for weight in DECIDED))]
    return Outcome(
        load=job.load,
        seed=job.seed,
        totals={name: (course.consumers, course.rscore) for name, course in courses.items()},
        least=least(
            sizes,
            WEIGHTS if job.bounded else (),
            job.span,
            first,
            rounds=job.rounds,
            close=CLOSE,
            repairs=job.repairs,
        ),
        proven=all(course.proven for course in courses.values()),
        steps=job.span.steps,
    )
