"""`kcga simulate`: a recorded or generated stream, replayed through one or more engines."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from rich.console import Console

from app.errors import UsageError
from cli.files.csv_output import CsvTable
from cli.files.own_files import require_own_files
from cli.files.stream_file import read_stream
from cli.files.text_lines import STANDARD_INPUT
from cli.packing.engine_spec import parse_engines
from cli.packing.simulate_table import SimulationTable, simulation_json
from cli.packing.simulation import Answer, Policy, Simulation, Summary, summarize
from cli.plots.plotting import require_plotting
from cli.ranges import require_capacity, require_time_limit
from cli.terminal import standard_output
from cli.terminal.progress import progress, waiting
from domain.assignment import Assignment
from domain.consumer_class import ConsumerClass

ASSIGNMENT_COLUMNS = ("algorithm", "iteration", "topic", "partition", "consumer")
METRIC_COLUMNS = ("algorithm", "iteration", "consumers", "rscore", "reassigned", "seconds", "status", "gap", "price")


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
    policy: Policy = Policy.ENGINES
    settings: Path | None = None
    """Of the controller."""
    classes: tuple[ConsumerClass, ...] = ()
    """Of consumers, beside the ordinary ones."""


def run(options: SimulateOptions) -> None:
    """Prints the figures of each engine to standard output.

    Raises:
        UsageError: an option or a file is wrong.
        KcgaError: a file cannot be written any further, or a plot is asked for and Matplotlib is not installed.
    """
    specs = parse_engines(options.engines)
    if options.settings is not None and options.policy is not Policy.CONTROLLER:
        raise UsageError("--settings are the controller's: they need --policy controller")
    if options.classes and options.policy is Policy.CONTROLLER:
        raise UsageError("--class is for engines: with --policy controller classes are those of --settings")
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
    classes = options.classes
    capacity, replays = options.capacity, dict[str, Iterator[tuple[Answer, Assignment]]]()
    if options.policy is Policy.CONTROLLER:
        from cli.packing.controller_replay import controller_replay

        controller = controller_replay(options.settings, options.capacity, options.time_limit_s)
        capacity, classes = controller.settings.consumer_capacity, controller.settings.classes
        replays = {options.policy.value: controller.replay(measurements)}
    else:
        simulation = Simulation(options.capacity, options.time_limit_s, options.seed, options.classes)
        replays = {spec.name: simulation.replay(spec, measurements) for spec in specs}
    with standard_output.kept_for_the_result():
        answers = _replay(replays, len(measurements), options)
    summaries = summarize(answers)
    name = "standard input" if options.stream == STANDARD_INPUT else options.stream.name
    if options.output is FiguresFormat.JSON:
        sys.stdout.write(simulation_json(summaries, capacity, options.seed))
    else:
        Console().print(SimulationTable(summaries, name, priced=bool(classes)))
    if options.plot is not None:
        _plot(summaries, {spec.name for spec in specs if not spec.is_heuristic}, name, options.plot)


def _replay(
    replays: Mapping[str, Iterator[tuple[Answer, Assignment]]], iterations: int, options: SimulateOptions
) -> dict[str, list[Answer]]:
    """The answers of each engine; its files grow with every one, so that an interrupted run leaves what it has."""
    answers: dict[str, list[Answer]] = {name: [] for name in replays}
    with ExitStack() as stack:
        assignments = options.assignments and stack.enter_context(CsvTable(options.assignments, ASSIGNMENT_COLUMNS))
        metrics = options.metrics and stack.enter_context(CsvTable(options.metrics, METRIC_COLUMNS))
        advance = stack.enter_context(progress(next(iter(replays)), len(replays) * iterations))
        for name, replay in replays.items():
            for answer, assignment in replay:
                answers[name].append(answer)
                if assignments:
                    for partition, consumer in sorted(assignment.items()):
                        assignments.write(
                            (answer.algorithm, answer.iteration, partition.topic, partition.partition, consumer)
                        )
                if metrics:
                    metrics.write(_metrics(answer))
                advance(name)
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
        answer.price,
    )


def _plot(summaries: list[Summary], exact: set[str], stream: str, file: Path) -> None:
    from cli.plots.pareto_plot import Engine, plot_pareto

    engines = [
        Engine(summary.algorithm, summary.cbs, summary.mean_rscore, is_exact=summary.algorithm in exact)
        for summary in summaries
    ]
    plot_pareto(engines, f"{stream}: {summaries[0].iterations} iterations", file)
