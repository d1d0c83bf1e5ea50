"""The paper's experiment, with the exact solver beside its twelve heuristics: `python -m bench.paper`.

Six streams of measurements, one for each delta, go through every engine, each of which evolves its own assignment
(section Experimentation). Writes a page, its table as CSV and the Pareto plots into a folder.
"""

import argparse
import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from dataclasses import fields as fields_of
from pathlib import Path

from app.errors import UsageError
from bench.figures import markdown_table, percent, plot_in, run_facts
from bench.quiet import LoadBefore, add_busy, await_quiet
from cli.files.stream_file import Measurement
from cli.packing.engine_spec import EngineSpec, parse_engines
from cli.packing.simulation import Answer, Simulation, Summary, summarize
from cli.plots.pareto_plot import Engine, draw_pareto
from cli.plots.plotting import new_figure, save
from cli.terminal.progress import Advance, progress
from domain.streams import paper_stream
from heuristics import HEURISTICS

CAPACITY = 100.0
_FIRST = 25
"""Iterations: a group that starts well packed has more to gain by leaving room than one that has long had it."""
PAPERS_FIGURES = Path("../shared/reference/paper_results.csv")
"""The figures of the authors' own runs, where they are at hand: `delta,algorithm,cbs,e_rscore`."""


@dataclass(frozen=True, slots=True)
class Options:
    partitions: int
    iterations: int
    deltas: list[float]
    exact: list[EngineSpec]
    time_limit: float
    seed: int
    folder: Path
    paper: Path
    busy: bool


@dataclass(frozen=True, slots=True)
class PapersFigures:
    """Of one algorithm on one stream, as the paper's authors recorded them."""

    cbs: float
    mean_rscore: float


@dataclass(frozen=True, slots=True)
class Row:
    """An engine on one stream: a line of the CSV file."""

    delta: float
    algorithm: str
    cbs: float
    """Over all engines of this run."""
    cbs_of_twelve: float | None
    """Over the twelve heuristics, as the paper's is; none for other engines."""
    mean_consumers: float
    mean_rscore: float
    mean_reassigned: float
    proven: float | None
    mean_gap: float | None
    mean_seconds: float
    longest_seconds: float
    first_consumers: float
    """The mean over the first `_FIRST` iterations, as the next."""
    first_rscore: float
    paper_cbs: float | None
    paper_mean_rscore: float | None

    @property
    def is_exact(self) -> bool:
        return self.algorithm not in HEURISTICS


def main() -> None:
    options = parse_options()
    plot = plot_in(options.folder, "paper.svg")
    specs = [*map(EngineSpec.parse, HEURISTICS), *options.exact]
    paper = read_papers_figures(options.paper)

    before = await_quiet(options.busy)
    rows: list[Row] = []
    with progress("", len(options.deltas) * len(specs) * options.iterations) as advance:
        for delta in options.deltas:
            rows += run_stream(delta, specs, paper, options, advance)
    write_csv(rows, options.folder / "paper.csv")
    draw(rows, options, plot)
    page = options.folder / "paper.md"
    page.write_text(page_of(rows, options, before, plot.name), encoding="utf-8")
    print(f"{page}, paper.csv and {plot.name} are written")


