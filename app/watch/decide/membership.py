"""Who is in a consumer group at one moment, and what each member reads, as the group's coordinator tells."""

from dataclasses import dataclass
from enum import StrEnum

from domain.partitions import TopicPartition


class Protocol(StrEnum):
    """How the members of a group come by their partitions."""

    CLASSIC = "classic"
    """One of the members assigns them, eagerly or cooperatively."""
    CONSUMER = "consumer"
    """The broker does (KIP-848)."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    name: str
    """The id that it has within the group. One that begins anew has another."""
    client: str
    """Its client's id and its host."""
    held: frozenset[TopicPartition] = frozenset()
    """What it reads; nothing where that is not told."""
    subscribed: frozenset[str] = frozenset()
    """Topics by their names."""


@dataclass(frozen=True, slots=True)
class Membership:
    protocol: Protocol
    state: str
    """By Kafka's name."""
    members: tuple[GroupMember, ...] = ()
    assignor: str = ""
    """Who decides on the partitions, by its name; not told of a classic group while a rebalance is under way."""
    epoch: int | None = None
    """Of the group, which grows with each change; the coordinator does not tell that of a classic group."""

    @property
    def settled(self) -> bool:
        """Whether no rebalance is under way: during one the coordinator does not tell who reads what, or not all."""
        return self.state in ("Stable", "Empty", "Dead")

    @property
    def topics(self) -> frozenset[str]:
        """What the members subscribe to, or read."""
        held = (partition.topic for member in self.members for partition in member.held)
        return frozenset(held).union(*(member.subscribed for member in self.members))
