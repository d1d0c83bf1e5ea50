"""The JSON schemas of the messages, for those who read or write kcga's topics with programs of their own."""

from typing import Any

from pydantic import TypeAdapter

from domain import topics
from domain.messages.decisions import Decision
from domain.messages.metadata import ConsumerCommand, ConsumerReport, ControllerClaim, ControlRequest
from domain.messages.write_speed import WriteSpeedReport

_MESSAGES: dict[str, TypeAdapter[Any]] = {
    topics.WRITE_SPEED: TypeAdapter(WriteSpeedReport),
    topics.METADATA: TypeAdapter(ConsumerCommand | ConsumerReport | ControllerClaim | ControlRequest),
    topics.DECISIONS: TypeAdapter(Decision),
}


def json_schema(topic: str) -> dict[str, Any]:
    """The schema of the messages on a topic, by the name that it has by default (`domain.topics`)."""
    return {"title": f"Messages on {topic}", **_MESSAGES[topic].json_schema()}
