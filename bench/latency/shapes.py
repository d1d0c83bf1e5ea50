"""The loads: the paper's stream, and what producers are known for. All in shares of a consumer's capacity."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from bench.latency.queues import Figures
from domain.partitions import TopicPartition
from domain.streams import paper_stream

PARTITIONS = 60
"""A number with many divisors, for those that divide evenly."""
STEP_S = 30.0
"""From one measurement of a stream to the next: the paper's window."""
_FASTEST = 0.95
"""No partition is faster, but on the paper's stream: what is faster than a consumer, nobody can keep up with."""


@dataclass(frozen=True, slots=True)
class Load:
    """A named load."""

    shape: str
    partitions: tuple[TopicPartition, ...]
    shares: Figures
    """The speed of each partition (columns) in each `STEP_S` (rows), over a consumer's capacity."""


def load(shape: str, steps: int, seed: int) -> Load:
    """The load of one of `SHAPES`, so many steps long."""
    topics = 1 if shape == "paper" else 6
    partitions = tuple(
        TopicPartition(f"topic-{topic}", number) for topic in range(topics) for number in range(PARTITIONS // topics)
    )
    return Load(shape, partitions, SHAPES[shape](steps, seed))


def _paper(steps: int, seed: int) -> Figures:
    """Delta 5, from random speeds, never above the capacity: as in the authors' recorded runs."""
    stream = paper_stream(PARTITIONS, steps, 5.0, capacity=1.0, clamp=1.0, seed=seed)
    return np.array([list(speeds.values()) for speeds in stream])


def _skewed(steps: int, seed: int) -> Figures:
    """The n-th fastest partition as fast as n to the power of -1/2, twelve consumers together; each drifts."""
    chance = np.random.default_rng(seed)
    shares = chance.permutation(np.arange(1, PARTITIONS + 1) ** -0.5)
    return _limited(12 * shares / shares.sum() * _drift(steps, chance, 0.15))


def _diurnal(steps: int, seed: int) -> Figures:
    """One day: from 4.8 consumers at night to 24 at noon and back; uneven partitions."""
    chance = np.random.default_rng(seed)
    shares = chance.lognormal(0.0, 0.5, PARTITIONS)
    day = 0.2 + 0.8 * (1 - np.cos(2 * np.pi * np.arange(steps) / steps)) / 2
    return _limited(24 * shares / shares.sum() * day[:, None] * _drift(steps, chance, 0.05))


def _bursty(steps: int, seed: int) -> Figures:
    """Calm at eight consumers; each of six topics bursts to the fourfold now and then, for 2 to 6 minutes."""
    chance = np.random.default_rng(seed)
    shares = chance.lognormal(0.0, 0.5, PARTITIONS)
    factors = np.ones((steps, 6))
    for topic in range(6):
        at = chance.exponential(40)
        while at < steps:
            length = chance.integers(4, 13)
            factors[int(at) : int(at) + length, topic] = 4.0
            at += length + chance.exponential(40)
    return _limited(8 * shares / shares.sum() * np.repeat(factors, PARTITIONS // 6, axis=1))


def _steady(steps: int, seed: int) -> Figures:
    """Each partition always the same, within 2 %; twenty consumers together."""
    chance = np.random.default_rng(seed)
    shares = chance.uniform(0.05, 0.6, PARTITIONS)
    return _limited(20 * shares / shares.sum() * chance.uniform(0.98, 1.02, (steps, PARTITIONS)))


def _ramp(steps: int, seed: int) -> Figures:
    """From 4 to 18 consumers along a line, in 10 minutes of each half hour, and back; uneven partitions."""
    return _along([0, 300, 900, 1200, 1800], [4, 4, 18, 18, 4], steps, seed)


def _broken(steps: int, seed: int) -> Figures:
    """To mislead: from 6 consumers along a line to 14 in 5 minutes of each 15, and back to 6 within 30 s."""
    return _along([0, 300, 600, 630, 900], [6, 6, 14, 6, 6], steps, seed)


def _steps(steps: int, seed: int) -> Figures:
    """At one moment from 6 consumers to 16, for 5 minutes of each 15: all producers begin, and end, at once."""
    return _along([0, 300 - STEP_S, 300, 600 - STEP_S, 600, 900], [6, 6, 16, 16, 6, 6], steps, seed)


def _along(moments_s: list[float], consumers: list[float], steps: int, seed: int) -> Figures:
    """Lines between these, again and again; each partition has its share, and drifts a little."""
    chance = np.random.default_rng(seed)
    shares = chance.lognormal(0.0, 0.5, PARTITIONS)
    course = np.interp(np.arange(steps) * STEP_S % moments_s[-1], moments_s, consumers)
    return _limited(course[:, None] * shares / shares.sum() * _drift(steps, chance, 0.02))


def _drift(steps: int, chance: np.random.Generator, deviation: float) -> Figures:
    """Factors around 1 that wander, and come back within some ten steps (an autoregressive process in logarithms)."""
    logarithms = np.zeros((steps, PARTITIONS))
    state = chance.normal(0.0, deviation, PARTITIONS)
    memory = 0.9
    for step in range(steps):
        logarithms[step] = state
        state = memory * state + np.sqrt(1 - memory**2) * chance.normal(0.0, deviation, PARTITIONS)
    return np.exp(logarithms)


def _limited(shares: Figures) -> Figures:
    return np.minimum(shares, _FASTEST)


SHAPES: Mapping[str, Callable[[int, int], Figures]] = {
    "paper": _paper,
    "skewed": _skewed,
    "diurnal": _diurnal,
    "bursty": _bursty,
    "steady": _steady,
    "ramp": _ramp,
    "broken": _broken,
    "steps": _steps,
}
