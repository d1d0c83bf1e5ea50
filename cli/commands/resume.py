"""`kcga resume`."""

from app.control import ask
from app.settings import load
from cli.options import SettingsFile
from domain.messages import ControlAction


def resume(settings: SettingsFile) -> None:
    print(ask(load(settings), ControlAction.RESUME))  # noqa: T201
