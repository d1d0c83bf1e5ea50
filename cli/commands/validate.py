"""`kcga validate`: what is wrong with settings, or the figures that follow from them."""

from pathlib import Path

from app.settings import Settings, load
from cli.options import SettingsFile


def validate(settings: SettingsFile) -> None:
    print(verdict(settings, load(settings)))  # noqa: T201


def verdict(file: Path, settings: Settings) -> str:
    """One line about settings that are right."""
    controller = settings.controller
    return (
        f"{file} is right: plans fill a consumer up to {controller.packing:,.0f} of "
        f"{controller.consumer_capacity:,.0f} bytes/s, lambda is {controller.weight:.6g}, "
        f"{controller.min_consumers:,} to {controller.max_consumers:,} consumers"
    )
