"""The command line: one function for each command; what they do is in the modules that they import."""

import gc
import json
import os
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from app.errors import KcgaError
from cli.consumer_number import consumer_number
from cli.packing.formats import FiguresFormat, PlanFormat
from domain import topics
from domain.messages import ControlAction, json_schema
from domain.printable import printable

app = typer.Typer(
    name="kcga",
    help="Kafka Consumer Group Autoscaler: the fewest consumers that keep up, and the fewest partitions moved.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class OutputFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


SettingsFile = Annotated[Path, typer.Option("--settings", "-s", help="The settings file (TOML).")]


@app.command()
def up(
    seconds: Annotated[
        float | None, typer.Option("--for", min=1, help="End by itself after so many seconds of load.")
    ] = None,
    bootstrap_servers: Annotated[
        str | None, typer.Option(help="Use these Kafka brokers (host:port) in place of one that is started.")
    ] = None,
    kafka_port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="The port of the Kafka broker that is started.")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Put logs, lake and settings into this folder and leave them there.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the records that are produced, and of the faults.")] = 0,
    chaos: Annotated[
        bool,
        typer.Option(
            "--chaos",
            help="Kill or freeze controller, monitor, a consumer, Spark or the broker, one after the other.",
        ),
    ] = False,
    chaos_every: Annotated[float, typer.Option(min=5, help="Seconds from one fault to the next.")] = 10,
    output: Annotated[OutputFormat, typer.Option(help="How the closing summary is printed.")] = OutputFormat.TEXT,
) -> None:
    """Start everything on this machine, under a load that rises and falls, and prove that nothing was lost.

    A component that ends without being asked to is begun anew, as Kubernetes would.
    """
    from app.interrupts import Interrupts
    from cli.up import UpOptions, up
    from cli.watch.summary_table import SummaryTable

    console = Console(stderr=True)
    interrupts = Interrupts()
    with interrupts.handled():
        try:
            options = UpOptions(seconds, bootstrap_servers, kafka_port, keep, seed, chaos_every if chaos else None)
            summary = up(options, console, interrupts)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
    console.print(SummaryTable(summary))
    if output is OutputFormat.JSON:
        print(summary.model_dump_json())  # noqa: T201
    if not summary.ok:
        raise typer.Exit(1)


@app.command()
def monitor(settings: SettingsFile) -> None:
    """Measure the write speed of each partition and publish it."""
    from app import logs
    from app.components import run_monitor

    logs.configure("monitor")
    run_monitor(settings)


@app.command()
def controller(settings: SettingsFile) -> None:
    """Decide how many consumers there are and which partition each reads, and carry it out."""
    from app import logs
    from app.components import run_controller

    logs.configure("controller")
    run_controller(settings)


@app.command()
def consumer(
    number: Annotated[
        int,
        typer.Argument(
            parser=consumer_number,
            metavar="NUMBER|NAME",
            help="Which consumer this is, its partition of consumer.metadata; or the name of its Deployment.",
        ),
    ],
    settings: SettingsFile,
) -> None:
    """Read the partitions that the controller assigns and write them to the lake."""
    from app import logs
    from app.components import run_consumer

    logs.configure(f"consumer {number}")
    run_consumer(number, settings)


@app.command()
def validate(settings: SettingsFile) -> None:
    """Check the settings file without starting anything; every fault is named."""
    from app.settings import load
    from cli.validate import verdict

    print(verdict(settings, load(settings)))  # noqa: T201


class RightsFormat(StrEnum):
    COMMANDS = "commands"
    TABLE = "table"
    JSON = "json"


