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


@dataclass(frozen=True, slots=True)
class TopicNames:
    """What the three topics of a group are called."""

    write_speed: str = WRITE_SPEED
    metadata: str = METADATA
    decisions: str = DECISIONS
