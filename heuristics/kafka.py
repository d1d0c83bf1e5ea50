"""What Kafka itself assigns to a group of a given size: what a user has without kcga.

The consumers take part in numerical order, where Kafka goes by member id, and all subscribe to all topics. Neither
assignor looks at a speed. The tests hold what the assignors of Kafka 4.3.1 gave.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count, islice

from domain.assignment import Assignment, ConsumerId
from domain.partitions import TopicPartition


def kafka_assign(
    name: str,
    partitions: Iterable[TopicPartition],
    consumers: int,
    current: Assignment = Assignment(),  # noqa: B008 (immutable)
    *,
    first_consumer: ConsumerId = 1,
) -> Assignment:
    """What the partitions are assigned to once the group has that many consumers and has settled.

    A group that shrinks loses its highest numbers; one that grows gains the lowest free ones from `first_consumer` on.

    Args:
        name: one of `KAFKA_ASSIGNORS`.
        partitions: all partitions of the topics that the group subscribes to.
        consumers: how many there are, 1 or more. Those in excess of the partitions get none.
        current: who reads what now.
        first_consumer: the lowest number that a new consumer may have.

    Raises:
        ValueError: an unknown name, or a value outside its range.
    """
    if name not in _ASSIGNORS:
        raise ValueError(f"there is no assignor {name!r}: it must be one of {', '.join(KAFKA_ASSIGNORS)}")
    if consumers < 1:
        raise ValueError(f"consumers is {consumers}: a group needs 1 or more")
    if first_consumer < 0:
        raise ValueError(f"first_consumer is {first_consumer}: it must be 0 or more")
    present = current.consumers
    staying = sorted(present)[:consumers]
    free = (number for number in count(first_consumer) if number not in present)
    members = sorted([*staying, *islice(free, consumers - len(staying))])
    return _ASSIGNORS[name](sorted(partitions), members, current)


def _range(partitions: Sequence[TopicPartition], members: Sequence[ConsumerId], _current: Assignment) -> Assignment:
    """Of each topic, everyone gets one run of partitions; the first members get one more where it does not divide."""
    by_topic: dict[str, list[TopicPartition]] = {}
    for partition in partitions:
        by_topic.setdefault(partition.topic, []).append(partition)
    consumer_of: dict[TopicPartition, ConsumerId] = {}
    for of_topic in by_topic.values():
        share, with_one_more = divmod(len(of_topic), len(members))
        start = 0
        for index, member in enumerate(members):
            end = start + share + (index < with_one_more)
            consumer_of.update(dict.fromkeys(of_topic[start:end], member))
            start = end
    return Assignment(consumer_of)


def _cooperative_sticky(
    partitions: Sequence[TopicPartition], members: Sequence[ConsumerId], current: Assignment
) -> Assignment:
    """The sticky assignment after both rebalances.

    The first one withholds what has yet to be revoked from a member. The second, which hands that out, starts from what
    the first did assign, and so may give it to others than were foreseen.
    """
    foreseen = _sticky(partitions, members, current)
    remaining = frozenset(members)
    withheld = {move.partition for move in current.migrations_to(foreseen) if move.source in remaining}
    after_first = {partition: member for partition, member in foreseen.items() if partition not in withheld}
    return _sticky(partitions, members, Assignment(after_first))


def _sticky(partitions: Sequence[TopicPartition], members: Sequence[ConsumerId], current: Assignment) -> Assignment:
    """As even in the number of partitions as it can be; within that everyone keeps what they can.

    Those with the lowest partition numbers are kept first, whatever their topic. The rest goes round in partition
    order: to the members below the quota until there are none, then one more to as many as it takes.
    """
    quota, above_quota = divmod(len(partitions), len(members))
    held: dict[ConsumerId, list[TopicPartition]] = {member: [] for member in members}
    unassigned = []
    for partition in partitions:
        owner = current.get(partition)
        if owner in held:
            held[owner].append(partition)
        else:
            unassigned.append(partition)
    for owned in held.values():
        owned.sort(key=lambda partition: (partition.partition, partition.topic))
        kept = quota
        if len(owned) > quota and above_quota:
            kept, above_quota = quota + 1, above_quota - 1
        unassigned += owned[kept:]
        del owned[kept:]

    below = deque(member for member in members if len(held[member]) < quota)
    at_quota = deque(member for member in members if len(held[member]) == quota)
    for partition in sorted(unassigned):
        member = below.popleft() if below else at_quota.popleft()
        held[member].append(partition)
        if len(held[member]) < quota:
            below.append(member)
        elif len(held[member]) == quota:
            at_quota.append(member)
    return Assignment({partition: member for member, owned in held.items() for partition in owned})


_ASSIGNORS: Mapping[str, Callable[[Sequence[TopicPartition], Sequence[ConsumerId], Assignment], Assignment]] = {
    "kafka-range": _range,
    "kafka-sticky": _cooperative_sticky,
}

KAFKA_ASSIGNORS: tuple[str, ...] = tuple(_ASSIGNORS)
"""Kafka's range and cooperative-sticky assignors."""
