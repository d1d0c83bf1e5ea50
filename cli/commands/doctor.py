"""`kcga doctor`."""

import typer
from rich.console import Console

from app.settings import load
from cli.doctor import examine
from cli.options import SettingsFile


def doctor(settings: SettingsFile) -> None:
    if not examine(load(settings), Console()):
        raise typer.Exit(1)
