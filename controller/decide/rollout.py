"""Consumers that began with another image, template or settings than consumers begin with now, one after the other.

One is replaced at a time: its partitions move to a new consumer by an ordinary hand-over, so they are read where they
are until that one is ready. The first that does not become ready stops it all. Why: `docs/decisions/0016-rollout.md`.
"""

from collections.abc import Iterable, Set
from dataclasses import dataclass

from controller.decide.group import Member
from domain.assignment import Assignment, ConsumerId
from domain.messages import ConsumerState, RolloutStanding


@dataclass(slots=True)
class Rollout:
    """What is known of revisions, and how far it has come."""

    revision: str | None = None
    """What consumers begin with now; None where that is not known."""
    outdated: frozenset[ConsumerId] = frozenset()
    """Those that began with another."""
    retiring: ConsumerId | None = None
    """The one of them that is being replaced."""
    paused: bool = False
    failed: tuple[str, ConsumerId] | None = None
    """The revision with which a consumer did not become ready, and which one that was."""

    def inherit(self, standing: RolloutStanding) -> None:
        """What the controller before knew: what has failed is not tried again by each one anew."""
        self.paused = standing.paused
        if standing.revision is not None and standing.failed is not None:
            self.failed = standing.revision, standing.failed

    def seen(self, revision: str | None, outdated: frozenset[ConsumerId]) -> None:
        self.revision, self.outdated = revision, outdated
        if revision is not None and self.failed is not None and self.failed[0] != revision:
            self.failed = None

    def resume(self) -> None:
        """An operator wants it to go on, whatever has failed."""
        self.paused, self.failed = False, None

    def fell(self, consumer: ConsumerId, *, was_ready: bool) -> None:
        """A consumer ended by itself, or could not begin: the one that was to go stays, and no more are replaced."""
        matters = consumer not in self.outdated and (self.retiring is not None or not was_ready)
        if self.revision is not None and self.outdated and matters:
            self.failed = self.revision, consumer
            self.retiring = None

    def next(self, members: Iterable[Member], desired: Assignment) -> ConsumerId | None:
        """Who is to be replaced now: those without a partition first, then the lowest number.

        None while anything else goes on in the group, or a consumer with the present revision is not at its best.
        """
        if self.paused or self.failed or not self.outdated:
            return None
        counted_on = [member for member in members if not member.condemned]
        alive = {member.consumer for member in counted_on}
        plan = desired.by_consumer
        at_rest = all(
            member.held == frozenset(plan.get(member.consumer, ()))
            and not member.pending
            and (member.accepts_partitions if member.consumer in self.outdated else member.state is ConsumerState.READY)
            for member in counted_on
        )
        if not at_rest or not desired.consumers <= alive:
            return None
        return min(alive & self.outdated, key=lambda consumer: (consumer in plan, consumer), default=None)

    def standing(self, alive: Set[ConsumerId]) -> RolloutStanding | None:
        """For whoever asks, and for the next controller."""
        if self.revision is None and not self.paused:
            return None
        return RolloutStanding(
            revision=self.revision,
            outdated=tuple(sorted(self.outdated & alive)),
            retiring=self.retiring,
            paused=self.paused,
            failed=None if self.failed is None else self.failed[1],
        )
