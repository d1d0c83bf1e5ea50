"""What is said of settings that are right: the figures that follow from them."""

from pathlib import Path

from app.settings import Settings


def verdict(file: Path, settings: Settings) -> str:
    """One line."""
    controller = settings.controller
    return (
        f"{file} is right: plans fill a consumer up to {controller.packing:,.0f} of "
        f"{controller.consumer_capacity:,.0f} bytes/s, lambda is {controller.weight:.6g}, "
        f"{controller.min_consumers:,} to {controller.max_consumers:,} consumers"
    )
