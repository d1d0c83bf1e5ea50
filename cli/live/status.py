"""`kcga status`: the group as it stands, in the terminal or in JSON."""

from collections.abc import Iterator

from rich.console import Console

from cli.live.recent import Recent, recent
from cli.settings import Settings
from cli.watch.glyphs import TopicPalette
from cli.watch.screen import GroupScreen
from controller.status.board import Board
from controller.status.group_fold import GroupFold
from controller.status.group_view import GroupView
from domain.messages import ControllerClaim

HEIGHT = 10_000
"""Nothing is left out: whoever asks may scroll."""


def print_status(settings: Settings, console: Console) -> None:
    """Draws the group, and says what is not as it should be.

    Raises:
        KcgaError: the cluster does not answer.
    """
    told = recent(settings, whole_window=False)
    view = _view(settings, told)
    controller = settings.controller
    screen = GroupScreen(
        view, controller.consumer_capacity, controller.packing, TopicPalette(), group=settings.kafka.group
    )
    console.print(screen, height=HEIGHT)
    for remark in _remarks(settings, told):
        console.print(f"! {remark}", markup=False, highlight=False, soft_wrap=True)


def status_json(settings: Settings) -> str:
    """What the controller answers at `/api/state`, as far as it can be known from the topics.

    Raises:
        KcgaError: the cluster does not answer.
    """
    told = recent(settings, whole_window=False)
    board = Board(settings.kafka.group, settings.controller)
    board.recall(told.decisions)
    for speeds in told.speeds:
        board.heard(speeds)
    for report in told.reports:
        board.heard(report)
    return board.picture().model_dump_json()


def _view(settings: Settings, told: Recent) -> GroupView:
    fold = GroupFold(silent_after_s=settings.controller.heartbeat_timeout_s)
    for message in (*told.statements, *told.decisions, *told.speeds, *told.reports):
        fold.receive(message)
    fold.pass_time(told.at)
    return fold.view()


def _remarks(settings: Settings, told: Recent) -> Iterator[str]:
    topics = settings.topics
    if told.paused:
        yield "the group is paused: kcga resume ends it"
    if not told.speeds:
        yield f"there are no fresh write speeds on {topics.write_speed}: does kcga monitor run?"
    if not any(isinstance(statement, ControllerClaim) for statement in told.statements):
        yield f"no controller has claimed the group on {topics.metadata} lately: does kcga controller run?"
    elif not told.reports:
        yield f"no consumer has reported on {topics.metadata} lately: they begin, or cannot; see the controller's log"
