"""Consumers as Deployments, on a real API server."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
import structlog
import yaml
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from controller.fleet import FleetError
from controller.kubernetes.api import REQUEST_TIMEOUT_S
from controller.kubernetes.decide.deployment import Owner, Template, parse_template, read_template
from controller.kubernetes.fleet import KubernetesFleet
from domain.consumer_class import ORDINARY
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.process_kubelet import ProcessKubelet
from tests.patience import wait_until

GROUP = "lake"


def template(image: str = "sleeps", grace_s: int = 30, **pod: Any) -> Template:
    spec = {
        "terminationGracePeriodSeconds": grace_s,
        "containers": [{"name": "consumer", "image": image, "args": ["$(CONSUMER_NAME)"]}],
        **pod,
    }
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}, "spec": {"template": {"spec": spec}}}
    return parse_template(yaml.safe_dump(body))


def a_deployment(name: str) -> dict[str, Any]:
    labels = {"app": name}
    spec = {"terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": "sleeps"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }


class Cluster:
    """A namespace with the fleets that act in it."""

    def __init__(self, control_plane: ControlPlane, namespace: str) -> None:
        self.control_plane = control_plane
        self.namespace = namespace
        self.api = control_plane.client()
        looks = control_plane.client(insists=True)
        self.apps, self.core = client.AppsV1Api(looks), client.CoreV1Api(looks)
        self.fleets: list[KubernetesFleet] = []

    def fleet(
        self,
        template: Template,
        owner: Owner | None = None,
        may_act: Callable[[], bool] = lambda: True,
        settings: Callable[[], Mapping[str, str] | None] = lambda: {"ordinary": ""},
        large: Template | None = None,
    ) -> KubernetesFleet:
        templates = {"ordinary": template, "large": large or template}
        fleet = KubernetesFleet(
            self.api,
            namespace=self.namespace,
            group=GROUP,
            template=lambda class_name: templates[class_name],
            settings=settings,
            owner=owner,
            may_act=may_act,
        )
        self.fleets.append(fleet)
        return fleet

    def deployment(self, consumer: int) -> Any:
        return self.apps.read_namespaced_deployment(f"{GROUP}-consumer-{consumer}", self.namespace)

    def deployments(self) -> list[Any]:
        deployments: list[Any] = self.apps.list_namespaced_deployment(self.namespace).items
        return deployments

    def names(self) -> set[str]:
        return {each.metadata.name for each in self.deployments()}

    def pods(self) -> list[Any]:
        pods: list[Any] = self.core.list_namespaced_pod(self.namespace).items
        return pods

    def is_ready(self, consumer: int) -> bool:
        try:
            ready: int | None = self.deployment(consumer).status.ready_replicas
        except ApiException:
            return False
        return ready == 1


@pytest.fixture
def cluster(control_plane: ControlPlane, kubelet: ProcessKubelet, namespace: str) -> Iterator[Cluster]:  # noqa: ARG001
    cluster = Cluster(control_plane, namespace)
    yield cluster
    for fleet in cluster.fleets:
        fleet.close()
    for name in cluster.names():
        cluster.apps.delete_namespaced_deployment(name, namespace, propagation_policy="Background")
    wait_until(lambda: not cluster.pods())


def test_a_consumer_exists_from_its_creation_until_its_pod_is_gone(cluster: Cluster) -> None:
    fleet = cluster.fleet(template())
    fleet.create(1)
    fleet.create(4)
    assert fleet.consumers() == {1, 4}
    wait_until(lambda: fleet.consumers() == {1, 4} and cluster.is_ready(1) and cluster.is_ready(4))
    fleet.delete(1)
    wait_until(lambda: fleet.consumers() == {4})
    assert cluster.names() == {"lake-consumer-4"}
    assert [pod.metadata.labels["kcga/consumer"] for pod in cluster.pods()] == ["4"]


def test_the_consumers_of_the_controller_before_are_adopted(cluster: Cluster) -> None:
    before = cluster.fleet(template())
    before.create(2)
    wait_until(lambda: before.consumers() == {2} and cluster.is_ready(2))
    before.close()
    after = cluster.fleet(template())
    assert after.consumers() == {2}
    after.delete(2)
    wait_until(lambda: not after.consumers())
    assert not cluster.pods()


def test_who_began_with_what_outlives_the_controller(cluster: Cluster) -> None:
    before = cluster.fleet(template(), settings=lambda: {"ordinary": "a"})
    before.create(1)
    wait_until(lambda: before.consumers() == {1} and cluster.is_ready(1))
    assert before.revisions().outdated == frozenset()
    changed = cluster.fleet(template(), settings=lambda: {"ordinary": "b"})
    changed.create(2)
    wait_until(lambda: changed.consumers() == {1, 2} and cluster.is_ready(2))
    assert changed.revisions().outdated == {1}
    wait_until(lambda: before.revisions().outdated == {2})
    assert cluster.fleet(template(), settings=lambda: None).revisions().outdated == frozenset()


def test_a_consumer_is_made_from_the_template_of_its_class_which_the_next_controller_finds(cluster: Cluster) -> None:
    before = cluster.fleet(template(), settings=lambda: {"ordinary": "", "large": ""}, large=template(grace_s=7))
    before.create(1)
    before.create(2, "large")
    wait_until(lambda: before.consumers() == {1, 2} and cluster.is_ready(1) and cluster.is_ready(2))
    pods = [cluster.deployment(consumer).spec.template for consumer in (1, 2)]
    assert [pod.spec.termination_grace_period_seconds for pod in pods] == [30, 7]
    assert [pod.metadata.labels.get("kcga/class") for pod in pods] == [None, "large"]
    assert before.revisions().outdated == frozenset()
    changed = cluster.fleet(template(), settings=lambda: {"ordinary": "", "large": ""}, large=template(grace_s=8))
    assert changed.revisions().class_names == {1: "ordinary", 2: "large"}
    assert changed.revisions().outdated == {2}
    assert cluster.fleet(template()).revisions().outdated == {2}, "there is no such class any more"
    image = Owner("kcga-controller", "abc", "kcga:2")
    assert cluster.fleet(template(), owner=image, settings=lambda: {"ordinary": "b"}).revisions().outdated == {1, 2}


def test_a_deployment_of_the_version_before_names_no_revision_and_is_outdated(cluster: Cluster) -> None:
    fleet = cluster.fleet(template())
    fleet.create(1)
    wait_until(lambda: fleet.consumers() == {1} and cluster.is_ready(1))
    unnamed = {"metadata": {"annotations": {"kcga/revision": None}}}
    cluster.apps.patch_namespaced_deployment("lake-consumer-1", cluster.namespace, unnamed)
    wait_until(lambda: fleet.revisions().outdated == {1})


def test_the_deployment_says_whose_it_is_and_which_consumer(cluster: Cluster, kubelet: ProcessKubelet) -> None:
    owner = cluster.apps.create_namespaced_deployment(cluster.namespace, a_deployment("controller"))
    fleet = cluster.fleet(template(), Owner("controller", owner.metadata.uid, "sleeps"))
    fleet.create(3)
    wait_until(lambda: fleet.consumers() == {3} and cluster.is_ready(3))
    made = cluster.deployment(3)
    assert made.metadata.labels["app.kubernetes.io/instance"] == GROUP
    assert [reference.uid for reference in made.metadata.owner_references] == [owner.metadata.uid]
    assert made.spec.strategy.type == "Recreate"
    (pod,) = (pod for pod in cluster.pods() if pod.metadata.labels.get("kcga/group"))
    process = psutil.Process(kubelet.processes()[pod.metadata.name])
    # It runs from when it is made on, and is this program a moment later.
    wait_until(lambda: process.cmdline()[-1:] == ["lake-consumer-3"])
    cluster.apps.delete_namespaced_deployment("controller", cluster.namespace)
    wait_until(lambda: not fleet.consumers())


def test_a_consumer_is_not_gone_before_its_process_is(cluster: Cluster, kubelet: ProcessKubelet) -> None:
    """Somebody deletes the Deployment in the background: it is gone at once, and its process goes on."""
    fleet = cluster.fleet(template("clings", grace_s=600))
    fleet.create(1)
    wait_until(lambda: fleet.consumers() == {1} and cluster.is_ready(1))
    (pod,) = (pod.metadata.name for pod in cluster.pods())
    wait_until(lambda: "up" in kubelet.log_of(pod))
    process = psutil.Process(kubelet.processes()[pod])
    cluster.apps.delete_namespaced_deployment("lake-consumer-1", cluster.namespace, propagation_policy="Background")
    wait_until(lambda: not cluster.names())
    assert process.is_running()
    wait_until(lambda: all(each.metadata.deletion_timestamp for each in cluster.pods()))
    cluster.core.delete_namespaced_pod(pod, cluster.namespace, grace_period_seconds=1)
    wait_until(lambda: not fleet.consumers())
    assert not process.is_running()


def test_what_is_not_the_groups_is_never_touched(cluster: Cluster) -> None:
    """Neither what has a name of its own, nor what has the name of a consumer, nor another group's."""
    foreign = [a_deployment("bystander"), a_deployment("lake-consumer-1")]
    other = a_deployment("sea-consumer-1")
    other["metadata"]["labels"] = {"kcga/group": "sea", "app.kubernetes.io/component": "consumer"}
    versions = {}
    for body in (*foreign, other):
        body["spec"]["replicas"] = 0
        cluster.apps.create_namespaced_deployment(cluster.namespace, body)
    wait_until(lambda: all(each.status.observed_generation == 1 for each in cluster.deployments()))
    versions = {each.metadata.name: each.metadata.resource_version for each in cluster.deployments()}
    with structlog.testing.capture_logs() as logs:
        fleet = cluster.fleet(template())
        assert not fleet.consumers()
        fleet.create(1)
        assert fleet.consumers() == {1}
        wait_until(lambda: not fleet.consumers())
    assert [line["consumer"] for line in logs if line["log_level"] == "error"] == [1]
    assert {each.metadata.name: each.metadata.resource_version for each in cluster.deployments()} == versions


