"""Manage: the difference between who reads what and who shall, as the next steps that are safe to take now.

Each partition moves on its own: it is stopped as soon as its new consumer is ready, and started there as soon as
nobody else who is counted on may read it any more. (Whoever is not counted on is sealed by the new one.) So while a
consumer is on its way, or does not come, its partitions are read where they were. The steps follow from the present
alone, not from how it came about; so a plan goes on from any point at which a consumer or the controller was
interrupted.
"""

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass
from itertools import chain

from controller.decide.group import Group, Member
from domain.assignment import Assignment, ConsumerId
from domain.messages import Action
from domain.partitions import TopicPartition


@dataclass(frozen=True, slots=True)
class Steps:
    """What to do now; consumers and partitions in ascending order."""

    create: tuple[ConsumerId, ...]
    stop: Mapping[ConsumerId, tuple[TopicPartition, ...]]
    start: Mapping[ConsumerId, tuple[TopicPartition, ...]]
    delete: tuple[ConsumerId, ...]
    done: bool
    """Every partition is read by its consumer alone, and consumers without a partition are being ended."""


def next_steps(desired: Assignment, group: Group, resend_before: float, spare: Set[ConsumerId] = frozenset()) -> Steps:
    """The steps from `group` towards `desired` that are safe now.

    Args:
        desired: the consumer that each partition shall have; a partition that is not in it is to be read by nobody.
        group: what is known of the consumers, all of which obey this controller alone.
        resend_before: commands sent before this moment (s since the epoch) and not acknowledged are due again.
        spare: consumers that shall exist without a partition.
    """
    stop = {member.consumer: _to_stop(desired, group, member, resend_before) for member in group.values()}
    counted_on = [member for member in group.values() if not member.condemned]
    readers = Counter(chain.from_iterable(member.known_to_read for member in counted_on))
    start = {
        member.consumer: _to_start(desired, member, readers, resend_before)
        for member in counted_on
        if member.accepts_partitions
    }
    needed = desired.consumers
    missing = needed - group.keys()
    create = tuple(sorted(missing | (spare - group.keys())))
    settled = not missing and all(
        group[consumer].accepts_partitions and group[consumer].held == frozenset(held) and not group[consumer].pending
        for consumer, held in desired.by_consumer.items()
    )
    idle = [member for member in counted_on if member.consumer not in needed]
    obsolete = tuple(member.consumer for member in idle if member.consumer not in spare)
    released = not any(member.known_to_read for member in idle)
    return Steps(
        create=create,
        stop={consumer: partitions for consumer, partitions in stop.items() if partitions},
        start={consumer: partitions for consumer, partitions in start.items() if partitions},
        delete=obsolete if settled and released else (),
        done=settled and released and not create and not obsolete,
    )


def _to_stop(desired: Assignment, group: Group, member: Member, resend_before: float) -> tuple[TopicPartition, ...]:
    """What the consumer may read and shall not, unless it was told so lately or there is nobody yet to take it."""
    if member.condemned or member.incarnation is None:
        return ()
    superfluous = member.known_to_read.difference(desired.by_consumer.get(member.consumer, ()))
    return tuple(
        sorted(
            partition
            for partition in superfluous
            if _can_be_taken(partition, desired, group)
            and not _is_under_way(member, partition, Action.STOP, resend_before)
        )
    )


def _can_be_taken(partition: TopicPartition, desired: Assignment, group: Group) -> bool:
    """Whether who shall read the partition could begin now; so it is where nobody shall."""
    taker = desired.get(partition)
    return taker is None or (taker in group and group[taker].accepts_partitions)


def _to_start(
    desired: Assignment, member: Member, readers: Mapping[TopicPartition, int], resend_before: float
) -> tuple[TopicPartition, ...]:
    """What the consumer, which is ready, shall read and does not, where nobody else may be reading.

    Args:
        readers: how many of the consumers that are counted on may read each partition.
    """
    shall = desired.by_consumer.get(member.consumer, ())
    if not member.pending and member.held.issuperset(shall):
        return ()
    return tuple(
        partition
        for partition in shall
        if not (partition in member.held and partition not in member.pending)
        and not _is_under_way(member, partition, Action.START, resend_before)
        and readers.get(partition, 0) == (partition in member.known_to_read)
    )


def _is_under_way(member: Member, partition: TopicPartition, action: Action, resend_before: float) -> bool:
    pending = member.pending.get(partition)
    return pending is not None and pending.action is action and pending.sent_at >= resend_before
