"""What who knows the future pays: at least by a lower bound, and at most by a plan.

Who knows all sizes beforehand chooses trajectories (`bench.regret.trajectories`) that cover each partition at each
step, and of which as many have any at a step as it takes consumers there at least. The linear relaxation of that is a
lower bound on what any policy pays. It is solved by adding columns, which are trajectories; some whole ones are a plan.
"""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from bench.regret.trajectories import TOLERANCE, Floats, Trajectory, Window
from solver.deadline import Deadline
from solver.exact.linear_program import LinearProgram, Point

_SMOOTHING = 0.85
"""How much of the prices that prove the best bound is in the next ones (Wentges)."""
_PATIENCE_S = 600.0
_WHOLE = 0.99
"""A share of a trajectory from which on a plan takes all of it."""
_TOO_DEAR = 0.3
"""A trajectory that costs so much more than it is worth, in consumers, is in no good plan."""
_GIVEN_UP = 8
"""So many of a plan's trajectories are given up at a time."""
_NOISE = 6.0
"""So much chance is added to how many partitions two of them share, each counted at each step: else the same ones are
always given up together."""


class Covering:
    """The least that it costs to cover each row of a window as often as required, by shares of trajectories."""

    def __init__(self, window: Window, weight: float, trajectories: Iterable[Trajectory]) -> None:
        self.trajectories = list(trajectories)
        self.taken: Set[int] = frozenset()
        """The numbers of those of which all is taken."""
        self._known = set(self.trajectories)
        self._window = window
        self._weight = weight
        self._required = window.required
        self._program = self._begun()

    def add(self, trajectory: Trajectory) -> None:
        self.trajectories.append(trajectory)
        self._known.add(trajectory)
        self._add_column(self._program, trajectory)

    def price(self) -> None:
        """Adds trajectories that gain at the prices of the optimum."""
        for trajectory in self._window.gaining(self.relax().duals, self._weight):
            if trajectory not in self._known:
                self.add(trajectory)

    def take(self, numbers: Iterable[int]) -> None:
        """All of these trajectories, from now on."""
        self.take_only(self.taken | set(numbers))

    def take_only(self, numbers: Set[int]) -> None:
        """All of these trajectories, and of the others what is best."""
        for number in numbers - self.taken:
            self._program.bound_column(number, 1.0, np.inf)
        for number in self.taken - numbers:
            self._program.bound_column(number, 0.0, np.inf)
        self.taken = frozenset(numbers)

    def relax(self) -> Point:
        """The optimum, with the duals by step and column of the window.

        Raises:
            RuntimeError: GLOP gave up, and did so when it began anew; or not all is covered.
        """
        point = self._program.relax(Deadline.after(_PATIENCE_S), dual=False)
        if point is None:  # from the basis that it had
            self._program = self._begun()
            point = self._program.relax(Deadline.after(_PATIENCE_S), dual=False)
        if point is None:
            raise RuntimeError("no solution of the relaxation: the trajectories do not cover all, or GLOP gave up")
        return replace(point, duals=np.maximum(point.duals, 0.0).reshape(self._required.shape))

    def _begun(self) -> LinearProgram:
        program = LinearProgram()
        for often in self._required.flat:
            program.add_row(lower=often)
        for trajectory in self.trajectories:
            self._add_column(program, trajectory)
        for number in self.taken:
            program.bound_column(number, 1.0, np.inf)
        return program

    def _add_column(self, program: LinearProgram, trajectory: Trajectory) -> None:
        rows = (step * self._required.shape[1] + column for step, column in self._window.covered(trajectory))
        program.add_column(self._window.cost(trajectory, self._weight), rows)


@dataclass(frozen=True, slots=True)
class Bound:
    """What a window costs at least."""

    value: float
    """Proven: no plan for the window costs less."""
    relaxed: float
    """What the columns that were found make of it: the relaxation's optimum is between the two."""
    duals: Floats
    """That prove it: no trajectory is worth more than it costs."""


