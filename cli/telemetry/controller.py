"""The controller's status page, health and metrics."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from cli.control import ask
from cli.errors import KcgaError
from cli.explain.history import newest_decisions
from cli.settings import Settings
from cli.telemetry.process import process_registry
from controller.runner import Audience
from controller.status.app import AskError, make_app
from controller.status.board import Board
from controller.status.metrics import GroupMetrics
from controller.status.server import PortError, StatusServer
from domain.messages import ControlAction

log = structlog.get_logger(__name__)

RECALLED = 100
"""So many decisions of the controllers before are shown."""


@contextmanager
def observed(settings: Settings) -> Iterator[Audience]:
    """What is to be told of everything the controller does; serves what comes of it, where a port is set.

    A port that is taken is a warning: whether the group is controlled does not depend on a page.
    """
    http = settings.http
    if http.controller_port is None:
        yield Audience()
        return
    try:
        server = StatusServer(http.host, http.controller_port)
    except PortError as error:
        log.warning("the status page is not served", reason=str(error), setting="http.controller_port")
        yield Audience()
        return
    board = Board(settings.kafka.group, settings.controller)
    registry = process_registry()
    registry.register(GroupMetrics(board, settings.kafka.group, by_partition=http.partition_series))

    def pass_on(action: ControlAction) -> None:
        try:
            ask(settings, action)
        except KcgaError as error:
            raise AskError(str(error)) from error

    app = make_app(
        board,
        registry,
        ask=pass_on,
        token=http.token.get_secret_value() if http.token else None,
        stopping=server.stopping,
    )
    threading.Thread(target=_recall, args=(settings, board), name="recall", daemon=True).start()
    with server.serve(app):
        yield board


def _recall(settings: Settings, board: Board) -> None:
    """The decisions of controllers before this one; their absence is no reason not to control."""
    try:
        board.recall(reversed(newest_decisions(settings, RECALLED)))
    except KcgaError as error:
        log.warning("the status page lacks past decisions", reason=str(error))