@app.command()
def acls(
    settings: SettingsFile,
    prefix: Annotated[
        str, typer.Option(help="What the users' names begin with; the component's name follows.")
    ] = "kcga-",
    output: Annotated[
        RightsFormat, typer.Option(help="commands: calls of kafka-acls.sh; json: one object a line.")
    ] = RightsFormat.COMMANDS,
) -> None:
    """Print the least rights that each component's user needs on the cluster. Nothing is granted."""
    from app.settings import load
    from cli import acls

    loaded = load(settings)
    wanted = acls.rights(loaded)
    if output is RightsFormat.TABLE:
        Console().print(acls.table(wanted, prefix))
        return
    as_json = output is RightsFormat.JSON
    for line in acls.json_lines(wanted, prefix) if as_json else acls.commands(wanted, loaded, prefix):
        print(line)  # noqa: T201


@app.command()
def explain(
    settings: SettingsFile,
    number: Annotated[
        int | None, typer.Argument(min=1, help="Which decision, by its number; the newest one unless it is given.")
    ] = None,
    epoch: Annotated[
        int | None, typer.Option(min=1, help="Of the controller that made it; the newest one's unless it is given.")
    ] = None,
    output: Annotated[OutputFormat, typer.Option(help="Words, or the record itself.")] = OutputFormat.TEXT,
) -> None:
    """Say in words what the controller decided, and why: why it scaled or did not, why each partition moved."""
    from app.decisions import find_decision
    from app.settings import load
    from domain.group_view.explanation import explain as in_words

    decision = find_decision(load(settings), number, epoch)
    print(decision.model_dump_json() if output is OutputFormat.JSON else "\n".join(in_words(decision)))  # noqa: T201


@app.command()
def status(
    settings: SettingsFile,
    output: Annotated[
        OutputFormat, typer.Option(help="A picture, or JSON as the controller's /api/state has it.")
    ] = OutputFormat.TEXT,
) -> None:
    """Show the group as it stands: who reads what, how fast it is written to, what was decided last."""
    from app.settings import load
    from cli.live.status import print_status, status_json

    if output is OutputFormat.JSON:
        print(status_json(load(settings)))  # noqa: T201
    else:
        print_status(load(settings), Console())


@app.command()
def plan(
    settings: SettingsFile,
    output: Annotated[OutputFormat, typer.Option(help="Words, or the record of the decision.")] = OutputFormat.TEXT,
) -> None:
    """Say what the controller would do if it decided now, and why: a dry run that changes nothing."""
    asked_at = time.monotonic()
    # A large group's measurements are read by the hundred thousand, and hold no cycles: looking for some takes longer.
    gc.disable()

    from app.settings import load
    from cli.live.plan import in_words, plan_now

    decision = plan_now(load(settings), asked_at)
    print(decision.model_dump_json() if output is OutputFormat.JSON else "\n".join(in_words(decision)), flush=True)  # noqa: T201
    # An engine that was left behind when its time was up may be in native code for long: nobody has to wait for it.
    os._exit(0)


@app.command()
def record(
    file: Annotated[Path, typer.Argument(help="Where to write it (.csv or .csv.gz); - is standard output.")],
    settings: SettingsFile,
    seconds: Annotated[
        float | None, typer.Option("--for", min=0, help="End by itself after so many seconds; else with Ctrl-C.")
    ] = None,
    past: Annotated[float, typer.Option(min=0, help="Begin so many seconds back, as far as the topic goes.")] = 0,
) -> None:
    """Write the speeds that the monitor publishes as a stream that kcga simulate replays."""
    from app.interrupts import stop_on_signals
    from app.settings import load
    from cli.record import RecordOptions
    from cli.record import record as record_speeds

    with stop_on_signals() as stop:
        written = record_speeds(load(settings), RecordOptions(file, past, seconds), stop)
    print(f"kcga: {written:,} measurements were recorded", file=sys.stderr)  # noqa: T201


@app.command()
def doctor(settings: SettingsFile) -> None:
    """Check everything that kcga needs here: Java, brokers, rights, topics, clocks, Spark, the lake; say what to do."""
    from app.settings import load
    from cli.doctor import examine

    if not examine(load(settings), Console()):
        raise typer.Exit(1)


@app.command()
def pause(settings: SettingsFile) -> None:
    """Have the controller move nothing any more, but for partitions that have no reader, until `kcga resume`."""
    _ask(settings, ControlAction.PAUSE)


