"""`kcga explain`."""

from typing import Annotated

import typer

from app.decisions import find_decision, how_it_came
from app.settings import load
from cli.options import OutputFormat, SettingsFile
from domain.group_view import explanation


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
    file = load(settings)
    decision = find_decision(file, number, epoch)
    if output is OutputFormat.TEXT:
        print("\n".join(explanation.explain(decision, how_it_came(file, decision))))  # noqa: T201
    else:
        print(decision.model_dump_json())  # noqa: T201
