"""The command line: one function for each command; what they do is in the modules that they import."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cli import logs
from cli.errors import KcgaError
from domain import topics
from domain.messages import json_schema

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
    seed: Annotated[int, typer.Option(help="Of the records that are produced.")] = 0,
    output: Annotated[OutputFormat, typer.Option(help="How the closing summary is printed.")] = OutputFormat.TEXT,
) -> None:
    """Start everything on this machine, under a load that rises and falls, and prove that nothing was lost."""
    from cli.interrupts import Interrupts
    from cli.up import UpOptions, up
    from cli.watch.summary_table import SummaryTable

    console = Console(stderr=True)
    interrupts = Interrupts()
    with interrupts.handled():
        try:
            summary = up(UpOptions(seconds, bootstrap_servers, kafka_port, keep, seed), console, interrupts)
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
    from cli.components import run_monitor

    logs.configure("monitor")
    run_monitor(settings)


@app.command()
def controller(settings: SettingsFile) -> None:
    """Decide how many consumers there are and which partition each reads, and carry it out."""
    from cli.components import run_controller

    logs.configure("controller")
    run_controller(settings)


@app.command()
def consumer(
    number: Annotated[int, typer.Argument(min=1, help="Which consumer this is: its partition of consumer.metadata.")],
    settings: SettingsFile,
) -> None:
    """Read the partitions that the controller assigns and write them to the lake."""
    from cli.components import run_consumer

    logs.configure(f"consumer {number}")
    run_consumer(number, settings)


class Topic(StrEnum):
    WRITE_SPEED = topics.WRITE_SPEED
    METADATA = topics.METADATA
    DECISIONS = topics.DECISIONS


@app.command()
def schema(topic: Annotated[Topic, typer.Argument(help="The topic, by the name that it has by default.")]) -> None:
    """Print the JSON schema of the messages on a topic."""
    print(json.dumps(json_schema(topic.value), indent=2))  # noqa: T201


def main() -> None:
    """Runs the command; an error that a person can do something about is one message and no traceback."""
    try:
        app()
    except KcgaError as error:
        print(f"kcga: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
