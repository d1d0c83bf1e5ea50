"""Asks a group's coordinator who is in the group, and what each member reads. Nothing is joined and nothing written.

kafka-python asks, since librdkafka's administration client can bring the whole process down when the coordinator dies
while it is asked (`monitor.group_commits`). It has no request for groups of the newer protocol (KIP-848): `schemas` has
that one, as Kafka defines it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kafka.errors import GroupIdNotFoundError, IncompatibleBrokerVersion, NoError, for_code
from kafka.protocol.api_message import ApiMessage

from app.errors import KcgaError
from app.watch.decide.membership import GroupMember, Membership, Protocol
from domain.partitions import TopicPartition
from domain.printable import printable
from monitor.cluster_logs import BrokerAwayError, ClusterLogs

_SCHEMAS = "app.watch.schemas"
_OF_CONSUMERS = ("consumer", "")
"""What groups of consumers say that they are, those included that never had a member; Kafka Connect's say otherwise."""
_DEAD = "Dead"
"""The state of a classic group that does not exist."""


class ConsumerGroupDescribeRequest(ApiMessage, load_json=_SCHEMAS):  # type: ignore[misc, call-arg]
    pass


class ConsumerGroupDescribeResponse(ApiMessage, load_json=_SCHEMAS):  # type: ignore[misc, call-arg]
    """Named nowhere: the answer to the request is decoded by it."""


class NoSuchGroupError(KcgaError):
    """Nobody has joined a group of that name, or committed under it."""


def membership(cluster: ClusterLogs, group: str) -> Membership:
    """Who is in the group now.

    Raises:
        BrokerAwayError: the group's coordinator did not answer, or refused to.
        NoSuchGroupError: there is no such group.
        KcgaError: it is none of consumers.
    """
    classic = cluster.ask(lambda admin: _classic(admin, group))
    if classic["error"] is not None and GroupIdNotFoundError.__name__ not in classic["error"]:
        raise BrokerAwayError(classic["error"])
    if classic["group_state"] != _DEAD:
        return _of_classic(group, classic)
    newer = cluster.ask(lambda admin: admin._manager.run(_newer, admin, group))
    error = GroupIdNotFoundError if newer is None else for_code(newer["error_code"])
    if error is GroupIdNotFoundError:
        raise NoSuchGroupError(f"there is no group {group}: no consumer is in it, and it has committed nothing")
    if error is not NoError:
        raise BrokerAwayError(f"{error.__name__}: {newer['error_message']}")
    return _of_newer(newer)


def committed_topics(cluster: ClusterLogs, group: str) -> frozenset[str]:
    """The topics that the group has committed positions of.

    Raises:
        BrokerAwayError: the group's coordinator did not answer, or refused to.
    """
    committed = cluster.ask(lambda admin: admin.list_group_offsets(group))[group]
    return frozenset(partition.topic for partition in committed)


def _classic(admin: Any, group: str) -> Any:
    admin._manager.cluster._coordinators.clear()  # it never asks again who that is, whoever has become it since
    return admin.describe_groups([group])[group]


async def _newer(admin: Any, group: str) -> Any:
    """None where brokers know of no such groups."""
    request = ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)
    coordinator = await admin._find_coordinator_id(group)
    try:
        answer = await admin._manager.send(request, node_id=coordinator)
    except IncompatibleBrokerVersion:
        return None
    return answer.groups[0].to_dict()


def _of_classic(group: str, told: Mapping[str, Any]) -> Membership:
    if told["protocol_type"] not in _OF_CONSUMERS:
        raise KcgaError(f"the group {group} is one of {told['protocol_type']}: kcga advises groups of consumers")
    members = []
    for member in told["members"]:
        # Both are empty while a rebalance is under way.
        assigned, subscribed = member["member_assignment"] or {}, member["member_metadata"] or {}
        held = _partitions("topic", assigned.get("assigned_partitions", ()))
        members.append(_member(member, held, subscribed.get("topics", ())))
    return Membership(Protocol.CLASSIC, told["group_state"], tuple(members), told["protocol_data"])


def _of_newer(told: Mapping[str, Any]) -> Membership:
    members = tuple(
        _member(
            member,
            _partitions("topic_name", member["assignment"]["topic_partitions"]),
            member["subscribed_topic_names"],
        )
        for member in told["members"]
    )
    return Membership(Protocol.CONSUMER, told["group_state"], members, told["assignor_name"], told["group_epoch"])


def _partitions(named: str, assigned: Iterable[Mapping[str, Any]]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(each[named], number) for each in assigned for number in each["partitions"])


def _member(told: Mapping[str, Any], held: frozenset[TopicPartition], topics: Iterable[str]) -> GroupMember:
    client = f"{told['client_id']}@{told['client_host'].removeprefix('/')}"
    return GroupMember(told["member_id"], printable(client), held, frozenset(topics))
