"""`kcga spark`."""

from app import logs
from app.components import run_spark
from cli.options import SettingsFile


def spark(settings: SettingsFile) -> None:
    logs.configure("spark")
    run_spark(settings)
