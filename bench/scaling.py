"""Groups as large and as uneven as real ones: `python -m bench.scaling`.

Sizes are uniform (two partitions a consumer), or log-normal or Zipf-like with 10 or 100 partitions a consumer, and
drift from one iteration to the next. The group has MBFP's assignment first, and follows the plans from then on. Writes
a page and its plot into a folder.
"""

import argparse
import resource
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import numpy as np

from bench.figures import markdown_table, plot_in, run_facts
from bench.quiet import add_busy, await_quiet
from cli.plots.plotting import FAINT_INK, GRID, TOPIC_COLOURS, new_figure, save
from cli.terminal.progress import progress
from domain.partitions import TopicPartition
from domain.streams import paper_stream
from solver import Problem, Solution, solve

CAPACITY = 100.0
SHAPES = ("uniform", "lognormal-10", "lognormal-100", "zipf-10", "zipf-100")
_DRIFT = 0.1
"""Standard deviation of the change of a partition's speed between two iterations, in logarithms."""
_LOAD = 0.97
"""Of the capacity of as many consumers as the shape's name says: no number of consumers fits to the last byte."""
_HEADINGS = (
    "partitions",
    "shape",
    "status",
    "engine",
    "limit [s]",
    "gap [%]",
    "seconds",
    "consumers",
    "Rscore",
    "MBFP",
)
_GOAL = 0.01
"""The gap that a group of any shape is to have within the limit."""


@dataclass(frozen=True)
class Run:
    """One call of `auto`."""

    partitions: int
    shape: str
    limit_s: float
    solution: Solution
    seconds: float
    by_mbfp: Solution
    """What MBFP makes of the same problem."""

    @property
    def row(self) -> tuple[object, ...]:
        found, mbfp = self.solution, self.by_mbfp
        return (
            *(f"{self.partitions:,}", self.shape, found.status, found.engine, f"{self.limit_s:g}"),
            *(f"{100 * found.gap:.3f}", f"{self.seconds:.2f}", found.consumers, f"{found.rscore:.2f}"),
            f"{mbfp.consumers}, {mbfp.rscore:.2f}",
        )


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


def measure(partitions: int, shape: str, limit_s: float, weight: float, iterations: int, seed: int) -> Iterator[Run]:
    """`auto` on `iterations` problems of one stream."""
    measurements = stream(shape, partitions, iterations + 1, seed)
    first = Problem(next(measurements), CAPACITY, migration_weight=weight, time_limit_s=limit_s, seed=seed)
    current = solve(first, "mbfp").assignment
    for speeds in measurements:
        problem = replace(first, speeds=speeds, current=current)
        began = perf_counter()
        solution = solve(problem)
        yield Run(partitions, shape, limit_s, solution, perf_counter() - began, solve(problem, "mbfp"))
        current = solution.assignment


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scaling", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=SHAPES, metavar="SHAPE", help=", ".join(SHAPES))
    parser.add_argument("--partitions", type=int, nargs="+", default=[1000, 10000], metavar="P")
    parser.add_argument("--limits", type=float, nargs="+", default=[5.0, 20.0], metavar="S", help="one per size")
    parser.add_argument("--iterations", type=int, nargs="+", default=[3, 2], metavar="N", help="one per size")
    parser.add_argument("--weight", type=float, default=0.5, help="lambda (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the streams and the engine (%(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("docs/benchmarks"), help="for the results (%(default)s)")
    add_busy(parser)
    given = parser.parse_args()
    if not len(given.partitions) == len(given.limits) == len(given.iterations):
        parser.error("--limits and --iterations must have a number for each of --partitions")
    plot = plot_in(given.folder, "scaling.svg")
    before = await_quiet(given.busy)
    sizes = list(zip(given.partitions, given.limits, given.iterations, strict=True))
    runs: list[Run] = []
    with progress("", len(sizes) * len(given.shapes)) as advance:
        for partitions, limit_s, iterations in sizes:
            for shape in given.shapes:
                runs += measure(partitions, shape, limit_s, given.weight, iterations, given.seed)
                advance(f"{partitions:,} partitions, {shape}")
    draw(runs, plot)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    facts = [
        ("Streams", f"seed {given.seed}, lambda {given.weight:g}"),
        ("Peak memory", f"{memory:.2f} GiB"),
    ]
    sections = [
        "# Large and uneven groups",
        "`uniform` is the paper's stream: two partitions a consumer. The others have 10 or 100 partitions a consumer, "
        "with speeds that are log-normal or fall by Zipf's law, and that drift by a tenth from one measurement to the "
        "next. Each line is one call of `auto`; the last column is what MBFP makes of the same problem, in consumers "
        "and Rscore.",
        run_facts("bench.scaling", before, facts),
        f"![Gap of each call, by shape; the line is 1 %]({plot.name})",
        markdown_table(_HEADINGS, [run.row for run in runs], words=4),
    ]
    page = given.folder / "scaling.md"
    page.write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    print(f"{page} and {plot.name} are written")


def draw(runs: Sequence[Run], file: Path) -> None:
    """The gap of each call, by shape, in a panel for each size."""
    sizes = sorted({run.partitions for run in runs})
    shapes = list(dict.fromkeys(run.shape for run in runs))
    figure = new_figure(5.2 * len(sizes), 3.8)
    panels = figure.subplots(1, len(sizes), squeeze=False).flatten().tolist()
    for panel, size in zip(panels, sizes, strict=True):
        chosen = [run for run in runs if run.partitions == size]
        panel.plot(
            [shapes.index(run.shape) for run in chosen],
            # A logarithmic scale has no zero: what is proven to within the tolerance lies on its lower edge.
            [max(100 * run.solution.gap, 1e-4) for run in chosen],
            linestyle="",
            marker="o",
            color=TOPIC_COLOURS[0],
        )
        panel.axhline(100 * _GOAL, color=FAINT_INK, linewidth=1, linestyle="--")
        panel.set(yscale="log", title=f"{size:,} partitions, {chosen[0].limit_s:g} s")
        panel.set_xticks(range(len(shapes)), shapes, fontsize=8)
        panel.grid(visible=True, axis="y", color=GRID)
    panels[0].set_ylabel("gap to the proven bound [%]")
    save(figure, file)


if __name__ == "__main__":
    main()
