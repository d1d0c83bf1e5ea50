"""Why a consumer does not come up, in the cluster's own words."""

from typing import Any

_STARTING = frozenset({"ContainerCreating", "PodInitializing"})


def trouble_of_pod(pod: Any) -> str | None:
    """Why the pod does not run: no node takes it, or a container cannot start or ends again and again."""
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return f"no node takes its pod ({condition.reason}): {condition.message}"
    for container in (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ())):
        waiting = container.state.waiting if container.state else None
        if waiting is not None and waiting.reason not in _STARTING:
            return f"{container.name}: {waiting.reason}{f': {waiting.message}' if waiting.message else ''}"
    return None


def trouble_of_deployment(deployment: Any) -> str | None:
    """Why no pod is made: a quota, or an admission webhook that refuses."""
    for condition in deployment.status.conditions or ():
        if condition.type == "ReplicaFailure" and condition.status == "True":
            return f"no pod is made ({condition.reason}): {condition.message}"
    return None
