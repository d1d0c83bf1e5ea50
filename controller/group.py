"""What the controller knows of each consumer: who may be reading what.

The invariant that the handover rests on: a consumer *may read* a partition from the moment a start is sent to it until
either a report of the same process shows a newer stop carried out and the partition let go, or the process has ended.
Whatever is lost, late or doubled, a consumer that reads a partition is one that may read it here.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from domain.assignment import Assignment, ConsumerId
from domain.messages import Action, ConsumerCommand, ConsumerReport, ConsumerState, Order, PartitionRef
from domain.partitions import TopicPartition


@dataclass(frozen=True, slots=True)
class Pending:
    """A command for one partition that is not acknowledged yet."""

    action: Action
    order: Order
    sent_at: float


@dataclass(slots=True)
class Member:
    """One consumer, as far as it has been heard of."""

    consumer: ConsumerId
    since: float
    """When it was created or found."""
    heard_at: float
    """When its last report came; `since` before the first."""
    incarnation: str | None = None
    """The process that reported; None before the first report."""
    report_sequence: int = -1
    state: ConsumerState = ConsumerState.STARTING
    reason: str | None = None
    held: frozenset[TopicPartition] = frozenset()
    """What it reads by its newest report."""
    pending: dict[TopicPartition, Pending] = field(default_factory=dict)
    """The newest command sent for a partition, until it is acknowledged."""
    barrier: Order | None = None
    """Of a consumer that existed before this controller began: until it has carried this command out, one of the
    controller before may still reach it, so it may be reading anything."""
    condemned: bool = False
    """It is being ended: nothing is given to it any more."""

    @property
    def accepts_partitions(self) -> bool:
        return not self.condemned and self.state in (ConsumerState.READY, ConsumerState.DEGRADED)

    @property
    def known_to_read(self) -> frozenset[TopicPartition]:
        """What it reads, or may be about to read, as far as it has been heard of."""
        return self.held | self.pending.keys()

    def may_read(self, partition: TopicPartition) -> bool:
        return self.barrier is not None or partition in self.known_to_read


class Group(Mapping[ConsumerId, Member]):
    """The consumers that exist, in ascending order of their number."""

    def __init__(self) -> None:
        self._members: dict[ConsumerId, Member] = {}
        self._former: set[str] = set()
        """Incarnations that have ended: what still comes from them is late."""

    def __getitem__(self, consumer: ConsumerId) -> Member:
        return self._members[consumer]

    def __iter__(self) -> Iterator[ConsumerId]:
        return iter(sorted(self._members))

    def __len__(self) -> int:
        return len(self._members)

    def add(self, consumer: ConsumerId, at: float, barrier: Order | None = None) -> None:
        """A consumer was created; or found to exist, and then `barrier` is the first command that it gets."""
        self._members[consumer] = Member(consumer, since=at, heard_at=at, barrier=barrier)

    def remove(self, consumer: ConsumerId) -> Member | None:
        """Its process has ended: it reads nothing any more."""
        member = self._members.pop(consumer, None)
        if member and member.incarnation:
            self._former.add(member.incarnation)
        return member

    def receive(self, report: ConsumerReport, at: float) -> bool:
        """Takes a report in; False where it says nothing new: not a member's, late, or seen before.

        A report of another incarnation means that the process was restarted: what the old one may have read, it reads
        no more, and commands that it was sent are void.
        """
        member = self._members.get(report.consumer)
        if member is None or report.incarnation in self._former:
            return False
        if member.incarnation != report.incarnation:
            if member.incarnation is not None:
                self._former.add(member.incarnation)
            member.incarnation, member.pending = report.incarnation, {}
        elif report.sequence <= member.report_sequence:
            return False
        member.report_sequence = report.sequence
        member.heard_at = at
        member.state, member.reason = report.state, report.reason
        if member.barrier and report.applied >= member.barrier:
            member.barrier = None
        member.held = frozenset(partition.key for partition in report.partitions)
        member.pending = {
            partition: pending for partition, pending in member.pending.items() if pending.order > report.applied
        }
        return True

    def sent(self, command: ConsumerCommand, at: float) -> None:
        """The command is on its way: from now on it may be carried out at any moment."""
        member = self._members[command.consumer]
        for partition in command.partitions:
            member.pending[partition.key] = Pending(command.action, command.order, at)

    def command(
        self, consumer: ConsumerId, action: Action, partitions: Iterable[TopicPartition], order: Order, plan: int
    ) -> ConsumerCommand:
        """The command to that consumer's present process, which must have reported."""
        incarnation = self._members[consumer].incarnation
        if incarnation is None:
            raise ValueError(f"consumer {consumer} has not reported yet: no command can be addressed to it")
        return ConsumerCommand(
            consumer=consumer,
            incarnation=incarnation,
            epoch=order.epoch,
            plan=plan,
            sequence=order.sequence,
            action=action,
            partitions=tuple(PartitionRef.of(partition) for partition in sorted(partitions)),
        )

    @property
    def assignment(self) -> Assignment:
        """Who reads what, condemned consumers left out.

        A partition that is being handed over counts for the consumer that still has to let it go. Where two may read
        one (which only a fault outside of the protocol brings about), it counts for the lower number.
        """
        consumers: dict[TopicPartition, ConsumerId] = {}
        for consumer in self:
            if not self._members[consumer].condemned:
                for partition in self._members[consumer].known_to_read:
                    consumers.setdefault(partition, consumer)
        return Assignment(consumers)
