"""The Role that is shipped: nothing that the controller does is refused, and it would be with any verb less."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product, starmap
from typing import Any

import pytest
import structlog
import yaml
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from cli.commands.deploy import OVERLAYS
from controller.kubernetes.api import Failure, KubernetesError, find_owner
from controller.kubernetes.decide.deployment import parse_template
from controller.kubernetes.election import Election
from controller.kubernetes.fleet import KubernetesFleet
from domain.consumer_class import ORDINARY
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.process_kubelet import ProcessKubelet
from tests.patience import wait_until

ACCOUNT = "kcga-controller"
COMPLETE_WITHIN_S = 5.0
"""A creation that is refused is tried again for so long."""
ACCOUNTS = OVERLAYS.parent / "base" / "accounts.yaml"
TEMPLATE = """
apiVersion: apps/v1
kind: Deployment
spec: {template: {spec: {terminationGracePeriodSeconds: 1, containers: [{name: consumer}]}}}
"""


def shipped_rules() -> list[dict[str, Any]]:
    (role,) = (each for each in yaml.safe_load_all(ACCOUNTS.read_text()) if each["kind"] == "Role")
    rules: list[dict[str, Any]] = role["rules"]
    return rules


VERBS = [(number, verb) for number, rule in enumerate(shipped_rules()) for verb in rule["verbs"]]


@dataclass
class Account:
    """The controller's service account in a namespace, with a Role of these rules."""

    control_plane: ControlPlane
    namespace: str

    def allow(self, rules: list[dict[str, Any]]) -> client.ApiClient:
        """A client that has exactly these rights."""
        admin = self.control_plane.client()
        objects = [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}},
            *(each for each in yaml.safe_load_all(ACCOUNTS.read_text()) if each["kind"] == "RoleBinding"),
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "Role",
                "metadata": {"name": ACCOUNT},
                "rules": [rule for rule in rules if rule["verbs"]],
            },
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": ACCOUNT},
                "spec": {
                    "replicas": 0,
                    "selector": {"matchLabels": {"app": "x"}},
                    "template": {
                        "metadata": {"labels": {"app": "x"}},
                        "spec": {"containers": [{"name": "controller", "image": "sleeps"}]},
                    },
                },
            },
        ]
        for each in objects:
            for subject in each.get("subjects", ()):
                subject["namespace"] = self.namespace
        self.control_plane.kubectl(
            "apply", f"--namespace={self.namespace}", "--filename=-", stdin=yaml.safe_dump_all(objects)
        )
        answer = client.CoreV1Api(admin).create_namespaced_service_account_token(ACCOUNT, self.namespace, {"spec": {}})
        allowed = self.control_plane.client(answer.status.token)
        wait_until(lambda: all(is_granted(allowed, self.namespace, rule) for rule in rules))
        return allowed


def is_granted(api: client.ApiClient, namespace: str, rule: dict[str, Any]) -> bool:
    """Whether the server knows of all rights of the rule by now."""

    def may(group: str, resource: str, verb: str, name: str | None) -> bool:
        resource, _, part = resource.partition("/")
        asked = {"group": group, "resource": resource, "subresource": part, "verb": verb, "name": name}
        review = {"spec": {"resourceAttributes": {"namespace": namespace, **asked}}}
        return bool(client.AuthorizationV1Api(api).create_self_subject_access_review(review).status.allowed)

    names = rule.get("resourceNames", [None])
    try:
        return all(starmap(may, product(rule["apiGroups"], rule["resources"], rule["verbs"], names)))
    except Failure:
        return False


@pytest.fixture
def account(control_plane: ControlPlane, kubelet: ProcessKubelet, namespace: str) -> Iterator[Account]:  # noqa: ARG001
    yield Account(control_plane, namespace)
    apps = client.AppsV1Api(control_plane.client())
    apps.delete_collection_namespaced_deployment(namespace)


def what_is_refused(api: client.ApiClient, namespace: str) -> list[str]:
    """Lives the life of a controller (takes the Lease and keeps it, creates a consumer and ends it, gives the Lease
    back), as far as it gets, and returns what was refused meanwhile."""
    with structlog.testing.capture_logs() as logs:

        def refused() -> list[str]:
            return [line["reason"] for line in list(logs) if "Forbidden" in str(line.get("reason"))]

        def is_lived() -> bool:
            try:
                live(api, namespace, lambda: bool(refused()))
            except KubernetesError as error:
                logs.append({"reason": str(error)})
                return bool(refused())  # an answer that came too late is no refusal: it begins again
            return True

        wait_until(is_lived)
        return refused()


def live(api: client.ApiClient, namespace: str, refused: Callable[[], bool]) -> None:
    stop, won = threading.Event(), threading.Event()
    election = Election(
        api, namespace=namespace, name=ACCOUNT, identity="a", lease_s=3, on_lost=lambda: pytest.fail("lost the lease")
    )

    def give_up() -> None:
        wait_until(lambda: won.is_set() or refused())
        if not won.is_set():
            stop.set()

    threading.Thread(target=give_up, daemon=True).start()
    if not election.win(stop):
        return
    won.set()
    template = parse_template(TEMPLATE)
    try:
        fleet = KubernetesFleet(
            api,
            namespace=namespace,
            group="lake",
            template=lambda _: template,
            settings=lambda: {ORDINARY: ""},
            owner=find_owner(api, namespace, ACCOUNT),
            may_act=lambda: election.may_act,
        )
        try:
            fleet.create(1)
            wait_until(lambda: refused() or (fleet.consumers() == {1} and is_ready(api, namespace)))
            fleet.delete(1)
            wait_until(lambda: refused() or not fleet.consumers())
        finally:
            fleet.close()
        until = election._may_act_until
        wait_until(lambda: refused() or election._may_act_until > until)
    finally:
        election.give_back()


def is_ready(api: client.ApiClient, namespace: str) -> bool:
    """Asks with the controller's own right to list."""
    try:
        listed = client.AppsV1Api(api).list_namespaced_deployment(namespace).items
    except ApiException:
        return False
    return any(each.metadata.name == "lake-consumer-1" and each.status.ready_replicas for each in listed)


def test_nothing_that_the_controller_does_is_refused(account: Account) -> None:
    assert what_is_refused(account.allow(shipped_rules()), account.namespace) == []


@pytest.mark.parametrize(("number", "verb"), VERBS)
def test_each_verb_is_needed(account: Account, monkeypatch: pytest.MonkeyPatch, number: int, verb: str) -> None:
    monkeypatch.setattr("controller.kubernetes.fleet.COMPLETE_WITHIN_S", COMPLETE_WITHIN_S)
    rules = shipped_rules()
    rules[number]["verbs"].remove(verb)
    assert what_is_refused(account.allow(rules), account.namespace)
