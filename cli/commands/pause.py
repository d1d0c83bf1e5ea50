"""`kcga pause`."""

from app.control import ask
from app.settings import load
from cli.options import SettingsFile
from domain.messages import ControlAction


def pause(settings: SettingsFile) -> None:
    print(ask(load(settings), ControlAction.PAUSE))  # noqa: T201
