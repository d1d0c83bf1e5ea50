"""What the controller knows of each consumer: who may be reading what.

The invariant that the handover rests on: a consumer *may read* a partition from the moment a start is sent to it until
either a report of the same process shows a newer stop carried out and the partition let go, or the process is not
counted on any more: it has ended, or is taken for dead, or another one has come in its place. It is then a former
writer, which the next start of the partition names (`controller.decide.former_writers`). Whatever is lost, late or
doubled, a process that reads a partition is one that may read it here, or one that is named before anybody else reads
it.
"""

import math
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, Set, ValuesView
from dataclasses import dataclass, field

from controller.decide.former_writers import FormerWriters, Reach
from domain.assignment import Assignment, ConsumerId
from domain.consumer_class import ORDINARY
from domain.messages import (
    Action,
    ConsumerCommand,
    ConsumerReport,
    ConsumerState,
    Order,
    PartitionRef,
    Throughput,
    writer,
)
from domain.partitions import TopicPartition


@dataclass(frozen=True, slots=True)
class Pending:
    """A command for one partition that is not acknowledged yet."""

    action: Action
    order: Order
    sent_at: float
    since: float
    """When it was first sent, and not acknowledged since."""


@dataclass(slots=True)
class Member:
    """One consumer, as far as it has been heard of."""

    consumer: ConsumerId
    since: float
    """When it was created or found."""
    heard_at: float
    """When its last report came; `since` before the first."""
    class_name: str = ORDINARY
    """Of which class it is, for as long as it exists."""
    incarnation: str | None = None
    """The process that reported; None before the first report."""
    began_at: float = -math.inf
    """When that process was first heard."""
    report_sequence: int = -1
    state: ConsumerState = ConsumerState.STARTING
    reason: str | None = None
    held: frozenset[TopicPartition] = frozenset()
    """What it reads by its newest report."""
    throughput: Throughput | None = None
    """What its process told of its rate."""
    pending: dict[TopicPartition, Pending] = field(default_factory=dict)
    """The newest command sent for a partition, until it is acknowledged."""
    named: dict[TopicPartition, frozenset[str]] = field(default_factory=dict)
    """Whom every start named that may have it read the partition, until it shows that it reads it."""
    barrier: Order | None = None
    """Of a consumer that existed before this controller began: until it has carried this command out, one of the
    controller before may still reach it."""
    unbound: bool = False
    """Until then it may be reading anything: what the controllers before may have sent it is not known."""
    condemned: bool = False
    """It is being ended, and not counted on any more: nothing is given to it, and what it has can go to others."""

    @property
    def accepts_partitions(self) -> bool:
        return not self.condemned and self.state in (ConsumerState.READY, ConsumerState.DEGRADED)

    @property
    def known_to_read(self) -> frozenset[TopicPartition]:
        """What it reads, or may be about to read: what this controller sent it, or the one before."""
        return self.held.union(self.pending) if self.pending else self.held

    @property
    def reach(self) -> Reach:
        return None if self.unbound else self.known_to_read

    @property
    def unheeded_since(self) -> float:
        """When the oldest command was sent that it has not acknowledged; infinite where there is none."""
        return min((pending.since for pending in self.pending.values()), default=math.inf)


