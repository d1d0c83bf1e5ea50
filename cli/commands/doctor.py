"""`kcga doctor`."""

import typer

from cli.options import SettingsFile


def doctor(settings: SettingsFile) -> None:
    # Imported only now: it loads the clients of Kafka, Spark and Kubernetes, in half a second.
    from rich.console import Console

    from app.settings import load
    from cli.doctor import examine

    if not examine(load(settings), Console()):
        raise typer.Exit(1)
