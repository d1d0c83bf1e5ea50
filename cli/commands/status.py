"""`kcga status`: the group as it stands, in the terminal or in JSON."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.console import Console

from app.settings import Settings, load
from app.status.board import Board
from cli.live.recent import Came, Recent, recent
from cli.options import OutputFormat, SettingsFile
from cli.terminal.glyphs import TopicPalette
from cli.terminal.screen import GroupScreen
from controller.decide.creation_limit import limit_sentence
from domain.group_view.fold import GroupFold, GroupMessage
from domain.group_view.parked import parked_sentence
from domain.group_view.rollout import rollout_sentence
from domain.group_view.sources import sources_sentence
from domain.group_view.view import GroupView
from domain.messages import ControllerClaim, WriteSpeedReport

HEIGHT = 10_000
"""Nothing is left out: whoever asks may scroll."""


def status(
    settings: SettingsFile,
    output: Annotated[
        OutputFormat, typer.Option(help="A picture, or JSON as the controller's /api/state has it.")
    ] = OutputFormat.TEXT,
) -> None:
    if output is OutputFormat.JSON:
        print(status_json(load(settings)))  # noqa: T201
    else:
        print_status(load(settings), Console())


def print_status(settings: Settings, console: Console) -> None:
    """Draws the group, and says what is not as it should be.

    Raises:
        KcgaError: the cluster does not answer.
    """
    with recent(settings) as (told, measured):
        speeds = list(measured)
    view = _view(settings, speeds, told)
    controller = settings.of_controller.as_decided(told.decisions[-1].said if told.decisions else None)
    screen = GroupScreen(
        view,
        controller.consumer_capacity,
        controller.packing,
        TopicPalette(),
        group=settings.kafka.group,
        classes=controller.classes,
    )
    console.print(screen, height=HEIGHT)
    for remark in _remarks(settings, speeds, told):
        console.print(f"! {remark}", markup=False, highlight=False, soft_wrap=True)


def status_json(settings: Settings) -> str:
    """What the controller answers at `/api/state`, as far as it can be known from the topics.

    Raises:
        KcgaError: the cluster does not answer.
    """
    board = Board(settings.kafka.group, settings.of_controller)
    with recent(settings) as (told, measured):
        board.recall(decision for _, decision in told.decisions)
        for speeds in measured:
            board.heard_before(*speeds)
    for came in (*told.statements, *told.reports):
        board.heard_before(*came)
    return board.picture().model_dump_json()


def _view(settings: Settings, speeds: Sequence[Came[WriteSpeedReport]], told: Recent) -> GroupView:
    fold = GroupFold(silent_after_s=settings.controller.heartbeat_timeout_s)
    came: list[tuple[float, GroupMessage]] = [*told.statements, *told.decisions, *speeds, *told.reports]
    for at, message in came:
        fold.receive(message, at)
    fold.pass_time(told.at)
    return fold.view()


def _remarks(settings: Settings, speeds: Sequence[Came[WriteSpeedReport]], told: Recent) -> Iterator[str]:
    topics = settings.topics
    if told.paused:
        yield "the group is paused: kcga resume ends it"
    if (claim := told.claim) is not None:
        for parked in claim.parked:
            sentence = parked_sentence(parked, claim.sent_at)
            yield f"{sentence}; kcga unpark {parked.topic} has it tried at once"
    if (rollout := rollout_sentence(told.rollout)) is not None:
        yield f"{rollout}; see kcga rollout"
    if (limit := told.creation_limit) is not None:
        yield f"{limit_sentence(limit, told.at)}; see the controller's log"
    if speeds and (sources := sources_sentence(speeds[-1].said.speeds.sources)) is not None:
        yield sources
    if not speeds:
        yield f"there are no fresh write speeds on {topics.write_speed}: does kcga monitor run?"
    if not any(isinstance(statement, ControllerClaim) for _, statement in told.statements):
        yield f"no controller has claimed the group on {topics.metadata} lately: does kcga controller run?"
    elif not told.reports:
        yield f"no consumer has reported on {topics.metadata} lately: they begin, or cannot; see the controller's log"