class Group(Mapping[ConsumerId, Member]):
    """The consumers that exist, in ascending order of their number."""

    def __init__(self) -> None:
        self.former = FormerWriters()
        self._members: dict[ConsumerId, Member] = {}
        self._ended: set[str] = set()
        """Writers that are not counted on any more: what still comes from them is late."""

    def __getitem__(self, consumer: ConsumerId) -> Member:
        return self._members[consumer]

    def __iter__(self) -> Iterator[ConsumerId]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    # These are Mapping's as well, only many times as slow: they are needed at every turn.

    def keys(self) -> KeysView[ConsumerId]:
        return self._members.keys()

    def values(self) -> ValuesView[Member]:
        return self._members.values()

    def items(self) -> ItemsView[ConsumerId, Member]:
        return self._members.items()

    @property
    def alive(self) -> frozenset[ConsumerId]:
        """The consumers that are counted on."""
        return frozenset(consumer for consumer, member in self._members.items() if not member.condemned)

    @property
    def taken(self) -> Set[ConsumerId]:
        """Numbers of consumers that are not counted on and not gone: a node that hangs may never let go of its own."""
        return self._members.keys() - self.alive

    @property
    def counted_on(self) -> dict[str, Reach]:
        """The processes of the members, as far as they have been heard of and have not left; in ascending order."""
        return {
            writer(member.consumer, member.incarnation): member.reach
            for member in self.values()
            if member.incarnation is not None and not member.condemned and member.state is not ConsumerState.LEAVING
        }

    def add(self, consumer: ConsumerId, at: float, barrier: Order | None = None, class_name: str = ORDINARY) -> None:
        """A consumer was created; or found to exist, and then `barrier` is the first command that it gets."""
        is_last = consumer > max(self._members, default=0)
        self._members[consumer] = Member(consumer, since=at, heard_at=at, barrier=barrier, class_name=class_name)
        if not is_last:
            self._members = dict(sorted(self._members.items()))

    def are_of(self, class_names: Mapping[ConsumerId, str]) -> None:
        """Of which classes the consumers are found to be."""
        for consumer in class_names.keys() & self._members.keys():
            self._members[consumer].class_name = class_names[consumer]

    def condemn(self, consumer: ConsumerId) -> None:
        """It is not counted on any more, though its process has not ended yet."""
        member = self._members[consumer]
        if not member.condemned:
            self._count_off(member)
            member.condemned = True

    def remove(self, consumer: ConsumerId) -> Member | None:
        """Its process has ended: it reads nothing any more, but what it was writing may still come."""
        member = self._members.pop(consumer, None)
        if member and not member.condemned:
            self._count_off(member)
        return member

    def receive(self, report: ConsumerReport, at: float) -> bool:
        """Takes a report in; False where it says nothing new: not a member's, late, or seen before.

        A report of another incarnation means that the process was restarted: commands to the old one are void.
        """
        member = self._members.get(report.consumer)
        if member is None or member.condemned or not self._is_of(member, report, at):
            self._hear_of_other(report)
            return False
        if report.sequence <= member.report_sequence:
            return False
        member.report_sequence = report.sequence
        member.heard_at = at
        member.state, member.reason = report.state, report.reason
        member.throughput = report.throughput
        member.held = frozenset(partition.key for partition in report.partitions)
        member.pending = {
            partition: pending for partition, pending in member.pending.items() if pending.order > report.applied
        }
        if member.barrier and report.applied >= member.barrier:
            member.barrier, member.unbound = None, False
        if report.state is ConsumerState.LEAVING:  # it obeys nothing any more
            member.pending, member.barrier, member.unbound = {}, None, False
        self._note_what_is_sealed(member, frozenset(partition.key for partition in report.taking_over))
        return True

    def _is_of(self, member: Member, report: ConsumerReport, at: float) -> bool:
        """Whether the report is of the member's process, which it may be from now on."""
        if member.incarnation == report.incarnation:
            return True
        if report.writer in self._ended:
            return False
        if self.former.knows(report.writer):
            # It was heard of before this controller began: it is the member's, unless that has shown itself already.
            found = member.incarnation is None and member.barrier is not None
            if not (found and self.former.can_be_recalled(report.writer)):
                return False
        if member.incarnation is not None:
            self._count_off(member)
        member.incarnation, member.report_sequence = report.incarnation, -1
        member.began_at = at
        member.held, member.pending, member.named = frozenset(), {}, {}
        if member.barrier is not None:
            reach = self.former.recall(report.writer)
            member.unbound = reach is None
            member.pending = dict.fromkeys(reach or (), Pending(Action.START, member.barrier, at, at))
        return True

    def _hear_of_other(self, report: ConsumerReport) -> None:
        """A process that is not counted on. One that was not heard of before may have been given anything."""
        if report.state is ConsumerState.LEAVING:
            self.former.settle(report.writer)
        elif report.writer not in self._ended and not self.former.knows(report.writer):
            self.former.hear_of(report.writer)

    def _count_off(self, member: Member) -> None:
        """The member's process is not counted on any more."""
        if member.incarnation is not None:
            name = writer(member.consumer, member.incarnation)
            self._ended.add(name)
            self.former.add(name, member.reach)

    def _note_what_is_sealed(self, member: Member, taking_over: frozenset[TopicPartition]) -> None:
        """Who reads a partition has sealed whom the start named."""
        for partition in sorted(member.named):
            if partition in member.held - taking_over:
                self.former.sealed(member.named.pop(partition), partition.topic)
            elif partition not in member.known_to_read:
                del member.named[partition]

    def sent(self, command: ConsumerCommand, at: float) -> None:
        """The command is on its way: from now on it may be carried out at any moment."""
        member = self._members[command.consumer]
        for partition in (reference.key for reference in command.partitions):
            if command.action is Action.START:
                named = frozenset(command.seal)
                # Of several starts any one may be the one that it reads under: what all of them named is sealed then.
                # One that it had from somebody else named nobody, for all that is known here.
                if partition in member.known_to_read:
                    named &= member.named.get(partition, frozenset())
                member.named[partition] = named
            before = member.pending.get(partition)
            since = before.since if before and before.action is command.action else at
            member.pending[partition] = Pending(command.action, command.order, at, since)

    def command(
        self, consumer: ConsumerId, action: Action, partitions: Iterable[TopicPartition], order: Order, plan: int
    ) -> ConsumerCommand:
        """The command to that consumer's present process, which must have reported; a start names whom to seal."""
        incarnation = self._members[consumer].incarnation
        if incarnation is None:
            raise ValueError(f"consumer {consumer} has not reported yet: no command can be addressed to it")
        wanted = sorted(partitions)
        return ConsumerCommand(
            consumer=consumer,
            incarnation=incarnation,
            epoch=order.epoch,
            plan=plan,
            sequence=order.sequence,
            action=action,
            partitions=tuple(PartitionRef.of(partition) for partition in wanted),
            seal=self.former.to_seal(wanted) if action is Action.START else (),
        )

    @property
    def assignment(self) -> Assignment:
        """Who reads what, condemned consumers left out.

        A partition that is being handed over counts for the consumer that still has to let it go. Where two may read
        one (which only a fault outside of the protocol brings about), it counts for the lower number.
        """
        consumers: dict[TopicPartition, ConsumerId] = {}
        for consumer, member in self.items():
            if not member.condemned:
                for partition in member.known_to_read:
                    consumers.setdefault(partition, consumer)
        return Assignment(consumers)
