"""How soon each engine proves its answer, and how far it is from a proof: `python -m bench.engines`.

Streams of the paper's kind, with speeds that are real numbers. The group has the assignment that MBFP gives it for the
first measurement; from then on it follows the plan of `auto`, so that every engine is given the same problems, in the
state that a controller would have brought about. Another group follows MBFP all along, to compare by.

`cbc` and `highs` are the paper's model as it is printed, on those solvers; `parts` and `neighbourhoods` are the phases
of `auto` for large groups, each by itself. The gap of a plan is the one to the best bound that any engine has proven.
"""

import argparse
import resource
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from time import perf_counter

from bench.figures import markdown_table, plot_in, run_facts
from bench.oracle import Answer, by_cbc, by_highs
from bench.quiet import LoadBefore, add_busy, await_quiet
from cli.plots.plotting import FAINT_INK, GRID, TOPIC_COLOURS, new_figure, save
from cli.terminal.progress import progress
from domain.assignment import Assignment
from domain.streams import paper_stream
from heuristics import HEURISTICS
from solver import Problem, Status, solve
from solver.deadline import Deadline
from solver.incumbent import Incumbent
from solver.search.portfolio import Portfolio
from solver.search.starts import offer_heuristics

CAPACITY = 100.0
BY_ITSELF = "mbfp by itself"
LITERAL: dict[str, Callable[[Problem], Answer]] = {"cbc": by_cbc, "highs": by_highs}
LARGEST = {"cbc": 32, "highs": 32, "cp-sat": 200, "arc-flow": 1000, "parts": 1000, "neighbourhoods": 1000}
"""The most partitions that an engine is tried on: the models of the others cannot be built in time for more."""
SMALLEST = {"parts": 1000, "neighbourhoods": 1000}
"""The fewest: they are for large groups."""
PHASES = {"parts": Portfolio().improve_by_parts, "neighbourhoods": Portfolio().improve_by_neighbourhoods}
ALL = ("auto", "arc-flow", "cp-sat", *LITERAL, *PHASES, "mbfp", "mwf", "bfd")
_HEADINGS = (
    "partitions, delta",
    "engine",
    "limit [s]",
    "proven",
    "mean gap [%]",
    "largest gap [%]",
    "median [s]",
    "longest [s]",
    "consumers",
    "Rscore",
)


@dataclass(frozen=True)
class Run:
    """One call of an engine."""

    proven: bool
    objective: float | None
    """None where it found no plan."""
    seconds: float
    """Wall time."""
    bound: float = 0.0
    consumers: int | None = None
    rscore: float | None = None


@dataclass(frozen=True)
class Case:
    """An engine on all problems of a stream."""

    partitions: int
    delta: float
    engine: str
    limit_s: float
    runs: Sequence[Run]
    bounds: Sequence[float]
    """For each run, the best bound of its problem that any engine has proven."""

    @property
    def gaps(self) -> list[float]:
        """Of the plans that were found, as shares of their objectives."""
        pairs = zip(self.runs, self.bounds, strict=True)
        return [max(0.0, 1 - bound / run.objective) for run, bound in pairs if run.objective]

    def row(self) -> tuple[object, ...]:
        seconds = [run.seconds for run in self.runs]
        consumers = [run.consumers for run in self.runs if run.consumers is not None]
        rscores = [run.rscore for run in self.runs if run.rscore is not None]
        found = f" (of {len(self.gaps)} plans)" if len(self.gaps) < len(self.runs) else ""
        return (
            f"{self.partitions:,}, {self.delta:g}",
            self.engine,
            f"{self.limit_s:g}",
            ""
            if self.engine in (*HEURISTICS, BY_ITSELF)
            else f"{sum(run.proven for run in self.runs)}/{len(self.runs)}",
            f"{100 * fmean(self.gaps):.4f}{found}" if self.gaps else "" if self.engine == BY_ITSELF else "no plan",
            f"{100 * max(self.gaps):.4f}" if self.gaps else "",
            f"{median(seconds):.3f}",
            f"{max(seconds):.3f}",
            f"{fmean(consumers):.1f}" if consumers else "",
            f"{fmean(rscores):.1f}" if rscores else "",
        )


