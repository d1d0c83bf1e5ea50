"""How the objects of a group are named and labelled: by this alone the controller knows its own from others'."""

import re
from collections.abc import Mapping

from domain.assignment import ConsumerId

COMPONENT = "app.kubernetes.io/component"
MANAGED_BY = "app.kubernetes.io/managed-by"
NAME = "app.kubernetes.io/name"
INSTANCE = "app.kubernetes.io/instance"
GROUP = "kcga/group"
CONSUMER = "kcga/consumer"
CLASS = "kcga/class"
"""Of the Deployments and pods of consumers that are not ordinary."""
REVISION = "kcga/revision"
"""An annotation of consumers' Deployments: what they were made from."""

FIELD_MANAGER = "kcga-controller"

_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


def deployment_name(group: str, consumer: ConsumerId) -> str:
    """The `metadata.name` of the consumer's Deployment."""
    return f"{group}-consumer-{consumer}"


def consumer_of(name: str) -> ConsumerId | None:
    """The consumer that the name of a Deployment says, which is the last number in it; None where it says none."""
    _, separator, number = name.rpartition("-consumer-")
    return int(number) if separator and _NUMBER.fullmatch(number) else None


def group_labels(group: str) -> dict[str, str]:
    """What every Deployment and pod of the group's consumers is labelled with."""
    return {
        NAME: "kcga",
        INSTANCE: group,
        COMPONENT: "consumer",
        MANAGED_BY: FIELD_MANAGER,
        GROUP: group,
    }


def pod_labels(group: str, consumer: ConsumerId) -> dict[str, str]:
    """What selects the pods of one consumer."""
    return {GROUP: group, COMPONENT: "consumer", CONSUMER: str(consumer)}


def selector(labels: Mapping[str, str]) -> str:
    """The labels as a selector of the API, in ascending order."""
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
