"""What a consumer holds, and what commands change about it.

Decides which commands count and what they amount to. It never reads a partition, and knows nothing of where commands
come from: they may be lost, doubled, late, or meant for an earlier process under the same number.

Invariant: a partition is held if and only if, of the commands that counted and name it, the newest is a start.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from domain.assignment import ConsumerId
from domain.messages import Action, ConsumerCommand, Order
from domain.partitions import TopicPartition

NO_COMMAND = Order(0, 0)
"""Older than every command."""


@dataclass(frozen=True, slots=True)
class Change:
    """What to do to follow commands: first stop, then start. Partitions in ascending order.

    A partition in both was stopped and started anew: somebody else may have read it in between, so its position has
    to be looked up again.
    """

    stop: tuple[TopicPartition, ...] = ()
    start: tuple[TopicPartition, ...] = ()
    seal: tuple[str, ...] = ()
    """The writers that the starts name, in ascending order: what is started is read once they are sealed."""


@dataclass(frozen=True, slots=True)
class Holding:
    """The partitions that one process under a consumer's number holds."""

    consumer: ConsumerId
    incarnation: str
    applied: Order = NO_COMMAND
    """The newest command that counted."""
    stints: Mapping[TopicPartition, Order] = field(default_factory=lambda: MappingProxyType({}))
    """Each partition that is held, with the start command under which it is read."""

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """In ascending order."""
        return tuple(sorted(self.stints))

    def apply(self, commands: Iterable[ConsumerCommand]) -> tuple["Holding", Change]:
        """The holding after `commands`, in the order they came in, and what that changes.

        A command counts if it names this consumer and this incarnation and is newer than the last that counted. To
        start what is held, or to stop what is not, changes nothing.
        """
        applied = self.applied
        stints = dict(self.stints)
        seal: set[str] = set()
        for command in commands:
            if (command.consumer, command.incarnation) != (self.consumer, self.incarnation) or command.order <= applied:
                continue
            applied = command.order
            if command.action is Action.START:
                seal.update(command.seal)
            for partition in (ref.key for ref in command.partitions):
                if command.action is Action.STOP:
                    stints.pop(partition, None)
                else:
                    stints.setdefault(partition, applied)
        change = Change(
            stop=tuple(sorted(held for held, stint in self.stints.items() if stints.get(held) != stint)),
            start=tuple(sorted(held for held, stint in stints.items() if self.stints.get(held) != stint)),
            seal=tuple(sorted(seal)),
        )
        return replace(self, applied=applied, stints=MappingProxyType(stints)), change
