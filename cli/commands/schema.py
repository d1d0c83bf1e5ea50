"""`kcga schema`."""

import json
from enum import StrEnum
from typing import Annotated

import typer

from domain import topics
from domain.messages import json_schema


class Topic(StrEnum):
    WRITE_SPEED = topics.WRITE_SPEED
    METADATA = topics.METADATA
    DECISIONS = topics.DECISIONS


def schema(topic: Annotated[Topic, typer.Argument(help="The topic, by the name that it has by default.")]) -> None:
    print(json.dumps(json_schema(topic.value), indent=2))  # noqa: T201
