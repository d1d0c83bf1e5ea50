"""The controller and its Deployments on a real API server that lets only some of their pods be."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from kubernetes import client

from controller.decide.commands import Claim
from controller.decide.history import Beginning, claiming
from controller.kafka import Received, Sent
from controller.kubernetes.decide.deployment import parse_template
from controller.kubernetes.fleet import KubernetesFleet
from controller.runner import run
from controller.settings import ControllerSettings
from domain.assignment import ConsumerId
from domain.consumer_class import ORDINARY
from domain.messages import Asked, ConsumerReport, ControllerClaim, Decision, Restraint, WriteSpeedReport
from domain.partitions import TopicPartition
from domain.speeds import WriteSpeeds
from solver import solve
from tests.controller.simulated_consumer import FakeConsumer
from tests.controller.simulated_lake import Lake
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.process_kubelet import ProcessKubelet
from tests.patience import wait_until

SETTINGS = ControllerSettings(
    consumer_capacity=100.0,
    packing_capacity=80.0,
    least_interval_s=0.1,
    interval_s=1.0,
    ready_timeout_s=60.0,
    creation_retry_s=6.0,
    engine="mbfp",
)
PARTITIONS = [TopicPartition("orders", number) for number in range(4)]
TEMPLATE = """
apiVersion: apps/v1
kind: Deployment
spec: {template: {spec: {terminationGracePeriodSeconds: 1, containers: [{name: consumer, image: sleeps}]}}}
"""


class Link:
    """What a consumer whose pod is ready would say, and what the controller says to it."""

    def __init__(self, ready: Callable[[], set[ConsumerId]]) -> None:
        self.speed = 40.0
        self.decisions: list[Decision] = []
        self.consumers: dict[ConsumerId, FakeConsumer] = {}
        self._lake = Lake(Random(1))
        self._ready = ready
        self._claims: list[ControllerClaim] = []

    def begin(self) -> Beginning:
        return Beginning(epoch=1)

    def decided_since(self, _: float) -> list[Decision]:
        return []

    def claim(self, claim: Claim, at: float) -> ControllerClaim:
        return claiming(claim, 1, "1", at, 0)

    def heard(self, at: float) -> Asked:
        return Asked(at=at, heard_to=0, speeds_heard_to=0)

    def receive(self, timeout_s: float) -> list[Received]:
        time.sleep(timeout_s)
        ready = self._ready()
        for consumer in ready - self.consumers.keys():
            self.consumers[consumer] = FakeConsumer(consumer, f"pod {consumer}")
        claims, self._claims = self._claims, []
        speeds = WriteSpeeds(time.time(), dict.fromkeys(PARTITIONS, self.speed))
        reports: list[ConsumerReport] = []
        for consumer in ready:
            self.consumers[consumer].step(self._lake, seconds=0.5)
            reports += self.consumers[consumer].take_reports()
        return [*claims, WriteSpeedReport.of(speeds), *reports]

    def send(self, messages: list[Sent]) -> None:
        for message in messages:
            if isinstance(message, Decision):
                self.decisions.append(message)
            elif isinstance(message, ControllerClaim):
                self._claims.append(message)
            elif (consumer := self.consumers.get(message.consumer)) is not None:
                consumer.inbox.append(message)

    def held(self) -> dict[ConsumerId, set[TopicPartition]]:
        return {number: set(consumer.held) for number, consumer in list(self.consumers.items())}


@pytest.mark.slow(75)
def test_a_quota_limits_the_next_plan_and_moves_nothing_until_there_is_room(
    control_plane: ControlPlane,
    kubelet: ProcessKubelet,  # noqa: ARG001
    namespace: str,
) -> None:
    looks = control_plane.client(insists=True)
    core, apps = client.CoreV1Api(looks), client.AppsV1Api(looks)
    quota = {"metadata": {"name": "pods"}, "spec": {"hard": {"pods": "2"}}}
    core.create_namespaced_resource_quota(namespace, quota)
    wait_until(lambda: bool(core.read_namespaced_resource_quota("pods", namespace).status.hard))
    template = parse_template(TEMPLATE)
    fleet = KubernetesFleet(
        control_plane.client(),
        namespace=namespace,
        group="lake",
        template=lambda _: template,
        settings=lambda: {ORDINARY: ""},
        owner=None,
        may_act=lambda: True,
    )

    def ready() -> set[ConsumerId]:
        shown = apps.list_namespaced_deployment(namespace).items
        return {int(each.metadata.labels["kcga/consumer"]) for each in shown if each.status.ready_replicas}

    link, stop = Link(ready), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        controller = pool.submit(run, SETTINGS, link, fleet, solve, stop)
        try:
            wait_until(lambda: sum(map(len, link.held().values())) == len(PARTITIONS))
            before = link.held()
            assert sorted(before) == [1, 2]
            link.speed = 70.0
            wait_until(lambda: any(each.by is Restraint.CREATION for each in link.decisions[-1].held_back))
            assert link.held() == before
            core.patch_namespaced_resource_quota("pods", namespace, {"spec": {"hard": {"pods": "10"}}})
            wait_until(lambda: all(len(held) == 1 for held in link.held().values()) and len(link.held()) == 4)
        finally:
            stop.set()
            controller.result()
    for consumer in sorted(fleet.consumers()):
        fleet.delete(consumer)
    wait_until(lambda: not fleet.consumers())
    fleet.close()
