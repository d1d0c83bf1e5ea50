"""What a topic can be called, and what those that kcga's components talk through are, unless settings name others."""

import re
from dataclasses import dataclass
from typing import Final

LEGAL_NAME: Final = re.compile(r"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,249}")
"""What Kafka takes as the name of a topic, all of it."""

WRITE_SPEED = "monitor.writeSpeed"
"""From the monitor to the controller: the write speed of each partition."""

METADATA = "consumer.metadata"
"""Between the controller (reads partition 0) and the consumers (consumer N reads partition N)."""

DECISIONS = "controller.decisions"
"""From the controller to whoever wants to know: what it decided, and why."""

CONTROLLER_PARTITION = 0
"""The partition of METADATA that the controller reads."""


DEFAULT_GROUP = "kcga"
"""The group whose topics have the names above; those of others carry the group."""

_BY_DEFAULT = (WRITE_SPEED, METADATA, DECISIONS)


def of_group(topic: str, group: str) -> str:
    """What one of the three topics is called for a group, unless settings name it."""
    return topic if group == DEFAULT_GROUP else f"{topic}.{group}"


def is_kcgas(topic: str) -> bool:
    """Whether a topic is called as one of the three is for some group, unless settings name it."""
    return any(topic == name or topic.startswith(f"{name}.") for name in _BY_DEFAULT)


@dataclass(frozen=True, slots=True)
class TopicNames:
    """What the three topics of a group are called."""

    write_speed: str = WRITE_SPEED
    metadata: str = METADATA
    decisions: str = DECISIONS
