"""`kcga consumer`."""

from typing import Annotated

import typer

from app import logs
from app.components import run_consumer
from cli.options import SettingsFile
from controller.kubernetes.decide.deployment import CLASS_VARIABLE
from controller.kubernetes.decide.names import consumer_of
from domain.assignment import ConsumerId
from domain.consumer_class import ORDINARY


def consumer_number(text: str) -> ConsumerId:
    """The number that is written, or that the name of a consumer's Deployment ends with: `lake-consumer-3` is 3.

    Raises:
        typer.BadParameter: it is neither.
    """
    number = consumer_of(text) or consumer_of(f"-consumer-{text}")
    if number is None:
        raise typer.BadParameter(f"{text!r} is neither a number from 1 to 999999999 nor a name like lake-consumer-3")
    return number


def consumer(
    number: Annotated[
        int,
        typer.Argument(
            parser=consumer_number,
            metavar="NUMBER|NAME",
            help="Which consumer this is, its partition of consumer.metadata; or the name of its Deployment.",
        ),
    ],
    settings: SettingsFile,
    class_name: Annotated[
        str,
        typer.Option(
            "--class",
            envvar=CLASS_VARIABLE,
            help="Of which of the settings' consumer.classes it is; the controller says.",
        ),
    ] = ORDINARY,
) -> None:
    logs.configure(f"consumer {number}")
    run_consumer(number, settings, class_name)