def test_a_consumer_that_nobody_asked_for_is_ended(cluster: Cluster) -> None:
    """As a request of a controller that is gone leaves it, when it is carried out late."""
    fleet = cluster.fleet(template())
    late = cluster.fleet(template())
    late.create(7)
    wait_until(lambda: bool(late.consumers()) and cluster.is_ready(7))
    late.close()
    wait_until(lambda: 7 in fleet.consumers())
    with pytest.raises(FleetError, match="exists already"):
        fleet.create(7)
    wait_until(lambda: not fleet.consumers())
    assert not cluster.names()


def test_a_controller_that_may_not_act_does_nothing_until_it_may(cluster: Cluster) -> None:
    may_act: list[bool] = []
    fleet = cluster.fleet(template(), may_act=lambda: bool(may_act))
    fleet.create(1)
    for _ in range(10):
        assert fleet.consumers() == {1}
        time.sleep(0.05)
    assert not cluster.names()
    may_act.append(True)
    wait_until(lambda: fleet.consumers() == {1} and cluster.is_ready(1))
    may_act.clear()
    fleet.delete(1)
    for _ in range(10):
        assert fleet.consumers() == {1}
        time.sleep(0.05)
    assert cluster.names() == {"lake-consumer-1"}


def test_a_consumer_whose_pod_is_killed_goes_on_under_its_number(cluster: Cluster, kubelet: ProcessKubelet) -> None:
    fleet = cluster.fleet(template())
    fleet.create(1)
    wait_until(lambda: fleet.consumers() == {1} and cluster.is_ready(1))
    (killed,) = (pod.metadata.name for pod in cluster.pods())
    process = psutil.Process(kubelet.processes()[killed])
    cluster.core.delete_namespaced_pod(killed, cluster.namespace, grace_period_seconds=0)
    wait_until(lambda: not process.is_running())
    wait_until(lambda: [pod.metadata.name for pod in cluster.pods()] not in ([], [killed]) and cluster.is_ready(1))
    assert fleet.consumers() == {1}