def run(problem: Problem, engine: str) -> tuple[Run, Assignment | None]:
    """One call, and the plan where the engine says which."""
    began = perf_counter()
    if engine in LITERAL:
        answer = LITERAL[engine](problem)
        return Run(answer.proven, answer.objective, perf_counter() - began), None
    if engine in PHASES:
        incumbent, deadline = Incumbent(problem), Deadline.after(problem.time_limit_s)
        offer_heuristics(problem, incumbent, deadline)
        PHASES[engine](problem, incumbent, deadline)
        seconds, best = perf_counter() - began, incumbent.best
        assert best is not None, "a stream of the paper's kind has a plan"
        figures = best.figures
        found = Run(False, figures.objective, seconds, incumbent.bound, figures.consumers, figures.rscore)
        return found, best.assignment
    solution = solve(problem, engine)
    seconds, proven = perf_counter() - began, solution.status is Status.OPTIMAL
    found = Run(proven, solution.objective, seconds, solution.lower_bound, solution.consumers, solution.rscore)
    return found, solution.assignment


def measure(
    partitions: int, delta: float, weight: float, engines: Sequence[str], limit_s: float, iterations: int, seed: int
) -> Iterator[Case]:
    """Every engine on `iterations` problems of one stream."""
    stream = paper_stream(partitions, iterations + 1, delta, clamp=CAPACITY, seed=seed)
    first = Problem(next(stream), CAPACITY, migration_weight=weight, time_limit_s=limit_s, seed=seed)
    current = own = solve(first, "mbfp").assignment
    wanted = [engine for engine in engines if _is_for(engine, partitions)]
    runs: dict[str, list[Run]] = {engine: [] for engine in (*wanted, BY_ITSELF)}
    bounds = []
    for speeds in stream:
        problem = replace(first, speeds=speeds, current=current)
        for engine in wanted:
            found, plan = run(problem, engine)
            runs[engine].append(found)
            if engine == "auto" and plan is not None:
                current = plan
        bounds.append(max(runs[engine][-1].bound for engine in wanted))
        # Its group is in another state: what its plan costs there says nothing of the problem of the others.
        compared, plan = run(replace(problem, current=own), "mbfp")
        runs[BY_ITSELF].append(replace(compared, objective=None))
        own = own if plan is None else plan
    for engine, each in runs.items():
        yield Case(partitions, delta, engine, limit_s, each, bounds)


def _is_for(engine: str, partitions: int) -> bool:
    return SMALLEST.get(engine, 0) <= partitions <= LARGEST.get(engine, partitions)


def main() -> None:
    options = parse_options()
    plot = plot_in(options.folder, "engines.svg")
    before = await_quiet(options.busy)
    cases: list[Case] = []
    sizes = list(zip(options.partitions, options.limits, options.iterations, strict=True))
    with progress("", len(sizes) * len(options.deltas)) as advance:
        for size, limit_s, iterations in sizes:
            for delta in options.deltas:
                cases += measure(size, delta, options.weight, options.engines, limit_s, iterations, options.seed)
                advance(f"{size:,} partitions, delta {delta:g}")
    draw(cases, plot)
    page = options.folder / "engines.md"
    page.write_text(page_of(cases, options, before, plot.name), encoding="utf-8")
    print(f"{page} and {plot.name} are written")


@dataclass(frozen=True)
class Options:
    partitions: list[int]
    limits: list[float]
    iterations: list[int]
    deltas: list[float]
    weight: float
    engines: list[str]
    seed: int
    folder: Path
    busy: bool


