"""`kcga solve`: the assignment for one snapshot, and what it takes to get there."""

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import solver
from app import figures
from app.errors import UsageError
from cli.files.csv_rows import shown
from cli.files.own_files import require_own_files
from cli.files.plan_output import Plan, plan_csv, plan_json
from cli.files.snapshot_file import Present, Snapshot, read_current, read_snapshot
from cli.files.text_lines import STANDARD_INPUT
from cli.options import Capacity, Classes, Plot, Seed, TimeLimit, parse_classes
from cli.plots.plotting import require_plotting
from cli.ranges import HIGHEST_WEIGHT, require, require_capacity, require_time_limit
from cli.terminal import standard_output
from cli.terminal.plan_table import PlanTable
from cli.terminal.progress import waiting
from domain.assignment import Assignment
from domain.consumer_class import ORDINARY, ConsumerClass
from domain.partitions import TopicPartition


class PlanFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def solve(
    snapshot: Annotated[
        Path,
        typer.Argument(
            help="Write speeds: JSON as on monitor.writeSpeed, or CSV topic,partition,speed[,consumer[,class]]; - is "
            "standard input."
        ),
    ],
    current: Annotated[
        Path | None,
        typer.Option(
            help="Who reads what now: CSV topic,partition,consumer[,class], or what this command printed before."
        ),
    ] = None,
    capacity: Capacity = 2_300_000,
    classes: Classes = None,
    migration_weight: Annotated[
        float, typer.Option(help="Lambda: how many consumers it is worth to move one consumer's capacity less.")
    ] = 0.5,
    time_limit: TimeLimit = 1.0,
    engine: Annotated[str, typer.Option(help="auto, cp-sat, arc-flow, or a heuristic such as mbfp.")] = "auto",
    seed: Seed = 0,
    output: Annotated[PlanFormat, typer.Option(help="How the plan is printed.")] = PlanFormat.TABLE,
    plot: Plot = None,
) -> None:
    """Prints the plan to standard output, and notes on what it leaves aside to standard error.

    Raises:
        UsageError: an option or a file is wrong.
        KcgaError: a plot is asked for and Matplotlib is not installed.
    """
    require_capacity(capacity)
    sizes = parse_classes(classes)
    require_time_limit(time_limit)
    require("--migration-weight", migration_weight, 0, HIGHEST_WEIGHT)
    if engine not in solver.ENGINES:
        raise UsageError(f"there is no engine {shown(engine)}: it must be one of {', '.join(solver.ENGINES)}")
    if plot is not None:
        require_plotting(plot)
    require_own_files([("the snapshot", snapshot), ("--current", current)], [("--plot", plot)])
    measured = read_snapshot(snapshot)
    present = _current(measured, snapshot, current)
    assignment = present.assignment
    _require_known(present, sizes)
    _note_what_is_left_aside(measured, assignment)

    problem = solver.Problem(
        speeds=measured.speeds,
        capacity=capacity,
        current=assignment,
        migration_weight=migration_weight,
        # Where somebody counts consumers from 0, so do we.
        first_consumer=0 if 0 in assignment.consumers else 1,
        time_limit_s=time_limit,
        seed=seed,
        classes=sizes,
        class_names=present.class_names,
    )
    with waiting(f"Solving for {len(problem.speeds):,} partitions ..."), standard_output.kept_for_the_result():
        solution = solver.solve(problem, engine)
    plan = Plan(problem, solution, measured.unknown)

    match output:
        case PlanFormat.JSON:
            sys.stdout.write(plan_json(plan))
        case PlanFormat.CSV:
            sys.stdout.write(plan_csv(plan))
        case PlanFormat.TABLE:
            Console().print(PlanTable(plan))
    if plot is not None:
        from cli.plots.plan_plot import plot_plan

        title = (
            f"{figures.plural(solution.consumers, 'consumer')}, {figures.plural(len(plan.migrations), 'migration')}, "
            f"Rscore {solution.rscore:.2f} ({solution.engine}, {solution.status})"
        )
        plot_plan(plan, title, plot)


def _require_known(present: Present, classes: Sequence[ConsumerClass]) -> None:
    known = {ORDINARY, *(each.name for each in classes)}
    for consumer, name in sorted(present.class_names.items()):
        if name not in known:
            raise UsageError(
                f"consumer {consumer} is of the class {shown(name)}: --class must say what that is, or it must be one "
                f"of {', '.join(sorted(known))}"
            )


def _current(measured: Snapshot, snapshot: Path, current: Path | None) -> Present:
    if current is None:
        return measured.current or Present(Assignment())
    if measured.current is not None:
        raise UsageError(f"{measured.name} says who reads what, and so does --current: it must be one of the two")
    if current == snapshot == STANDARD_INPUT:
        raise UsageError("the snapshot and --current are both -: standard input can be read once")
    return read_current(current)


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
