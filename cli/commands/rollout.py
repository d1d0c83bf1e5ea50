"""`kcga rollout`: how consumers are replaced when their image, template or settings change."""

from typing import Annotated

import typer

from app.control import ask
from app.errors import KcgaError
from app.settings import load
from cli.commands.deploy import Overlay
from cli.commands.deploy import undo as undo_deployment
from cli.live.recent import recent
from cli.options import OutputFormat, SettingsFile
from domain.group_view.rollout import rollout_sentence
from domain.messages import ControlAction, RolloutStanding


def status(
    settings: SettingsFile,
    output: Annotated[
        OutputFormat, typer.Option(help="Words, or JSON as the controller's claim has it.")
    ] = OutputFormat.TEXT,
) -> None:
    """Says it by what the controller claimed last.

    Raises:
        KcgaError: the cluster does not answer, or no controller has said anything of it lately.
    """
    loaded = load(settings)
    with recent(loaded) as (told, _):
        rollout = told.rollout
    if rollout is None:
        raise KcgaError(
            f"no controller has said on {loaded.topics.metadata} lately what consumers begin with: does kcga "
            "controller run, of a version that knows of it?"
        )
    print(rollout.model_dump_json() if output is OutputFormat.JSON else in_words(rollout))  # noqa: T201


def in_words(rollout: RolloutStanding) -> str:
    """A line for what consumers begin with, one for how far it is, and one for who is left."""
    lines = [
        f"Consumers begin with revision {rollout.revision}."
        if rollout.revision
        else "What consumers begin with is not known just now: is their template, or the settings file, being changed?",
        f"{(rollout_sentence(rollout) or 'every consumer began with it').capitalize()}.",
    ]
    if rollout.outdated:
        lines.append(f"To be replaced: {', '.join(map(str, rollout.outdated))}.")
    if rollout.failed is not None and rollout.outdated:
        lines.append(
            "The controller's log says why. kcga rollout undo goes back to what was deployed before; kcga rollout "
            "resume tries it again."
        )
    return "\n".join(lines)


def pause(settings: SettingsFile) -> None:
    print(ask(load(settings), ControlAction.PAUSE_ROLLOUT))  # noqa: T201


def resume(settings: SettingsFile) -> None:
    print(ask(load(settings), ControlAction.RESUME_ROLLOUT))  # noqa: T201


def undo(overlay: Overlay = "local") -> None:
    print(undo_deployment(overlay), end="")  # noqa: T201
