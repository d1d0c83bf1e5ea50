"""`kcga replan`."""

from app.control import ask
from app.settings import load
from cli.options import SettingsFile
from domain.messages import ControlAction


def replan(settings: SettingsFile) -> None:
    print(ask(load(settings), ControlAction.REPLAN))  # noqa: T201
