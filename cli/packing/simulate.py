"""`kcga simulate`: a recorded or generated stream, replayed through one or more engines."""

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from rich.console import Console

from cli.files.csv_output import CsvTable
from cli.files.own_files import require_own_files
from cli.files.stream_file import Measurement, read_stream
from cli.files.text_lines import STANDARD_INPUT
from cli.packing.engine_spec import EngineSpec, parse_engines
from cli.packing.simulate_table import SimulationTable, simulation_json
from cli.packing.simulation import Answer, Simulation, Summary, summarize
from cli.plots.plotting import require_plotting
from cli.ranges import require_capacity, require_time_limit
from cli.terminal import standard_output
from cli.terminal.progress import progress, waiting

ASSIGNMENT_COLUMNS = ("algorithm", "iteration", "topic", "partition", "consumer")
METRIC_COLUMNS = ("algorithm", "iteration", "consumers", "rscore", "reassigned", "seconds", "status", "gap")


class FiguresFormat(StrEnum):
    TABLE = "table"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    stream: Path
    engines: str
    capacity: float
    time_limit_s: float
    seed: int
    output: FiguresFormat
    assignments: Path | None
    metrics: Path | None
    plot: Path | None


def run(options: SimulateOptions) -> None:
    """Prints the figures of each engine to standard output.

    Raises:
        UsageError: an option or a file is wrong.
        KcgaError: a file cannot be written any further, or a plot is asked for and Matplotlib is not installed.
    """
    specs = parse_engines(options.engines)
    require_capacity(options.capacity)
    require_time_limit(options.time_limit_s)
    if options.plot is not None:
        require_plotting(options.plot)
    require_own_files(
        [("the stream", options.stream)],
        [("--assignments", options.assignments), ("--metrics", options.metrics), ("--plot", options.plot)],
    )
    with waiting(f"Reading {options.stream} ..."):
        measurements = read_stream(options.stream)
    simulation = Simulation(options.capacity, options.time_limit_s, options.seed)
    with standard_output.kept_for_the_result():
        answers = _replay(simulation, specs, measurements, options)
    summaries = summarize(answers)
    name = "standard input" if options.stream == STANDARD_INPUT else options.stream.name
    if options.output is FiguresFormat.JSON:
        sys.stdout.write(simulation_json(summaries, options.capacity, options.seed))
    else:
        Console().print(SimulationTable(summaries, name))
    if options.plot is not None:
        _plot(summaries, specs, name, options.plot)


def _replay(
    simulation: Simulation, specs: tuple[EngineSpec, ...], measurements: list[Measurement], options: SimulateOptions
) -> dict[str, list[Answer]]:
    """The answers of each engine; its files grow with every one, so that an interrupted run leaves what it has."""
    answers: dict[str, list[Answer]] = {spec.name: [] for spec in specs}
    with ExitStack() as stack:
        assignments = options.assignments and stack.enter_context(CsvTable(options.assignments, ASSIGNMENT_COLUMNS))
        metrics = options.metrics and stack.enter_context(CsvTable(options.metrics, METRIC_COLUMNS))
        advance = stack.enter_context(progress(specs[0].name, len(specs) * len(measurements)))
        for spec in specs:
            for answer, assignment in simulation.replay(spec, measurements):
                answers[spec.name].append(answer)
                if assignments:
                    for partition, consumer in sorted(assignment.items()):
                        assignments.write(
                            (answer.algorithm, answer.iteration, partition.topic, partition.partition, consumer)
                        )
                if metrics:
                    metrics.write(_metrics(answer))
                advance(spec.name)
    return answers


def _metrics(answer: Answer) -> tuple[object, ...]:
    return (
        answer.algorithm,
        answer.iteration,
        answer.consumers,
        answer.rscore,
        answer.reassigned,
        f"{answer.seconds:.6f}",
        answer.status.value,
        "" if answer.gap is None else answer.gap,
    )


def _plot(summaries: list[Summary], specs: tuple[EngineSpec, ...], stream: str, file: Path) -> None:
    from cli.plots.pareto_plot import Engine, plot_pareto

    engines = [
        Engine(summary.algorithm, summary.cbs, summary.mean_rscore, is_exact=not spec.is_heuristic)
        for summary, spec in zip(summaries, specs, strict=True)
    ]
    plot_pareto(engines, f"{stream}: {summaries[0].iterations} iterations", file)
