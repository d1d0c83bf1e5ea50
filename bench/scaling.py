"""Groups as large and as uneven as real ones: `python -m bench.scaling`.

Sizes are uniform (two partitions a consumer), or log-normal or Zipf-like with 10 or 100 partitions a consumer, and
drift from one iteration to the next. The group follows the plans. Prints a Markdown table.
"""

import argparse
import resource
from collections.abc import Iterator
from time import perf_counter, process_time

import numpy as np

from bench.figures import markdown_table, run_facts
from domain.assignment import Assignment
from domain.partitions import TopicPartition
from domain.streams import paper_stream
from solver import Problem, solve

CAPACITY = 100.0
SHAPES = ("uniform", "lognormal-10", "lognormal-100", "zipf-10", "zipf-100")
_DRIFT = 0.1
"""Standard deviation of the change of a partition's speed between two iterations, in logarithms."""
_LOAD = 0.97
"""Of the capacity of as many consumers as the shape's name says: no number of consumers fits to the last byte."""
_HEADINGS = ("shape", "partitions", "iteration", "status", "engine", "gap [%]", "seconds", "CPU [s]", "consumers", "R")


def skewed(
    partitions: int, per_consumer: int, shape: str, iterations: int, seed: int
) -> Iterator[dict[TopicPartition, float]]:
    """Uneven speeds that drift: log-normal with a deviation of 1, or the n-th largest as n to the power of -0.8."""
    chance = np.random.default_rng(seed)
    if shape == "lognormal":
        sizes = chance.lognormal(0.0, 1.0, partitions)
    else:
        sizes = chance.permutation(1 / np.arange(1, partitions + 1) ** 0.8)
    sizes = sizes / sizes.sum() * (partitions / per_consumer) * CAPACITY * _LOAD
    names = [TopicPartition("topic", number) for number in range(partitions)]
    for _ in range(iterations):
        yield dict(zip(names, sizes.tolist(), strict=True))
        sizes = sizes * np.exp(chance.normal(0.0, _DRIFT, partitions))


def stream(shape: str, partitions: int, iterations: int, seed: int) -> Iterator[dict[TopicPartition, float]]:
    """The stream of one of `SHAPES`."""
    if shape == "uniform":
        return paper_stream(partitions, iterations, 10.0, clamp=CAPACITY, seed=seed)
    family, _, per_consumer = shape.partition("-")
    return skewed(partitions, int(per_consumer), family, iterations, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description="Gap and time on large and uneven groups.")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=SHAPES)
    parser.add_argument("--partitions", type=int, nargs="+", default=[1000, 10000])
    parser.add_argument("--limits", type=float, nargs="+", default=[5.0, 20.0], help="seconds a call, one per size")
    parser.add_argument("--weight", type=float, default=0.5, help="lambda")
    parser.add_argument("--iterations", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rows: list[tuple[object, ...]] = []
    for partitions, limit_s in zip(given.partitions, given.limits, strict=True):
        for shape in given.shapes:
            current = Assignment()
            for number, speeds in enumerate(stream(shape, partitions, given.iterations, given.seed)):
                wall, cpu = perf_counter(), process_time()
                found = solve(Problem(speeds, CAPACITY, current, given.weight, time_limit_s=limit_s, seed=given.seed))
                wall, cpu = perf_counter() - wall, process_time() - cpu
                gap = f"{100 * found.gap:.3f}"
                rows.append(
                    (
                        *(shape, partitions, number, found.status, found.engine, gap),
                        *(f"{wall:.2f}", f"{cpu:.2f}", found.consumers, f"{found.rscore:.2f}"),
                    )
                )
                current = found.assignment
    print(run_facts("bench.scaling", [("Seed", str(given.seed)), ("Lambda", f"{given.weight:g}")]))
    print(f"- Peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB\n")
    print(markdown_table(_HEADINGS, rows, words=5))


if __name__ == "__main__":
    main()
