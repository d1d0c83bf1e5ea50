"""The command line: one function for each command; what they do is in the modules that they import."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from cli import logs
from cli.errors import KcgaError

app = typer.Typer(
    name="kcga",
    help="Kafka Consumer Group Autoscaler: the fewest consumers that keep up, and the fewest partitions moved.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

SettingsFile = Annotated[Path, typer.Option("--settings", "-s", help="The settings file (TOML).")]


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


def main() -> None:
    """Runs the command; an error that a person can do something about is one message and no traceback."""
    try:
        app()
    except KcgaError as error:
        print(f"kcga: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
