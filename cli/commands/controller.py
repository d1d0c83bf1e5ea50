"""`kcga controller`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from app import logs
from app.errors import UsageError


def controller(
    settings: Annotated[
        list[Path],
        typer.Option(
            "--settings",
            "-s",
            help="The settings file (TOML). Several, or a folder of them: one process for all groups.",
        ),
    ],
    max_consumers: Annotated[
        int | None, typer.Option(min=1, help="Of several groups together; each has its own limit besides.")
    ] = None,
) -> None:
    files = [file for path in settings for file in _files(path)]
    if len(files) == 1 and max_consumers is not None:
        raise UsageError(f"--max-consumers is for several groups: set controller.max_consumers in {files[0]}")
    logs.configure("controller")
    if len(files) == 1:
        from app.components import run_controller

        run_controller(files[0])
    else:
        from app.groups import run_controllers

        run_controllers(files, max_consumers)


def _files(path: Path) -> Iterator[Path]:
    """The file, or all settings files in the folder."""
    if not path.is_dir():
        yield path
        return
    if not (found := sorted(path.glob("*.toml"))):
        raise UsageError(f"there is no settings file in {path}: it must have a file NAME.toml for each group")
    yield from found
