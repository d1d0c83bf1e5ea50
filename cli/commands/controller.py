"""`kcga controller`."""

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
            help="The settings file (TOML). Several, or a folder of them, which may come, change and go: "
            "one process for all groups.",
        ),
    ],
    max_consumers: Annotated[
        int | None, typer.Option(min=1, help="Of several groups together; each has its own limit besides.")
    ] = None,
) -> None:
    one_group = len(settings) == 1 and not settings[0].is_dir()
    if one_group and max_consumers is not None:
        raise UsageError(f"--max-consumers is for several groups: set controller.max_consumers in {settings[0]}")
    logs.configure("controller")
    if one_group:
        from app.components import run_controller

        run_controller(settings[0])
    else:
        from app.groups import run_controllers

        run_controllers(settings, max_consumers)
