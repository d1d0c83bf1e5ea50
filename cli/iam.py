"""The rights of components as policies of AWS' IAM, for Amazon MSK: in the place of ACLs, which it does not ask there.

Kafka takes some rights for others, and IAM none: who may read a topic has to be allowed to describe it besides.
Actions, which others each takes, and the form of resources are those of Amazon's documentation ("Semantics of IAM
authorization policy actions and resources").
"""

import re
from collections.abc import Iterable
from typing import Any

from app.errors import UsageError
from cli.rights import Component, Resource, Right

ACTIONS: dict[tuple[Resource, str], tuple[str, ...]] = {
    (Resource.CLUSTER, "Describe"): ("DescribeCluster",),
    (Resource.TOPIC, "Alter"): ("AlterTopic", "DescribeTopic"),
    (Resource.TOPIC, "AlterConfigs"): ("AlterTopicDynamicConfiguration", "DescribeTopicDynamicConfiguration"),
    (Resource.TOPIC, "Create"): ("CreateTopic",),
    (Resource.TOPIC, "Describe"): ("DescribeTopic",),
    (Resource.TOPIC, "DescribeConfigs"): ("DescribeTopicDynamicConfiguration",),
    (Resource.TOPIC, "Read"): ("DescribeTopic", "ReadData"),
    (Resource.TOPIC, "Write"): ("DescribeTopic", "WriteData"),
    (Resource.GROUP, "Describe"): ("DescribeGroup",),
    (Resource.GROUP, "Read"): ("AlterGroup", "DescribeGroup"),
    (Resource.TRANSACTIONAL_ID, "Write"): ("AlterTransactionalId", "DescribeTransactionalId"),
}
"""What IAM calls each operation of Kafka's on a resource, with what that takes besides."""
CONNECT = "Connect"
"""What all need, on the cluster."""
WRITES_IDEMPOTENTLY = frozenset({Component.CONSUMER})
"""Who writes so without transactions. Kafka takes Write on a topic for that right (KIP-679)."""
_CLUSTER_ARN = re.compile(
    r"(?P<account>arn:aws(?:-[a-z]+)*:kafka:[a-z0-9-]+:[0-9]{12}):cluster/(?P<cluster>[A-Za-z0-9-]+/(?:[A-Za-z0-9-]+|\*))"
)
_OF_IAM = re.compile(r"[*?$]")
"""What stands for something else in a resource, unless it is written as `${*}`."""


def policies(wanted: Iterable[Right], prefix: str, cluster: str | None) -> dict[str, dict[str, Any]]:
    """The policy of each component, by its name.

    Args:
        wanted: the rights that it grants.
        prefix: what the names begin with.
        cluster: the cluster's ARN; its last part may be `*`.

    Raises:
        UsageError: that is no ARN of an MSK cluster.
    """
    named = _CLUSTER_ARN.fullmatch(cluster or "")
    if cluster is None or named is None:
        given = "" if cluster is None else f", and not {cluster!r}"
        raise UsageError(
            "--cluster must be the ARN of the MSK cluster, such as "
            f"arn:aws:kafka:eu-central-1:123456789012:cluster/NAME/UUID, or /* in place of the UUID{given}"
        )
    by_component: dict[Component, dict[str, set[str]]] = {}
    for right in wanted:
        by_arn = by_component.setdefault(right.component, {cluster: {CONNECT}})
        arn = cluster
        if right.resource is not Resource.CLUSTER:
            name = _OF_IAM.sub(r"${\g<0>}", right.name) + "*" * right.prefixed
            arn = f"{named['account']}:{right.resource}/{named['cluster']}/{name}"
        for operation in right.operations:
            by_arn.setdefault(arn, set()).update(ACTIONS[right.resource, operation])
    for component in WRITES_IDEMPOTENTLY & by_component.keys():
        by_component[component][cluster].add("WriteDataIdempotently")
    return {f"{prefix}{component}": _policy(by_arn) for component, by_arn in by_component.items()}


def _policy(by_arn: dict[str, set[str]]) -> dict[str, Any]:
    """A statement for all resources of the same actions: how long a policy may be is limited."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for arn, actions in by_arn.items():
        alike.setdefault(tuple(f"kafka-cluster:{action}" for action in sorted(actions)), []).append(arn)
    statements = [{"Effect": "Allow", "Action": list(actions), "Resource": arns} for actions, arns in alike.items()]
    return {"Version": "2012-10-17", "Statement": statements}
