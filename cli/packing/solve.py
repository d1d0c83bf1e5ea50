"""`kcga solve`: the assignment for one snapshot, and what it takes to get there."""

import sys
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console

from app import figures
from app.errors import UsageError
from cli.packing import standard_output
from cli.packing.csv_rows import shown
from cli.packing.formats import PlanFormat
from cli.packing.own_files import require_own_files
from cli.packing.plan_output import Plan, plan_csv, plan_json
from cli.packing.plan_table import PlanTable
from cli.packing.plotting import require_plotting
from cli.packing.progress import waiting
from cli.packing.ranges import HIGHEST_WEIGHT, require, require_capacity, require_time_limit
from cli.packing.snapshot_file import Snapshot, read_current, read_snapshot
from cli.packing.text_lines import STANDARD_INPUT
from domain.assignment import Assignment
from domain.partitions import TopicPartition
from solver import ENGINES, Problem, solve


@dataclass(frozen=True, slots=True)
class SolveOptions:
    snapshot: Path
    current: Path | None
    capacity: float
    migration_weight: float
    time_limit_s: float
    engine: str
    seed: int
    output: PlanFormat
    plot: Path | None


def run(options: SolveOptions) -> None:
    """Prints the plan to standard output, and notes on what it leaves aside to standard error.

    Raises:
        UsageError: an option or a file is wrong.
        KcgaError: a plot is asked for and Matplotlib is not installed.
    """
    require_capacity(options.capacity)
    require_time_limit(options.time_limit_s)
    require("--migration-weight", options.migration_weight, 0, HIGHEST_WEIGHT)
    if options.engine not in ENGINES:
        raise UsageError(f"there is no engine {shown(options.engine)}: it must be one of {', '.join(ENGINES)}")
    if options.plot is not None:
        require_plotting(options.plot)
    require_own_files([("the snapshot", options.snapshot), ("--current", options.current)], [("--plot", options.plot)])
    snapshot = read_snapshot(options.snapshot)
    current = _current(snapshot, options)
    _note_what_is_left_aside(snapshot, current)

    problem = Problem(
        speeds=snapshot.speeds,
        capacity=options.capacity,
        current=current,
        migration_weight=options.migration_weight,
        # Where somebody counts consumers from 0, so do we.
        first_consumer=0 if 0 in current.consumers else 1,
        time_limit_s=options.time_limit_s,
        seed=options.seed,
    )
    with waiting(f"Solving for {len(problem.speeds):,} partitions ..."), standard_output.kept_for_the_result():
        solution = solve(problem, options.engine)
    plan = Plan(problem, solution, snapshot.unknown)

    match options.output:
        case PlanFormat.JSON:
            sys.stdout.write(plan_json(plan))
        case PlanFormat.CSV:
            sys.stdout.write(plan_csv(plan))
        case PlanFormat.TABLE:
            Console().print(PlanTable(plan))
    if options.plot is not None:
        from cli.packing.plan_plot import plot_plan

        title = (
            f"{figures.plural(solution.consumers, 'consumer')}, {figures.plural(len(plan.migrations), 'migration')}, "
            f"Rscore {solution.rscore:.2f} ({solution.engine}, {solution.status})"
        )
        plot_plan(plan, title, options.plot)


def _current(snapshot: Snapshot, options: SolveOptions) -> Assignment:
    if options.current is None:
        return snapshot.current or Assignment()
    if snapshot.current is not None:
        raise UsageError(f"{snapshot.name} says who reads what, and so does --current: it must be one of the two")
    if options.current == options.snapshot == STANDARD_INPUT:
        raise UsageError("the snapshot and --current are both -: standard input can be read once")
    return read_current(options.current)


def _note_what_is_left_aside(snapshot: Snapshot, current: Assignment) -> None:
    if snapshot.unknown:
        _note(
            f"{figures.plural(len(snapshot.unknown), 'partition')} of unknown speed "
            f"({_named(snapshot.unknown)}) left out of the plan: whoever reads them keeps them"
        )
    if gone := current.keys() - snapshot.speeds.keys() - snapshot.unknown:
        _note(
            f"{figures.plural(len(gone), 'partition')} with a consumer ({_named(gone)}) left out: no speed of them here"
        )


def _named(partitions: frozenset[TopicPartition] | set[TopicPartition]) -> str:
    first = ", ".join(map(str, sorted(partitions)[:3]))
    return first if len(partitions) <= 3 else f"{first}, ..."


def _note(text: str) -> None:
    typer.echo(f"kcga: {text}", err=True)