def parse_options() -> Options:
    parser = argparse.ArgumentParser(prog="python -m bench.engines", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--partitions", type=int, nargs="+", default=[32, 200, 1000, 10000], metavar="P")
    parser.add_argument("--limits", type=float, nargs="+", metavar="S", help="seconds a call (1, 5 or 20 by size)")
    parser.add_argument("--iterations", type=int, nargs="+", metavar="N", help="of each size (6; 4 or 2 if large)")
    parser.add_argument("--deltas", type=float, nargs="+", default=[5.0, 25.0], metavar="DELTA")
    parser.add_argument("--weight", type=float, default=0.5, help="lambda (%(default)s)")
    parser.add_argument("--engines", nargs="+", choices=[*ALL, BY_ITSELF], default=ALL, metavar="NAME")
    parser.add_argument("--seed", type=int, default=1, help="of the streams and the engines (%(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("docs/benchmarks"), help="for the results (%(default)s)")
    add_busy(parser)
    given = parser.parse_args()
    sizes = given.partitions
    limits = given.limits or [1.0 if size < 1000 else 5.0 if size < 5000 else 20.0 for size in sizes]
    iterations = given.iterations or [6 if size < 1000 else 4 if size < 5000 else 2 for size in sizes]
    if len(iterations) == 1:
        iterations *= len(sizes)
    if not len(sizes) == len(limits) == len(iterations):
        parser.error("--limits and --iterations must have a number for each of --partitions")
    engines = ["auto", *(engine for engine in given.engines if engine != "auto")]
    return Options(sizes, limits, iterations, given.deltas, given.weight, engines, given.seed, given.folder, given.busy)


def draw(cases: Sequence[Case], file: Path) -> None:
    """Gap against time, a panel for each size: what is lower and further left is better."""
    sizes = sorted({case.partitions for case in cases})
    figure = new_figure(4.6 * len(sizes), 4.6)
    panels = figure.subplots(1, len(sizes), squeeze=False).flatten().tolist()
    names = list(dict.fromkeys(case.engine for case in cases if case.engine != BY_ITSELF))
    colours = dict(zip(names, [*TOPIC_COLOURS, "#c2410c", "#24292f"], strict=False))
    for panel, size in zip(panels, sizes, strict=True):
        for case in cases:
            if case.partitions == size and case.gaps:
                panel.plot(
                    [run.seconds for run in case.runs if run.objective is not None],
                    # A logarithmic scale has no zero: what is proven to within the tolerance lies on its lower edge.
                    [max(100 * gap, 1e-4) for gap in case.gaps],
                    linestyle="",
                    marker="o" if case.delta == min(other.delta for other in cases) else "^",
                    color=colours.get(case.engine, FAINT_INK),
                    label=case.engine,
                )
        panel.set(xscale="log", yscale="log", title=f"{size:,} partitions", xlabel="seconds a call")
        panel.grid(visible=True, color=GRID)
        handles, labels = panel.get_legend_handles_labels()
        panel.legend(*zip(*dict(zip(labels, zip(handles, labels, strict=True), strict=True)).values(), strict=True))
    panels[0].set_ylabel("gap to the best bound [%]")
    save(figure, file)


def page_of(cases: Sequence[Case], options: Options, before: LoadBefore, plot: str) -> str:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    facts = [
        (
            "Streams",
            f"the paper's kind, real speeds up to the capacity, seed {options.seed}, lambda {options.weight:g}",
        ),
        (
            "Problems",
            ", ".join(f"{n} of {size:,}" for n, size in zip(options.iterations, options.partitions, strict=True)),
        ),
        ("Peak memory", f"{memory:.2f} GiB, all engines in one process"),
    ]
    sections = [
        "# The engines",
        "All engines are given the same problems: the group has MBFP's assignment for the first measurement, and from "
        "then on follows the plan of `auto`. `cbc` and `highs` solve the paper's model as it is printed; `parts` and "
        "`neighbourhoods` are the phases of `auto` for large groups, each by itself. Gaps are to the best bound that "
        f"any engine has proven. `{BY_ITSELF}` is MBFP in a group of its own, which has followed it all along: that is "
        "what the consumers and the Rscore of `auto` are compared with.",
        run_facts("bench.engines", before, facts),
        f"![Gap against time; circles are delta {min(options.deltas):g}, triangles the others]({plot})",
        markdown_table(_HEADINGS, [case.row() for case in cases], words=2),
    ]
    return "\n\n".join(sections) + "\n"


if __name__ == "__main__":
    main()
