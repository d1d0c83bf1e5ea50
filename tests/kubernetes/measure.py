"""How long it takes from a plan to consumers, and from the death of a controller to the next one.

`python -m tests.kubernetes.measure` prints it: on the real control plane, with processes that do nothing as pods, on an
otherwise quiet machine.
"""

import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from kubernetes import client

from controller.kubernetes.deployment import parse_template
from controller.kubernetes.election import Election
from controller.kubernetes.fleet import KubernetesFleet
from controller.kubernetes.settings import KubernetesSettings
from tests.kubernetes.control_plane import ControlPlane, build, find_go
from tests.kubernetes.nodes import a_node

CONSUMERS = 20
TEMPLATE = """
apiVersion: apps/v1
kind: Deployment
spec: {template: {spec: {terminationGracePeriodSeconds: 30, containers: [{name: consumer, image: sleeps}]}}}
"""


def measure(control_plane: ControlPlane) -> None:
    api = control_plane.client()
    apps = client.AppsV1Api(api)
    template = parse_template(TEMPLATE)
    fleet = KubernetesFleet(
        api, namespace="default", group="lake", template=lambda: template, owner=None, may_act=lambda: True
    )
    numbers = range(1, CONSUMERS + 1)

    def made() -> int:
        fleet.consumers()
        return len(fleet._deployments.objects())

    def ready() -> int:
        fleet.consumers()
        return sum((each.status.ready_replicas or 0) for each in fleet._deployments.objects().values())

    began = time.monotonic()
    for consumer in numbers:
        fleet.create(consumer)
    tell(f"{CONSUMERS} consumers applied", began, lambda: made() == CONSUMERS)
    tell(f"{CONSUMERS} consumers ready", began, lambda: ready() == CONSUMERS)
    began = time.monotonic()
    for consumer in numbers:
        fleet.delete(consumer)
    tell(f"{CONSUMERS} consumers and their pods gone", began, lambda: not fleet.consumers())
    began = time.monotonic()
    fleet.create(1)
    tell("one consumer ready", began, lambda: ready() == 1)
    fleet.delete(1)
    tell("and gone", time.monotonic(), lambda: not fleet.consumers())
    fleet.close()
    assert not apps.list_namespaced_deployment("default").items


def measure_election(control_plane: ControlPlane) -> None:
    lease_s = KubernetesSettings().lease_s
    stop = threading.Event()
    first, second = (
        Election(
            control_plane.client(),
            namespace="default",
            name="kcga-controller",
            identity=identity,
            lease_s=lease_s,
            on_lost=lambda: None,
        )
        for identity in "ab"
    )
    first.win(stop)
    standby = threading.Thread(target=second.win, args=(stop,))
    standby.start()
    time.sleep(lease_s)
    first._end.set()  # it gives no sign any more
    tell(f"a standby holds the lease (lease_s = {lease_s})", time.monotonic(), lambda: second.may_act)
    standby.join()
    second.give_back()


def tell(what: str, began: float, condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.01)
    print(f"{what:50} {time.monotonic() - began:6.2f} s")  # noqa: T201


def main() -> None:
    go = find_go()
    assert go is not None, "there is no Go"
    with (
        tempfile.TemporaryDirectory() as folder,
        ControlPlane(Path(folder, "control-plane"), build(go)) as control_plane,
        a_node(control_plane, Path(folder, "pods")),
    ):
        measure(control_plane)
        measure_election(control_plane)


if __name__ == "__main__":
    main()
