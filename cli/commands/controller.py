"""`kcga controller`."""

from app import logs
from app.components import run_controller
from cli.options import SettingsFile


def controller(settings: SettingsFile) -> None:
    logs.configure("controller")
    run_controller(settings)
