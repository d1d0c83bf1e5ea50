"""The controller's status page, health and metrics: what is told to them, and what they have to ask themselves."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from cli.control import ask
from cli.errors import KcgaError
from cli.explain.history import newest_decisions
from cli.settings import Settings
from cli.telemetry.process import process_registry
from cli.watch.lag import LagProbe
from controller.runner import Audience
from controller.status.app import AskError, make_app
from controller.status.board import Board
from controller.status.metrics import GroupMetrics
from controller.status.server import PortError, StatusServer
from domain.messages import ControlAction

log = structlog.get_logger(__name__)

LAG_EVERY_S = 2.0
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
    with server.serve(app), _looking(settings, board):
        yield board


@contextmanager
def _looking(settings: Settings, board: Board) -> Iterator[None]:
    """Finds out what nobody tells: the lag, and the decisions of controllers before this one."""
    stop = threading.Event()
    thread = threading.Thread(target=_look, args=(settings, board, stop), name="status-lag", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _look(settings: Settings, board: Board, stop: threading.Event) -> None:
    kafka = settings.kafka
    probe = LagProbe(
        AdminClient({"log_level": 0, **kafka.client, "bootstrap.servers": kafka.bootstrap_servers}), kafka.group
    )
    recalled, complaint = False, None
    while not stop.is_set():
        try:
            if not recalled:
                board.recall(reversed(newest_decisions(settings, RECALLED)))
                recalled = True
            board.measured_lag(probe.measure(board.partitions))
            complaint = None
        except (KafkaException, KcgaError) as error:
            # Once for each reason in a row.
            if str(error) != complaint:
                complaint = str(error)
                log.warning("the status page lacks lag or past decisions", reason=complaint)
        stop.wait(LAG_EVERY_S)
