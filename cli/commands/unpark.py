"""`kcga unpark`."""

from typing import Annotated

import typer

from app.control import ask, require_parked
from app.errors import KcgaError
from app.settings import load
from cli.live.recent import recent
from cli.options import SettingsFile
from domain.messages import ControlAction


def unpark(
    settings: SettingsFile,
    topic: Annotated[str, typer.Argument(help="Whose table is mended.")],
) -> None:
    """Asks for it, of a controller that has said that the topic is parked, or on trial.

    Raises:
        KcgaError: the cluster does not answer, no controller has said anything lately, or the topic is neither.
    """
    loaded = load(settings)
    with recent(loaded) as (told, _):
        claim = told.claim
    if claim is None:
        topic_of_claims = loaded.topics.metadata
        raise KcgaError(f"no controller has claimed the group on {topic_of_claims} lately: does kcga controller run?")
    require_parked(topic, (each.topic for each in claim.parked_or_on_trial))
    print(ask(loaded, ControlAction.UNPARK, topic))  # noqa: T201
