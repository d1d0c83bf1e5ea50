"""Whether the Kubernetes API lets the controller do what it does there; only where consumers are Deployments."""

from collections.abc import Iterator
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from app.settings import Settings
from cli.doctor.finding import Finding
from controller.kubernetes.api import REQUEST_TIMEOUT_S, KubernetesError, Unanswered, connect, own_namespace, reason_of

RIGHTS = (
    ("apps", "deployments", ("create", "delete", "get", "list", "patch", "watch")),
    ("", "pods", ("list", "watch")),
    ("coordination.k8s.io", "leases", ("create",)),
)
"""What the controller's Role has to allow in its namespace."""
OF_ITS_LEASE = ("get", "update")


def check_kubernetes(settings: Settings) -> Iterator[Finding]:
    if settings.fleet != "kubernetes":
        return
    set_up = settings.kubernetes
    namespace = set_up.namespace or own_namespace() or "default"
    asked = [
        *((group, resource, verb, "") for group, resource, verbs in RIGHTS for verb in verbs),
        *(("coordination.k8s.io", "leases", verb, set_up.lease) for verb in OF_ITS_LEASE),
    ]
    try:
        api = connect()
        refused = [
            f"{verb} {resource}{f' {name}' if name else ''}"
            for group, resource, verb, name in asked
            if not _may(api, namespace, group, resource, verb, name)
        ]
    except KubernetesError as error:
        yield Finding.fault(str(error), "or set fleet to local")
        return
    except (ApiException, *Unanswered) as error:
        yield Finding.fault(reason_of(error), "is the cluster of KUBECONFIG up, and the right one?")
        return
    if refused:
        remedy = "bind the Role that kcga deploy --dry-run prints to this account"
        yield Finding.fault(f"not allowed in the namespace {namespace}: {', '.join(refused)}", remedy)
    else:
        yield Finding(f"the Kubernetes API allows what the controller does in the namespace {namespace}")


def _may(api: client.ApiClient, namespace: str, group: str, resource: str, verb: str, name: str) -> bool:
    attributes: dict[str, Any] = {"namespace": namespace, "group": group, "resource": resource, "verb": verb}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes | ({"name": name} if name else {})},
    }
    answer = client.AuthorizationV1Api(api).create_self_subject_access_review(
        review, _request_timeout=REQUEST_TIMEOUT_S
    )
    return bool(answer.status.allowed)