@pytest.mark.parametrize(
    ("made_from", "reason"),
    [
        (template("missing"), "ErrImagePull|CreateContainerError"),
        (template(nodeSelector={"disk": "none"}), "no node takes its pod"),
        (template("ends"), "CrashLoopBackOff"),
    ],
)
def test_the_operator_is_told_why_a_consumer_cannot_start(cluster: Cluster, made_from: Template, reason: str) -> None:
    fleet = cluster.fleet(made_from)
    with structlog.testing.capture_logs() as logs:
        fleet.create(1)
        told_of = "a consumer cannot start"
        wait_until(lambda: fleet.consumers() == {1} and any(line["event"] == told_of for line in logs))
    (told,) = (line for line in logs if line["event"] == told_of)
    assert re.search(reason, told["reason"])
    fleet.delete(1)
    wait_until(lambda: not fleet.consumers())


def test_a_quota_that_is_used_up_is_told_and_the_others_go_on(cluster: Cluster) -> None:
    fleet = cluster.fleet(template())
    fleet.create(1)
    wait_until(lambda: fleet.consumers() == {1} and cluster.is_ready(1))
    quota = {"metadata": {"name": "pods"}, "spec": {"hard": {"pods": "1"}}}
    cluster.core.create_namespaced_resource_quota(cluster.namespace, quota)
    wait_until(lambda: bool(cluster.core.read_namespaced_resource_quota("pods", cluster.namespace).status.hard))
    with structlog.testing.capture_logs() as logs:
        fleet.create(2)
        wait_until(lambda: fleet.consumers() == {1, 2} and any("exceeded quota" in str(line) for line in logs))
    fleet.delete(2)
    wait_until(lambda: fleet.consumers() == {1})
    assert cluster.is_ready(1)


