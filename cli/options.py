"""The options that several commands have."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from app.errors import UsageError
from cli.files.csv_rows import shown
from cli.ranges import LOWEST_CAPACITY, require
from domain.consumer_class import CLASS_NAME, HIGHEST_PRICE, LOWEST_PRICE, ORDINARY, ConsumerClass
from domain.speeds import HIGHEST_SPEED


class OutputFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


def parse_classes(texts: Sequence[str] | None) -> tuple[ConsumerClass, ...]:
    """The classes that `--class` names.

    Raises:
        UsageError: one is not of the form, out of range, or there twice.
    """
    classes = tuple(map(_parse_class, texts or ()))
    names = [ORDINARY, *(each.name for each in classes)]
    for name in names:
        if names.count(name) > 1:
            why = "that is what those of --capacity are called" if name == ORDINARY else "it is there twice"
            raise UsageError(f"--class {name}: {why}; each class must have a name of its own")
    return classes


def _parse_class(text: str) -> ConsumerClass:
    name, is_, rest = text.partition("=")
    capacity, per, price = rest.partition(":")
    if not (is_ and per and CLASS_NAME.fullmatch(name)):
        right = "NAME=CAPACITY:PRICE, such as large=4_000_000:3.5, its name of lower case letters, digits and -"
        raise UsageError(f"--class is {shown(text)}: it must be {right}")
    figures = []
    for what, figure, lowest, highest in (
        ("capacity", capacity, LOWEST_CAPACITY, HIGHEST_SPEED),
        ("price", price, LOWEST_PRICE, HIGHEST_PRICE),
    ):
        try:
            value = float(figure)
        except ValueError:
            raise UsageError(f"--class {name}: its {what} is {shown(figure)}: it must be a number") from None
        figures.append(require(f"the {what} of --class {name}", value, lowest, highest))
    return ConsumerClass(name, *figures)


SettingsFile = Annotated[Path, typer.Option("--settings", "-s", help="The settings file (TOML).")]
Capacity = Annotated[float, typer.Option(help="What a consumer reads at most, in the unit of the speeds.")]
Classes = Annotated[
    list[str] | None,
    typer.Option(
        "--class",
        metavar="NAME=CAPACITY:PRICE",
        help="Consumers of another size: what one reads at most, and what it costs, where one of --capacity costs 1. "
        "Can be given several times.",
    ),
]
TimeLimit = Annotated[float, typer.Option(help="Seconds that one call of an exact engine may take.")]
Seed = Annotated[
    int, typer.Option(min=0, max=2**31 - 1, help="Of whatever is drawn at random: same seed, same result.")
]
Plot = Annotated[Path | None, typer.Option(help="Also draw it into this file (.png, .svg or .pdf).")]
