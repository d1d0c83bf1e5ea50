"""`kcga sink`: programs that records go to."""

from typing import Annotated

import typer
from rich.console import Console

from app.errors import KcgaError


def check(
    command: Annotated[list[str], typer.Argument(help="The program and its arguments, behind `--`.")],
    limit_s: Annotated[float, typer.Option("--limit", min=1, max=600, help="Seconds that an answer may take.")] = 60.0,
) -> None:
    """Prints what the program did, step by step, and what it promises.

    Raises:
        KcgaError: it does not do what every sink has to.
    """
    from cli.sink_check import SinkCheck

    console = Console(highlight=False)
    for step in (steps := SinkCheck(command, limit_s)).run():
        console.print(f"{'✓' if step.ok else '✗'} {step.text}", markup=False, soft_wrap=True)
    if steps.promise is None:
        raise KcgaError(f"{command[0]} is no sink: it must do what docs/sinks.md says")
    console.print(f"It keeps each record {steps.promise}.", markup=False, soft_wrap=True)