def bound(
    window: Window, weight: float, pool: dict[Trajectory, None], duals: Floats, *, rounds: int, close: float
) -> Bound:
    """The least that a window costs whoever begins it as they like, and knows all of it.

    Args:
        window: the steps.
        weight: lambda.
        pool: trajectories to begin with, which cover everything; those that are found are added.
        duals: to begin with, such as those of another lambda.
        rounds: so often columns are added at most.
        close: done where the bound is that close to the relaxation, as a share of it.
    """
    covering = Covering(window, weight, pool)
    best, _ = _priced(window, weight, duals)
    for number in range(rounds + 1):
        point = covering.relax()
        best = replace(best, relaxed=point.objective)
        if number == rounds or best.relaxed - best.value <= close * best.relaxed:
            break
        between = _SMOOTHING * best.duals + (1 - _SMOOTHING) * point.duals
        priced, found = _priced(window, weight, between)
        if priced.value > best.value:
            best = replace(priced, relaxed=best.relaxed)
        new = dict.fromkeys((*found, *window.gaining(between, weight)))
        if not any(window.worth(each, point.duals) > window.cost(each, weight) + TOLERANCE for each in new):
            new |= dict.fromkeys(window.gaining(point.duals, weight))
        for trajectory in new.keys() - pool.keys():
            pool[trajectory] = None
            covering.add(trajectory)
    return best


def _priced(window: Window, weight: float, duals: Floats) -> tuple[Bound, list[Trajectory]]:
    """What prices prove once all are as much lower as it takes for no trajectory to be worth more than its cost.

    (Farley's bound.) And the trajectories that were.
    """
    factor, found = 1.0, list[Trajectory]()
    while True:
        value, trajectory = window.best(duals, weight, factor)
        if value <= TOLERANCE:
            return Bound(float((window.required * duals).sum()) / factor, np.inf, duals / factor), found
        found.append(trajectory)
        factor += value / window.cost(trajectory, weight)


def plan(window: Window, weight: float, pool: Iterable[Trajectory], proof: Bound, *, repairs: int) -> list[Trajectory]:
    """Trajectories that cover everything, at little cost: what each consumer is to have, were all known beforehand.

    A dive: of the shares that the relaxation takes the largest is made a whole, columns are added for what is left, and
    so on. Then some that share partitions are given up, and what they leave is covered anew in the same way, again and
    again. It proves nothing. A partition may be in several of them at a step.

    Args:
        window: the steps.
        weight: lambda.
        pool: trajectories that may be of use.
        proof: of what it costs at least: what is far too dear by its duals is left out.
        repairs: so often some are given up.
    """
    useful = (each for each in pool if window.cost(each, weight) <= window.worth(each, proof.duals) + _TOO_DEAR)
    covering = Covering(window, weight, dict.fromkeys([*window.alone, *useful]))
    cost, best = _dive(covering), covering.taken
    chance = np.random.default_rng(repairs)
    for _ in range(repairs):
        covering.take_only(best - _neighbours(covering.trajectories, best, chance))
        repaired = _dive(covering)
        if repaired < cost - TOLERANCE:
            cost, best = repaired, covering.taken
    return [covering.trajectories[number] for number in sorted(best)]


def _dive(covering: Covering) -> float:
    """Takes whole trajectories until all is covered; what all of them cost."""
    while True:
        covering.price()
        point = covering.relax()
        left = [n for n in np.flatnonzero(point.values > TOLERANCE).tolist() if n not in covering.taken]
        if not left:
            return point.objective
        whole = [number for number in left if point.values[number] >= _WHOLE]
        covering.take(whole or [max(left, key=point.values.__getitem__)])


def _neighbours(trajectories: Sequence[Trajectory], taken: Set[int], chance: np.random.Generator) -> set[int]:
    """One of those that are taken, and the others that have most of its partitions, at any time."""
    numbers = sorted(taken)
    sets = np.array([trajectories[number] for number in numbers], dtype=np.int64)
    ever = np.bitwise_or.reduce(sets[chance.integers(len(numbers))])
    shared = np.bitwise_count(sets & ever).sum(axis=1) + chance.uniform(0, _NOISE, len(numbers))
    return {numbers[place] for place in np.argsort(-shared)[:_GIVEN_UP].tolist()}
