"""The controller's status page, health and metrics."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from typing import Literal

import structlog
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from app.control import ask
from app.decisions import newest_decisions
from app.errors import KcgaError
from app.settings import HttpSettings, Port, Settings
from app.status.app import AskError, make_app
from app.status.board import Board
from app.status.groups import ShownGroup
from app.status.metrics import GroupMetrics
from app.status.server import StatusServer
from app.telemetry.exporter import Probes, listening, probes_app
from app.telemetry.process import process_registry
from controller.runner import Audience, Audiences
from domain.messages import ControlAction

log = structlog.get_logger(__name__)

RECALLED = 100
"""So many decisions of the controllers before are shown."""


@contextmanager
def observed(settings: Settings) -> Iterator[Audience]:
    """What is to be told of everything the controller does; serves what comes of it where a port is set, and tells a
    webhook where one is.

    A port that is taken is a warning: whether the group is controlled does not depend on a page.
    """
    page = _listening(settings.http, "controller_port", "the status page")
    probes = _listening(settings.http, "probe_port", "health")
    registry = process_registry()
    with ExitStack() as serving:
        told = _hooks(settings, registry, serving)
        if page is not None or probes is not None:
            board = Board(settings.kafka.group, settings.of_controller)
            told.append(board)
            if page is not None:
                serving.enter_context(page.serve(_page(settings, board, page.stopping, registry)))
            if probes is not None:
                serving.enter_context(probes.serve(probes_app(Probes(board.alive, board.ready))))
        yield Audiences(*told)


@contextmanager
def shown_with_others(settings: Settings, stopping: Callable[[], bool]) -> Iterator[tuple[Audience, ShownGroup]]:
    """What is to be told of a group that is one of several in this process, and what shows it; `stopping`: whether open
    connections have to end."""
    registry = CollectorRegistry(auto_describe=False)
    board = Board(settings.kafka.group, settings.of_controller)
    with ExitStack() as serving:
        told = _hooks(settings, registry, serving)
        yield Audiences(board, *told), ShownGroup.of(board, _page(settings, board, stopping, registry), registry)


def _hooks(settings: Settings, registry: CollectorRegistry, serving: ExitStack) -> list[Audience]:
    """The webhook, where one is set."""
    if (url := settings.hooks.url) is None:
        return []
    from app.hooks.webhook import Webhook

    return [serving.enter_context(Webhook(url, settings.hooks, settings.kafka.group, registry))]


def _listening(http: HttpSettings, setting: Literal["controller_port", "probe_port"], what: str) -> StatusServer | None:
    port: Port | None = getattr(http, setting)
    if port is None:
        return None
    try:
        return listening(http, port, what)
    except KcgaError as error:
        log.warning(f"{what} is not served", reason=str(error), setting=f"http.{setting}")
        return None


def _page(settings: Settings, board: Board, stopping: Callable[[], bool], registry: CollectorRegistry) -> ASGIApp:
    """The status page, with the decisions of controllers before this one."""
    threading.Thread(target=copy_context().run, args=(_recall, settings, board), name="recall", daemon=True).start()
    http = settings.http
    registry.register(GroupMetrics(board, settings.kafka.group, by_partition=http.partition_series))

    def pass_on(action: ControlAction, topic: str | None) -> None:
        try:
            ask(settings, action, topic)
        except KcgaError as error:
            raise AskError(str(error)) from error

    return make_app(
        board,
        registry,
        ask=pass_on,
        token=http.token.get_secret_value() if http.token else None,
        stopping=stopping,
    )


def _recall(settings: Settings, board: Board) -> None:
    """The decisions of controllers before this one; their absence is no reason not to control."""
    try:
        board.recall(reversed(newest_decisions(settings, RECALLED)))
    except KcgaError as error:
        log.warning("the status page lacks past decisions", reason=str(error))
