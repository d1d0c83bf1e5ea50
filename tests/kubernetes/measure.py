"""How long Kubernetes lets a group wait: from a plan to its consumers, and from the death of a controller to the next.

`python -m tests.kubernetes.measure` writes the page into a folder: on the real control plane, with processes as pods.
What containers take, `make test-pods` prints.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kubernetes import client

from app.jars import DELTA, KAFKA, obtain
from app.java import find_java
from app.topics import Cluster
from bench.figures import markdown_table, run_facts, write_page
from bench.quiet import LoadBefore, add_busy, await_quiet
from controller.kubernetes.decide.deployment import parse_template
from controller.kubernetes.fleet import KubernetesFleet
from controller.kubernetes.settings import KubernetesSettings
from domain.consumer_class import ORDINARY
from sandbox.broker import Broker
from sandbox.spark import SparkConnectServer
from tests.go_program import build
from tests.kubernetes.control_plane import MODULE, ControlPlane
from tests.kubernetes.group import HIGH, LOW, PARTITIONS, GroupOnKubernetes, Readiness, a_group
from tests.kubernetes.nodes import a_node
from tests.tools import GO

CONSUMERS = 20
REPETITIONS = 5
TAKEOVERS = 3
TOPIC = "measured"
TEMPLATE = """
apiVersion: apps/v1
kind: Deployment
spec: {template: {spec: {terminationGracePeriodSeconds: 30, containers: [{name: consumer, image: sleeps}]}}}
"""

Figures = dict[str, list[float]]
"""In seconds, by what they are of."""


def measure_fleet(control_plane: ControlPlane) -> Figures:
    """The controller's Deployments by themselves: their pods are processes that do nothing."""
    template = parse_template(TEMPLATE)
    fleet = KubernetesFleet(
        control_plane.client(),
        namespace="default",
        group="lake",
        template=lambda _: template,
        settings=lambda: {ORDINARY: ""},
        owner=None,
        may_act=lambda: True,
    )
    apps = client.AppsV1Api(control_plane.client())

    def shown(is_counted: Callable[[client.V1Deployment], object]) -> int:
        fleet.consumers()
        return sum(1 for each in apps.list_namespaced_deployment("default").items if is_counted(each))

    applied, ready, gone = list[float](), list[float](), list[float]()
    numbers = range(1, CONSUMERS + 1)
    for _ in range(REPETITIONS):
        began = time.monotonic()
        for consumer in numbers:
            fleet.create(consumer)
        applied.append(seconds_until(lambda: shown(lambda _: True) == CONSUMERS, began))
        ready.append(seconds_until(lambda: shown(lambda each: each.status.ready_replicas) == CONSUMERS, began))
        began = time.monotonic()
        for consumer in numbers:
            fleet.delete(consumer)
        gone.append(seconds_until(lambda: not fleet.consumers(), began))
    fleet.close()
    return {
        f"{CONSUMERS} consumers: from the plan until all Deployments are applied": applied,
        f"{CONSUMERS} consumers: from the plan until all pods are ready (processes that do nothing)": ready,
        f"{CONSUMERS} consumers: from their end by plan until all pods are gone": gone,
    }


def measure_group(group: GroupOnKubernetes) -> Figures:
    """A whole group: kcga's own processes, with a broker and Spark."""
    with group.load(LOW), Readiness(group.core) as first:
        group.wait_until(lambda: group.all_are_read_by(1, 1))
    takeovers = []
    with group.load(HIGH):
        with Readiness(group.core) as more:
            group.wait_until(lambda: group.all_are_read_by(2, 4))
        for _ in range(TAKEOVERS):
            group.wait_until(lambda: group.has_a_standby)
            takeovers.append(group.kill_controller())
    return {
        "a consumer: from its pod until it is ready, with Kafka and Spark": [
            *first.seconds("consumer"),
            *more.seconds("consumer"),
        ],
        "a standby: from the death of the controller until it leads": takeovers,
    }


def seconds_until(condition: Callable[[], bool], began: float) -> float:
    while not condition():
        time.sleep(0.01)
    return time.monotonic() - began


def page(figures: Figures, before: LoadBefore) -> str:
    rows = [
        (what, len(values), f"{min(values):.2f}", f"{statistics.median(values):.2f}", f"{max(values):.2f}")
        for what, values in figures.items()
    ]
    facts = run_facts("tests.kubernetes.measure", before, [("Lease", f"`lease_s = {KubernetesSettings().lease_s}`")])
    return f"""\
# How long Kubernetes lets a group wait

On a real control plane, with pods that are processes of the same machine. It is wanted that {CONSUMERS} Deployments
are applied within 1 s, and that a standby takes over within 15 s. What containers take, `make test-pods` prints.

{facts}

{markdown_table(("what, in seconds", "times", "least", "median", "most"), rows)}
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.kubernetes.measure", description=(__doc__ or "").partition(":")[0]
    )
    parser.add_argument("--folder", type=Path, default=Path("docs/benchmarks"), help="for the page (%(default)s)")
    add_busy(parser)
    options = parser.parse_args()
    before = await_quiet(options.busy)
    go = GO.find()
    assert go is not None, "there is no Go"
    java = find_java()
    with (
        tempfile.TemporaryDirectory() as made,
        ControlPlane(Path(made, "control-plane"), build(go, MODULE)) as control_plane,
        a_node(control_plane, Path(made, "pods")) as node,
        Broker(Path(made, "broker"), jars=obtain(KAFKA), java=java) as broker,
        SparkConnectServer(Path(made, "spark"), jars=obtain(DELTA), java=java) as spark,
    ):
        figures = measure_fleet(control_plane)
        Cluster(broker.bootstrap_servers).create({TOPIC: PARTITIONS})
        consumer = {"spark_remote": spark.remote, "lake_root": str(Path(made, "lake"))}
        with a_group(control_plane, node, broker.bootstrap_servers, TOPIC, consumer, Path(made)) as group:
            figures |= measure_group(group)
    write_page(options.folder / "deployments.md", page(figures, before))


if __name__ == "__main__":
    main()
