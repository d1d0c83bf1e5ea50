"""Where consumers come from: the one interface behind which they are processes here and Deployments there."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from domain.assignment import ConsumerId
from domain.consumer_class import ORDINARY


class FleetError(Exception):
    """A consumer could not be created or ended; says why."""


class Began(NamedTuple):
    """How a consumer began."""

    class_name: str
    revision: str


@dataclass(frozen=True, slots=True)
class Revisions:
    """What consumers begin with: their image, their template and their settings, as a digest."""

    wanted: str | None
    """What one would begin with now; None where that cannot be said just now."""
    outdated: frozenset[ConsumerId]
    """The consumers that began with another."""
    class_names: Mapping[ConsumerId, str] = field(default_factory=dict)
    """Of which class each consumer began."""

    @classmethod
    def of(cls, wanted: Mapping[str, str] | None, began: Mapping[ConsumerId, Began]) -> "Revisions":
        """What one of each class would begin with now, if that can be said, beside what each began with.

        Those of a class that there is not any more are outdated.
        """
        names = {consumer: each.class_name for consumer, each in began.items()}
        if wanted is None:
            return cls(None, frozenset(), names)
        outdated = (consumer for consumer, each in began.items() if each.revision != wanted.get(each.class_name))
        return cls(_together(wanted), frozenset(outdated), names)


def _together(revisions: Mapping[str, str]) -> str:
    """One for all classes; that of ordinary consumers where there are no others."""
    if len(revisions) == 1:
        return next(iter(revisions.values()))
    return hashlib.sha256(json.dumps(revisions, sort_keys=True).encode()).hexdigest()[:16]


class ConsumerFleet(Protocol):
    """Creates and ends consumers. Calls return at once; what became of them shows in `consumers`."""

    def consumers(self) -> frozenset[ConsumerId]:
        """The consumers that may be alive. One that is no longer among them has ended for certain."""
        ...

    def revisions(self) -> Revisions:
        """Who began with what."""
        ...

    def create(self, consumer: ConsumerId, class_name: str = ORDINARY) -> None:
        """Begins to create a consumer that does not exist, of this class.

        Raises:
            FleetError: it cannot be created.
        """
        ...

    def delete(self, consumer: ConsumerId) -> None:
        """Begins to end a consumer: it is asked to leave, and killed where it does not in time."""
        ...
