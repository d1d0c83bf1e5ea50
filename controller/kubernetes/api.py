"""The client of the Kubernetes API: how it is made, and what its errors mean."""

import json
import ssl
from pathlib import Path
from typing import Any

import urllib3
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from controller.kubernetes.decide.deployment import Owner

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

CONNECTIONS = 32
REQUEST_TIMEOUT_S = (3.0, 5.0)
"""To connect, and to wait for an answer: a server that hangs must not hold anything up for long."""

NOT_FOUND, CONFLICT, GONE, TOO_MANY_REQUESTS = 404, 409, 410, 429

Unanswered = (urllib3.exceptions.HTTPError, ssl.SSLError, OSError)
"""What the client raises where the server gives no answer. The request may have been carried out, or may be yet."""
Failure = (ApiException, *Unanswered)
"""The same, and where the server says no."""


class KubernetesError(Exception):
    """The Kubernetes API cannot be used; says why, and what would be right."""


def connect() -> client.ApiClient:
    """A client with the rights of the pod's service account, or else of the current context of the kubeconfig.

    Raises:
        KubernetesError: there is neither.
    """
    configuration = client.Configuration()
    # Its own retries would repeat what was given up here.
    configuration.retries = False
    configuration.keep_alive = True
    configuration.connection_pool_maxsize = CONNECTIONS
    try:
        if (SERVICE_ACCOUNT / "token").exists():
            config.load_incluster_config(client_configuration=configuration)
        else:
            config.load_kube_config(client_configuration=configuration)
    except config.ConfigException as error:
        raise KubernetesError(
            f"no Kubernetes cluster is configured ({error}): run in a pod with a service account, or set KUBECONFIG"
        ) from error
    return client.ApiClient(configuration)


def own_namespace() -> str | None:
    """The namespace of this pod, or of the current context of the kubeconfig; None where neither says one."""
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text().strip()
    except OSError:
        pass
    try:
        _, context = config.list_kube_config_contexts()
    except config.ConfigException:
        return None
    namespace: str | None = context["context"].get("namespace")
    return namespace


def find_owner(api: client.ApiClient, namespace: str, name: str) -> Owner:
    """The Deployment that consumers are to belong to.

    Raises:
        KubernetesError: there is none of this name, or the server does not show it.
    """
    try:
        found = client.AppsV1Api(api).read_namespaced_deployment(name, namespace, _request_timeout=REQUEST_TIMEOUT_S)
    except Failure as error:
        raise KubernetesError(
            f"the Deployment {name} in {namespace}, to which consumers are to belong, cannot be found: "
            f'{reason_of(error)}; kubernetes.owner names another one, or none with ""'
        ) from error
    return Owner(name, found.metadata.uid, found.spec.template.spec.containers[0].image)


def reason_of(error: Exception) -> str:
    """What the server said, or why it said nothing, in a line."""
    if not isinstance(error, ApiException):
        return f"the Kubernetes API does not answer: {error}"
    said = _status(error)
    message = said.get("message") or error.reason or "no reason is given"
    return f"the Kubernetes API refuses ({error.status} {said.get('reason') or error.reason}): {message}"


def helps_to_repeat(error: Exception) -> bool:
    """Whether the same request may succeed in a moment: the server did not answer, or is overloaded or starting."""
    if not isinstance(error, ApiException):
        return True
    return not error.status or error.status == TOO_MANY_REQUESTS or error.status >= 500


def _status(error: ApiException) -> dict[str, Any]:
    """The Status object in the body; empty where there is none."""
    try:
        body = json.loads(error.body)
    except (TypeError, ValueError):
        return {}
    return body if isinstance(body, dict) else {}