def parse_options() -> Options:
    parser = argparse.ArgumentParser(prog="python -m bench.paper", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--partitions", type=int, default=200, metavar="P", help="(%(default)s)")
    parser.add_argument("--iterations", type=int, default=500, metavar="N", help="measurements a stream (%(default)s)")
    parser.add_argument(
        "--deltas", type=float, nargs="+", default=[0, 5, 10, 15, 20, 25], metavar="DELTA", help="in percent (all six)"
    )
    parser.add_argument(
        "--exact",
        default="exact@0.05,exact@0.5,exact@1,exact@0.5/0.95,exact@1/0.98",
        metavar="ENGINES",
        help="exact engines, as in kcga simulate (%(default)s)",
    )
    parser.add_argument("--time-limit", type=float, default=1.0, metavar="S", help="of one call (%(default)s s)")
    parser.add_argument("--seed", type=int, default=1, help="of the streams and the engines (%(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("docs/benchmarks"), help="for the results (%(default)s)")
    parser.add_argument("--paper", type=Path, default=PAPERS_FIGURES, help="the authors' figures, if at hand")
    add_busy(parser)
    options = vars(parser.parse_args())
    options["deltas"] = sorted(set(options["deltas"]))
    try:
        options["exact"] = list(parse_engines(options["exact"]))
    except UsageError as error:
        parser.error(str(error))
    return Options(**options)


def read_papers_figures(file: Path) -> Mapping[tuple[float, str], PapersFigures]:
    """By delta and algorithm; nothing where there is no such file."""
    if not file.exists():
        return {}
    with file.open(encoding="utf-8", newline="") as lines:
        return {
            (float(row["delta"]), row["algorithm"]): PapersFigures(float(row["cbs"]), float(row["e_rscore"]))
            for row in csv.DictReader(lines)
        }


def run_stream(
    delta: float,
    specs: Sequence[EngineSpec],
    paper: Mapping[tuple[float, str], PapersFigures],
    options: Options,
    advance: Advance,
) -> Iterator[Row]:
    """One row for each engine, all of them on the same stream."""
    # As in the authors' recorded runs, speeds are whole percents of the capacity and never more than all of it.
    stream = paper_stream(
        options.partitions,
        options.iterations,
        delta,
        capacity=CAPACITY,
        clamp=CAPACITY,
        whole=True,
        seed=options.seed,
    )
    measurements = [Measurement(iteration, speeds) for iteration, speeds in enumerate(stream, 1)]
    simulation = Simulation(CAPACITY, options.time_limit, options.seed)
    answers: dict[str, list[Answer]] = {spec.name: [] for spec in specs}
    for spec in specs:
        for answer, _ in simulation.replay(spec, measurements):
            answers[spec.name].append(answer)
            advance(f"delta {delta:g}, {spec.name}")
    of_twelve = {summary.algorithm: summary for summary in summarize({name: answers[name] for name in HEURISTICS})}
    first = summarize({name: given[:_FIRST] for name, given in answers.items()})
    for summary, early in zip(summarize(answers), first, strict=True):
        name = summary.algorithm
        yield row_of(delta, summary, early, of_twelve.get(name), paper.get((delta, name)))


def row_of(
    delta: float, summary: Summary, early: Summary, of_twelve: Summary | None, paper: PapersFigures | None
) -> Row:
    return Row(
        delta=delta,
        algorithm=summary.algorithm,
        cbs=summary.cbs,
        cbs_of_twelve=None if of_twelve is None else of_twelve.cbs,
        mean_consumers=summary.mean_consumers,
        mean_rscore=summary.mean_rscore,
        mean_reassigned=summary.mean_reassigned,
        proven=summary.proven,
        mean_gap=summary.mean_gap,
        mean_seconds=summary.mean_seconds,
        longest_seconds=summary.longest_seconds,
        first_consumers=early.mean_consumers,
        first_rscore=early.mean_rscore,
        paper_cbs=None if paper is None else paper.cbs,
        paper_mean_rscore=None if paper is None else paper.mean_rscore,
    )


def write_csv(rows: Sequence[Row], file: Path) -> None:
    with file.open("w", encoding="utf-8", newline="") as lines:
        table = csv.writer(lines, lineterminator="\n")
        table.writerow(field.name for field in fields_of(Row))
        table.writerows(astuple(row) for row in rows)


def draw(rows: Sequence[Row], options: Options, file: Path) -> None:
    """A Pareto plot for each delta, side by side."""
    across = min(3, len(options.deltas))
    down = -(-len(options.deltas) // across)
    figure = new_figure(6.4 * across, 4.9 * down)
    panels = figure.subplots(down, across, squeeze=False).flatten().tolist()
    for panel, delta in zip(panels, options.deltas, strict=False):
        engines = [Engine(row.algorithm, row.cbs, row.mean_rscore, row.is_exact) for row in rows if row.delta == delta]
        draw_pareto(panel, engines, f"delta {delta:g} %")
    for empty in panels[len(options.deltas) :]:
        empty.set_axis_off()
    save(figure, file)


def page_of(rows: Sequence[Row], options: Options, before: LoadBefore, plot: str) -> str:
    by_key = {(row.algorithm, row.delta): row for row in rows}
    names = list(dict.fromkeys(row.algorithm for row in rows))
    exact = [name for name in names if name not in HEURISTICS]
    deltas = options.deltas
    headings = ["engine", *(f"delta {delta:g}" for delta in deltas)]

    def table(chosen: Sequence[str], cell: Callable[[Row], str]) -> str:
        return markdown_table(headings, ([name, *(cell(by_key[name, delta]) for delta in deltas)] for name in chosen))

    facts = [
        (
            "Streams",
            f"{options.partitions} partitions, {options.iterations} measurements, speeds in whole percents of the "
            f"capacity and never more than that, seed {options.seed}",
        ),
        ("Time limit", f"{options.time_limit:g} s a call of the exact solver, model building included"),
    ]
    has_paper = any(row.paper_cbs is not None for row in rows)
    beside = "; in brackets, the paper's" if has_paper else ""
    sections = [
        "# The paper's experiment",
        "Each stream goes through the paper's twelve heuristics and through the exact solver at several weights of "
        "migration (`exact@LAMBDA`, with lambda in consumers per unit of Rscore; `exact@LAMBDA/SHARE` gives consumers "
        "partitions only up to that share of the capacity, while they keep what they have up to all of it). Every "
        "engine evolves its own assignment. The *cardinal bin score* (CBS) says how many more consumers an engine has "
        "than the one with the fewest, in the mean; the *Rscore*, how much write speed migrates in one iteration, in "
        "consumers. Less is better in both.",
        run_facts("bench.paper", before, facts),
        f"![Pareto plots]({plot})",
        "## All engines",
        "CBS over all engines, in percent:",
        table(names, lambda row: percent(row.cbs)),
        "Mean Rscore:",
        table(names, lambda row: f"{row.mean_rscore:.2f}"),
        "Mean consumers:",
        table(names, lambda row: f"{row.mean_consumers:.2f}"),
        "## The twelve heuristics beside the paper",
        f"CBS over the twelve, in percent{beside}:",
        table(HEURISTICS, lambda row: beside_papers(percent(row.cbs_of_twelve), percent(row.paper_cbs))),
        f"Mean Rscore{beside}:",
        table(
            HEURISTICS,
            lambda row: beside_papers(
                f"{row.mean_rscore:.2f}", "" if row.paper_mean_rscore is None else f"{row.paper_mean_rscore:.2f}"
            ),
        ),
        "The paper's streams were not kept: these are others of the same kind. The smaller delta is, the more one "
        "stream differs from the next, and so may the figures.",
    ]
    if exact:
        sections += [
            "## What the exact solver proves",
            "Share of the iterations with a proven optimum, in percent:",
            table(exact, lambda row: percent(row.proven, 1)),
            "Mean gap to the lower bound, in percent of the objective:",
            table(exact, lambda row: percent(row.mean_gap, 3)),
            "Seconds a call, mean and longest:",
            table(exact, lambda row: f"{row.mean_seconds:.2f}, {row.longest_seconds:.2f}"),
            "## Beside MWF",
            "MWF migrates least of the twelve. Consumers and mean Rscore as shares of MWF's, over all iterations and, "
            f"in brackets, over the first {_FIRST}. Each iteration is solved for itself: lambda says what a migration "
            "may cost now, not what room saves later. So a larger lambda alone ends at about half of MWF's Rscore, "
            "however well it is proven; a little room to grow (`/SHARE`) goes beyond that for the same consumers.",
            table(exact, lambda row: beside_mwf(row, by_key["mwf", row.delta])),
        ]
    return "\n\n".join(sections) + "\n"


def beside_mwf(row: Row, mwf: Row) -> str:
    """The shares of MWF's figures, or nothing where MWF migrates next to nothing."""
    if mwf.mean_rscore < 1 or mwf.first_rscore < 1:
        return ""
    return (
        f"{row.mean_consumers / mwf.mean_consumers:.3f}, {row.mean_rscore / mwf.mean_rscore:.2f} "
        f"({row.first_consumers / mwf.first_consumers:.3f}, {row.first_rscore / mwf.first_rscore:.2f})"
    )


def beside_papers(ours: str, papers: str) -> str:
    return f"{ours} ({papers})" if papers else ours


if __name__ == "__main__":
    main()