def test_what_the_api_refuses_is_said_with_its_reason(cluster: Cluster) -> None:
    refused = template(
        topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]
    )
    fleet = cluster.fleet(refused)
    with structlog.testing.capture_logs() as logs:
        fleet.create(1)
        wait_until(lambda: not fleet.consumers())
    (told,) = (line["reason"] for line in logs if line["log_level"] == "error")
    assert "422 Invalid" in told
    assert "maxSkew" in told


def test_a_field_that_does_not_exist_is_refused(cluster: Cluster) -> None:
    fleet = cluster.fleet(template(colour="blue"))
    with structlog.testing.capture_logs() as logs:
        fleet.create(1)
        wait_until(lambda: not fleet.consumers())
    (told,) = (line["reason"] for line in logs if line["log_level"] == "error")
    assert "colour" in told


def test_creations_and_deletions_outlast_a_server_that_hangs(cluster: Cluster) -> None:
    fleet = cluster.fleet(template())
    fleet.create(1)
    wait_until(lambda: fleet.consumers() == {1} and cluster.is_ready(1))
    with cluster.control_plane.hanging():
        fleet.create(2)
        fleet.delete(1)
        began = time.monotonic()
        for _ in range(looks := 80):
            assert fleet.consumers() == {1, 2}
            time.sleep(0.1)
        waited_s = time.monotonic() - began
        assert waited_s < looks * min(REQUEST_TIMEOUT_S), "the controller is held up"
    wait_until(lambda: fleet.consumers() == {2} and cluster.is_ready(2))
    assert cluster.names() == {"lake-consumer-2"}


def test_creations_and_deletions_outlast_a_server_that_is_killed(cluster: Cluster) -> None:
    fleet = cluster.fleet(template())
    fleet.create(1)
    wait_until(lambda: fleet.consumers() == {1} and cluster.is_ready(1))
    with ThreadPoolExecutor(1) as pool:
        restart = pool.submit(cluster.control_plane.kill_api_server)
        fleet.create(2)
        fleet.delete(1)
        while not restart.done():
            assert 2 in fleet.consumers()
            time.sleep(0.05)
        restart.result()
    wait_until(lambda: fleet.consumers() == {2} and cluster.is_ready(2))


def test_twenty_consumers_are_applied_at_once(cluster: Cluster) -> None:
    fleet = cluster.fleet(template())
    for consumer in range(1, 21):
        fleet.create(consumer)
    assert len(fleet.consumers()) == 20
    wait_until(lambda: bool(fleet.consumers()) and len(cluster.names()) == 20)
    wait_until(lambda: len(fleet.consumers()) == 20 and all(map(cluster.is_ready, range(1, 21))))
    for consumer in range(1, 21):
        fleet.delete(consumer)
    wait_until(lambda: not fleet.consumers())
    assert not cluster.pods()


def test_a_template_that_is_wrong_by_now_fails_the_creation_alone(cluster: Cluster, tmp_path: Path) -> None:
    fleet = KubernetesFleet(
        cluster.api,
        namespace=cluster.namespace,
        group=GROUP,
        template=lambda _: read_template(tmp_path / "consumer.yaml"),
        settings=lambda: {ORDINARY: ""},
        owner=None,
        may_act=lambda: True,
    )
    cluster.fleets.append(fleet)
    with structlog.testing.capture_logs() as logs:
        fleet.create(1)
        wait_until(lambda: not fleet.consumers())
    assert any("cannot be read" in line.get("reason", "") for line in logs)
