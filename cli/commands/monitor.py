"""`kcga monitor`."""

from app import logs
from app.components import run_monitor
from cli.options import SettingsFile


def monitor(settings: SettingsFile) -> None:
    logs.configure("monitor")
    run_monitor(settings)
