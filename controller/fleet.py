"""Where consumers come from: the one interface behind which they are processes here and Deployments there."""

from typing import Protocol

from domain.assignment import ConsumerId


class FleetError(Exception):
    """A consumer could not be created or ended; says why."""


class ConsumerFleet(Protocol):
    """Creates and ends consumers. Calls return at once; what became of them shows in `consumers`."""

    def consumers(self) -> frozenset[ConsumerId]:
        """The consumers that may be alive. One that is no longer among them has ended for certain."""
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
