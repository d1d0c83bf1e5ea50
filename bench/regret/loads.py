"""The loads: random walks as in the paper, and four kinds that producers are known for.

All in shares of a consumer's capacity, none above it: what is faster than a consumer, nobody can keep up with. No
partition is ever small: the bound looks at every set that fits a consumer, and of small ones too many do.
"""

from collections.abc import Callable, Mapping

import numpy as np

from bench.regret.trajectories import Floats
from domain.streams import paper_stream

TOPICS = 4
"""Whose partitions burst, or step, together."""
DAY, WEEK = 12, 84
"""In steps: one is two hours."""
_RAMP = 16
"""Steps from the lowest to the highest load, and as many back."""


def _walk(delta: float) -> Callable[[int, int, int], Floats]:
    def walk(partitions: int, steps: int, seed: int) -> Floats:
        """From random speeds, never above the capacity: as in the recorded runs of the paper's authors."""
        stream = paper_stream(partitions, steps, delta, capacity=1.0, clamp=1.0, seed=seed)
        return np.array([list(speeds.values()) for speeds in stream])

    return walk


def _ramps(partitions: int, steps: int, seed: int) -> Floats:
    """All partitions climb along a line to twice their load, and fall along one."""
    chance = np.random.default_rng(seed)
    at = np.arange(steps) + chance.integers(2 * _RAMP)
    return _uneven(partitions, 1 - 0.5 * np.abs(at % (2 * _RAMP) / _RAMP - 1), chance)


def _diurnal(partitions: int, steps: int, seed: int) -> Floats:
    """Days from half the load at night to all of it at noon, and two of seven with a fifth less; these are the last."""
    chance = np.random.default_rng(seed)
    at = np.arange(steps) + chance.integers(DAY) - steps
    weekend = np.where(at % WEEK >= 5 * DAY, 0.8, 1.0)
    return _uneven(partitions, weekend * (0.75 - 0.25 * np.cos(2 * np.pi * at / DAY)), chance)


def _bursts(partitions: int, steps: int, seed: int) -> Floats:
    """Calm; now and then a topic is 1.8 times as fast for two to five steps."""
    chance = np.random.default_rng(seed)
    factors = np.ones((steps, TOPICS))
    for topic in range(TOPICS):
        at = chance.exponential(8)
        while at < steps:
            length = int(chance.integers(2, 6))
            factors[int(at) : int(at) + length, topic] = 1.8
            at += length + chance.exponential(8)
    return _uneven(partitions, 0.55 * _by_partition(factors, partitions), chance)


def _steps(partitions: int, steps: int, seed: int) -> Floats:
    """Each topic has another level after six to twelve steps."""
    chance = np.random.default_rng(seed)
    levels = np.ones((steps, TOPICS))
    for topic in range(TOPICS):
        at = -int(chance.integers(12))
        while at < steps:
            length = int(chance.integers(6, 13))
            levels[max(0, at) : max(0, at + length), topic] = chance.uniform(0.5, 1.0)
            at += length
    return _uneven(partitions, _by_partition(levels, partitions), chance)


def _by_partition(factors: Floats, partitions: int) -> Floats:
    by_partition: Floats = factors[:, np.arange(partitions) % TOPICS]
    return by_partition


def _uneven(partitions: int, course: Floats, chance: np.random.Generator) -> Floats:
    """Partitions of 0.4 to 0.95 where the course is 1, each of which wanders by some 3 % and comes back."""
    shares = chance.uniform(0.4, 0.95, partitions)
    memory, deviation = 0.9, 0.03
    state = chance.normal(0.0, deviation, partitions)
    rows = []
    for factors in course:
        rows.append(shares * factors * np.exp(state))
        state = memory * state + np.sqrt(1 - memory**2) * chance.normal(0.0, deviation, partitions)
    return np.array(rows).clip(max=1.0)


LOADS: Mapping[str, Callable[[int, int, int], Floats]] = {
    "walk, delta 5": _walk(5.0),
    "walk, delta 10": _walk(10.0),
    "ramps": _ramps,
    "diurnal weeks": _diurnal,
    "bursts": _bursts,
    "steps": _steps,
}
"""By name: partitions, steps and seed in, the size of each partition (columns) at each step (rows) out."""
PAST: Mapping[str, int] = {"diurnal weeks": WEEK}
"""The steps that whoever looks back has of a load, before those that are replayed."""