@app.command()
def resume(settings: SettingsFile) -> None:
    """End a pause."""
    _ask(settings, ControlAction.RESUME)


@app.command()
def replan(settings: SettingsFile) -> None:
    """Have the controller make a plan now, and carry it out if it is better, whatever would hold it back."""
    _ask(settings, ControlAction.REPLAN)


def _ask(file: Path, action: ControlAction) -> None:
    from app.control import ask
    from app.settings import load

    print(ask(load(file), action))  # noqa: T201


@app.command()
def deploy(
    settings: SettingsFile,
    overlay: Annotated[str, typer.Option(help="local, gke, or a folder with a kustomization of one's own.")] = "local",
    image: Annotated[str | None, typer.Option(help="The image of all components, in place of the overlay's.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be applied, and apply nothing.")] = False,
) -> None:
    """Bring a group to the Kubernetes cluster that kubectl is set to: controllers, monitor, and all they need."""
    from cli.deploy import apply, render

    objects = render(settings, overlay, image)
    print(objects if dry_run else apply(objects), end="")  # noqa: T201


lake = typer.Typer(name="lake", help="Look after the tables that consumers write.", no_args_is_help=True)
app.add_typer(lake)

Topics = Annotated[
    list[str] | None, typer.Argument(help="Topics; without any, those on the cluster that monitor.topics names.")
]


@lake.command("verify")
def lake_verify(
    settings: SettingsFile,
    topic: Topics = None,
    output: Annotated[
        OutputFormat, typer.Option(help="json: one object a line for each partition.")
    ] = OutputFormat.TEXT,
    allow_gaps: Annotated[
        bool, typer.Option("--allow-gaps", help="Offsets without a row are no fault (transactions, compaction).")
    ] = False,
) -> None:
    """Count each partition's rows, and find those that are doubled or missing."""
    from cli.lake import verify

    as_json = output is OutputFormat.JSON
    verify(settings, topic or (), Console(), as_json=as_json, allow_gaps=allow_gaps)


@lake.command("optimize")
def lake_optimize(settings: SettingsFile, topic: Topics = None) -> None:
    """Rewrite many small files as few large ones; consumers may go on writing."""
    from cli.lake import optimize

    optimize(settings, topic or (), Console())


@lake.command("vacuum")
def lake_vacuum(
    settings: SettingsFile,
    topic: Topics = None,
    retain_hours: Annotated[int, typer.Option(min=168, help="Keep what was needed within so many hours.")] = 168,
) -> None:
    """Delete the files that no table needs any more; consumers may go on writing."""
    from cli.lake import vacuum

    vacuum(settings, topic or (), Console(), retain_hours)


class Topic(StrEnum):
    WRITE_SPEED = topics.WRITE_SPEED
    METADATA = topics.METADATA
    DECISIONS = topics.DECISIONS


Capacity = Annotated[float, typer.Option(help="What a consumer reads at most, in the unit of the speeds.")]
TimeLimit = Annotated[float, typer.Option(help="Seconds that one call of an exact engine may take.")]
Seed = Annotated[
    int, typer.Option(min=0, max=2**31 - 1, help="Of whatever is drawn at random: same seed, same result.")
]
Plot = Annotated[Path | None, typer.Option(help="Also draw it into this file (.png, .svg or .pdf).")]


