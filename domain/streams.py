"""Changing load made up by rule: the streams of measurements that the paper evaluates its heuristics on."""

import math
from collections.abc import Callable, Iterator
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from domain.partitions import TopicPartition

Start = Literal["random", "zero", "half", "full"]
"""The speeds of the first measurement: uniform between 0 and the capacity, or 0, half or all of it for everyone."""


def paper_stream(
    partitions: int,
    iterations: int,
    delta: float,
    *,
    capacity: float = 100.0,
    start: Start = "random",
    clamp: float | None = None,
    whole: bool = False,
    seed: int,
    topic: str = "topic",
) -> Iterator[dict[TopicPartition, float]]:
    """A random walk of each partition's write speed (section "Test Data Generation").

    `s_i(p) = max(0, s_{i-1}(p) + phi(delta) / 100 * capacity)`, with phi uniform on [-delta, delta].

    Args:
        partitions: how many, numbered from 0 in `topic`.
        iterations: how many measurements, the first included.
        delta: the largest change between two measurements, in percent of the capacity.
        capacity: C, in bytes/s or whatever the speeds are to be in.
        start: what the first measurement is.
        clamp: an upper limit of the speeds, in the unit of `capacity`. The paper names none; its authors' recorded
            runs were clamped to the capacity.
        whole: speeds and changes are whole percents of the capacity, as in the inputs that the authors recorded; the
            paper does not say. Sizes are then often equal, and consumers often exactly full.
        seed: same seed, same stream.
        topic: the topic of all partitions.

    Raises:
        ValueError: an argument is outside its range.
    """
    if partitions < 1 or iterations < 0:
        raise ValueError(f"a stream needs 1 partition or more and 0 iterations or more, not {partitions}, {iterations}")
    if not (math.isfinite(delta) and delta >= 0):
        raise ValueError(f"delta is {delta}: it must be a number of percent, 0 or more")
    if not (math.isfinite(capacity) and capacity > 0):
        raise ValueError(f"capacity is {capacity}: it must be a number above 0")
    if start not in get_args(Start):
        raise ValueError(f"start is {start!r}: it must be one of {', '.join(get_args(Start))}")
    if clamp is not None and not (math.isfinite(clamp) and clamp >= 0):
        raise ValueError(f"clamp is {clamp}: it must be a speed, 0 or more")
    random = np.random.default_rng(seed)
    names = [TopicPartition(topic, number) for number in range(partitions)]
    return _walk(names, iterations, delta, capacity, start, math.inf if clamp is None else clamp, _phi(random, whole))


Phi = Callable[[float, float, int], npt.NDArray[np.float64]]
"""`phi(low, high, n)`: n numbers from low to high, all equally likely."""


def _phi(random: np.random.Generator, whole: bool) -> Phi:
    def whole_numbers(low: float, high: float, n: int) -> npt.NDArray[np.float64]:
        return random.integers(math.ceil(low), math.floor(high), n, endpoint=True).astype(np.float64)

    return whole_numbers if whole else random.uniform


def _walk(
    partitions: list[TopicPartition],
    iterations: int,
    delta: float,
    capacity: float,
    start: Start,
    highest: float,
    phi: Phi,
) -> Iterator[dict[TopicPartition, float]]:
    n = len(partitions)
    first_percent = {"random": (0, 100), "zero": (0, 0), "half": (50, 50), "full": (100, 100)}[start]
    speeds = (phi(*first_percent, n) * capacity / 100).clip(0, highest)
    for _ in range(iterations):
        yield dict(zip(partitions, speeds.tolist(), strict=True))
        speeds = (speeds + phi(-delta, delta, n) * capacity / 100).clip(0, highest)
