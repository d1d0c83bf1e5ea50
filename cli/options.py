"""The options that several commands have."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class OutputFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


SettingsFile = Annotated[Path, typer.Option("--settings", "-s", help="The settings file (TOML).")]
Capacity = Annotated[float, typer.Option(help="What a consumer reads at most, in the unit of the speeds.")]
TimeLimit = Annotated[float, typer.Option(help="Seconds that one call of an exact engine may take.")]
Seed = Annotated[
    int, typer.Option(min=0, max=2**31 - 1, help="Of whatever is drawn at random: same seed, same result.")
]
Plot = Annotated[Path | None, typer.Option(help="Also draw it into this file (.png, .svg or .pdf).")]
