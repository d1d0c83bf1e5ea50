"""What a skewed stream costs with consumers of several classes: beside each of these classes alone.

Write speeds are log-normal: many slow partitions and a few that are faster than an ordinary consumer. With one class
alone guarantees are equal only where it reads the fastest partition: where it does not, those that lag are counted.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.figures import markdown_table, run_facts, write_page
from bench.quiet import add_busy, await_quiet
from domain.assignment import Assignment, ConsumerId
from domain.consumer_class import ORDINARY, ConsumerClass
from domain.partitions import TopicPartition
from solver import Problem, solve

CAPACITY = 100.0
CLASSES = (ConsumerClass("small", 50.0, 0.55), ConsumerClass("large", 400.0, 5.0))
MEAN, FASTEST = 40.0, 390.0
_HEADINGS = ("measurement", "consumers", "of them", "price", "Rscore", "lag", "proven gap [%]", "[s]")


@dataclass(frozen=True)
class Options:
    partitions: int
    iterations: int
    delta: float
    limit_s: float
    seed: int
    folder: Path
    busy: bool


def stream(options: Options) -> Iterator[dict[TopicPartition, float]]:
    """Log-normal speeds that are multiplied by up to `delta` percent more or less from one measurement to the next."""
    chance = np.random.default_rng(options.seed)
    speeds = chance.lognormal(0.0, 1.0, options.partitions)
    speeds = np.minimum(speeds * MEAN / speeds.mean(), FASTEST)
    for _ in range(options.iterations):
        yield {TopicPartition("t", number): speed for number, speed in enumerate(speeds.tolist())}
        speeds = speeds * (1 + chance.uniform(-options.delta, options.delta, options.partitions) / 100)
        speeds = np.minimum(speeds, FASTEST)


def replayed(options: Options, capacity: float, price: float, classes: tuple[ConsumerClass, ...]) -> list[list[object]]:
    """A row for each measurement: consumers of a capacity and a price, and of `classes`."""
    current, names = Assignment(), dict[ConsumerId, str]()
    rows: list[list[object]] = []
    for place, speeds in enumerate(stream(options), 1):
        # The Rscore and lambda are those of the ordinary consumer, also where there is none.
        weight = 0.5 * capacity / CAPACITY / price
        problem = Problem(
            speeds,
            capacity,
            current,
            migration_weight=weight,
            time_limit_s=options.limit_s,
            classes=classes,
            class_names=names,
            seed=options.seed,
        )
        solution = solve(problem)
        current = solution.assignment
        names = {consumer: of.name for consumer, of in solution.classes.items()} if classes else {}
        total = price * sum(of.price for of in solution.classes.values())
        rows.append(
            [
                place,
                solution.consumers,
                _counted(Counter(of.name for of in solution.classes.values())) if classes else "",
                f"{total:.2f}",
                f"{solution.rscore * capacity / CAPACITY:.2f}",
                len(solution.saturated),
                f"{100 * solution.gap:.2f}",
                f"{solution.seconds:.1f}",
            ]
        )
    return rows


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def main() -> None:
    options = parse_options()
    before = await_quiet(options.busy)
    ordinary = ConsumerClass(ORDINARY, CAPACITY, 1.0)
    rows = [["all classes", *row] for row in replayed(options, CAPACITY, 1.0, CLASSES)]
    for each in (*CLASSES, ordinary):
        rows += [[f"{each.name} alone", *row] for row in replayed(options, each.capacity, each.price, ())]
    facts = [
        (
            "Stream",
            f"log-normal (sigma 1), mean {MEAN:g}, at most {FASTEST:g}; seed {options.seed}",
        ),
        ("Classes", "; ".join(f"{c.name}: capacity {c.capacity:g}, price {c.price:g}" for c in (ordinary, *CLASSES))),
        ("Partitions", f"{options.partitions:,}; {options.limit_s:g} s for each plan, lambda 0.5"),
    ]
    sections = [
        "# Consumers of several classes",
        "What the same skewed stream costs with all classes, and with each of them alone. `lag` is how many partitions "
        "are faster than any consumer there is: where there are some, the guarantee is not the same. Prices are an "
        "assumption: a consumer that reads four times as much costs five times as much.",
        run_facts("bench.classes", before, facts),
        markdown_table(("consumers are", *_HEADINGS), rows),
    ]
    write_page(options.folder / "classes.md", "\n\n".join(sections) + "\n")


def parse_options() -> Options:
    parser = argparse.ArgumentParser(prog="python -m bench.classes", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--iterations", type=int, default=2, metavar="N", help="measurements (%(default)s)")
    parser.add_argument("--delta", type=float, default=2.0, help="percent from one to the next (%(default)s)")
    parser.add_argument("--limit", type=float, default=1.0, metavar="S", help="seconds for a plan (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="%(default)s")
    parser.add_argument("--folder", type=Path, default=Path("docs/benchmarks"), help="for the page (%(default)s)")
    add_busy(parser)
    given = parser.parse_args()
    return Options(given.partitions, given.iterations, given.delta, given.limit, given.seed, given.folder, given.busy)


if __name__ == "__main__":
    main()
