"""Where consumers come from: the one interface behind which they are processes here and Deployments there."""

from dataclasses import dataclass
from typing import Protocol

from domain.assignment import ConsumerId


class FleetError(Exception):
    """A consumer could not be created or ended; says why."""


@dataclass(frozen=True, slots=True)
class Revisions:
    """What consumers begin with: their image, their template and their settings, as a digest."""

    wanted: str | None
    """What one would begin with now; None where that cannot be said just now."""
    outdated: frozenset[ConsumerId]
    """The consumers that began with another."""


class ConsumerFleet(Protocol):
    """Creates and ends consumers. Calls return at once; what became of them shows in `consumers`."""

    def consumers(self) -> frozenset[ConsumerId]:
        """The consumers that may be alive. One that is no longer among them has ended for certain."""
        ...

    def revisions(self) -> Revisions:
        """Who began with what."""
        ...

    def create(self, consumer: ConsumerId) -> None:
        """Begins to create a consumer that does not exist.

        Raises:
            FleetError: it cannot be created.
        """
        ...

    def delete(self, consumer: ConsumerId) -> None:
        """Begins to end a consumer: it is asked to leave, and killed where it does not in time."""
        ...