@app.command()
def solve(
    snapshot: Annotated[
        Path,
        typer.Argument(
            help="Write speeds: JSON as on monitor.writeSpeed, or CSV topic,partition,speed[,consumer]; - is standard "
            "input."
        ),
    ],
    current: Annotated[
        Path | None,
        typer.Option(help="Who reads what now: CSV topic,partition,consumer, or what this command printed before."),
    ] = None,
    capacity: Capacity = 2_300_000,
    migration_weight: Annotated[
        float, typer.Option(help="Lambda: how many consumers it is worth to move one consumer's capacity less.")
    ] = 0.5,
    time_limit: TimeLimit = 1.0,
    engine: Annotated[str, typer.Option(help="auto, cp-sat, arc-flow, or a heuristic such as mbfp.")] = "auto",
    seed: Seed = 0,
    output: Annotated[PlanFormat, typer.Option(help="How the plan is printed.")] = PlanFormat.TABLE,
    plot: Plot = None,
) -> None:
    """Find the fewest consumers and the least migration for one snapshot of write speeds."""
    from cli.packing.solve import SolveOptions, run

    run(SolveOptions(snapshot, current, capacity, migration_weight, time_limit, engine, seed, output, plot))


@app.command()
def simulate(
    stream: Annotated[
        Path, typer.Argument(help="CSV iteration,topic,partition,speed, gzipped or not; - is standard input.")
    ],
    engines: Annotated[
        str,
        typer.Option(
            help="With commas; exact@LAMBDA is the exact solver with that weight of migration, exact@LAMBDA/SHARE one "
            "that fills consumers only up to that share of the capacity."
        ),
    ] = "mbfp,bfd,exact@0.5",
    capacity: Capacity = 100,
    time_limit: TimeLimit = 1.0,
    seed: Seed = 0,
    output: Annotated[FiguresFormat, typer.Option(help="How the figures are printed.")] = FiguresFormat.TABLE,
    assignments: Annotated[
        Path | None, typer.Option(help="Write CSV algorithm,iteration,topic,partition,consumer (.csv or .csv.gz).")
    ] = None,
    metrics: Annotated[
        Path | None, typer.Option(help="Write a row of figures for each iteration (.csv or .csv.gz).")
    ] = None,
    plot: Plot = None,
) -> None:
    """Replay a stream of write speeds through engines, each with its own assignment, and compare them."""
    from cli.packing.simulate import SimulateOptions, run

    run(SimulateOptions(stream, engines, capacity, time_limit, seed, output, assignments, metrics, plot))


class StartSpeeds(StrEnum):
    RANDOM = "random"
    ZERO = "zero"
    HALF = "half"
    FULL = "full"


@app.command()
def generate(
    file: Annotated[Path, typer.Argument(help="Where to write it (.csv or .csv.gz); - is standard output.")] = Path(
        "-"
    ),
    partitions: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many.")] = 200,
    iterations: Annotated[int, typer.Option(min=1, help="How many measurements.")] = 500,
    delta: Annotated[
        float, typer.Option(help="The largest change from one to the next, in percent of the capacity.")
    ] = 5,
    start: Annotated[
        StartSpeeds, typer.Option(help="The first speeds: random up to the capacity, or none, half or all of it.")
    ] = StartSpeeds.RANDOM,
    capacity: Capacity = 100,
    clamp: Annotated[bool, typer.Option("--clamp", help="No speed goes above the capacity.")] = False,
    whole: Annotated[bool, typer.Option("--whole", help="Speeds are whole percents of the capacity.")] = False,
    seed: Seed = 0,
    topic: Annotated[str, typer.Option(help="The topic of all partitions.")] = "topic",
) -> None:
    """Make up a stream of write speeds as the paper does, in CSV iteration,topic,partition,speed."""
    from cli.packing.generate import GenerateOptions, run

    run(GenerateOptions(file, partitions, iterations, delta, start.value, capacity, clamp, whole, seed, topic))


@app.command()
def schema(topic: Annotated[Topic, typer.Argument(help="The topic, by the name that it has by default.")]) -> None:
    """Print the JSON schema of the messages on a topic."""
    print(json.dumps(json_schema(topic.value), indent=2))  # noqa: T201


def main() -> None:
    """Runs the command; an error that a person can do something about is one message and no traceback."""
    try:
        app()
    except KcgaError as error:
        lines = map(printable, str(error).splitlines())  # it may quote what came from anywhere
        print("kcga:", "\n".join(lines), file=sys.stderr)  # noqa: T201
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
