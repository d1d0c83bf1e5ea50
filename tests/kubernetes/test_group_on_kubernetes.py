"""A whole group on a real API server: real processes as pods, a real broker, a real Spark, and all that can fail."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from kubernetes import client

from cli.deploy import render
from cli.embedded.broker import Broker
from cli.embedded.load import LoadReport, run_load
from cli.embedded.load_profile import Course, LoadProfile
from cli.embedded.spark import SparkConnectServer
from cli.watch.observer import Observer
from consumer.verify import verify
from controller.kafka import TopicNames
from controller.status.group_view import GroupView
from domain.partitions import TopicPartition
from tests.conftest import CreateTopic
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.process_kubelet import ProcessKubelet

NAMESPACE = "kcga"
"""The overlay's."""
GROUP = "lake"
CAPACITY = 400_000
PARTITIONS = 4
LOW, HIGH = 40_000.0, 180_000.0
"""Bytes/s of a partition: one consumer has room for all, or for one."""


class GroupOnKubernetes:
    """A group that was deployed by `kcga deploy`, and what is seen of it."""

    def __init__(
        self, control_plane: ControlPlane, kubelet: ProcessKubelet, broker: Broker, topic: str, observer: Observer
    ) -> None:
        self.control_plane = control_plane
        self.kubelet = kubelet
        api = control_plane.client()
        self.apps, self.core = client.AppsV1Api(api), client.CoreV1Api(api)
        self.leases = client.CoordinationV1Api(api)
        self.observer = observer
        self.partitions = tuple(TopicPartition(topic, number) for number in range(PARTITIONS))
        self._bootstrap_servers = broker.bootstrap_servers
        self._pool = ThreadPoolExecutor(1)
        self.produced = 0

    @contextmanager
    def load(self, speed: float) -> Iterator[None]:
        """Within the context each partition is written so fast, in bytes/s."""
        profile = LoadProfile({partition: Course(((0, speed), (1e6, speed))) for partition in self.partitions})
        stop = threading.Event()
        report: Future[LoadReport] = self._pool.submit(run_load, self._bootstrap_servers, profile, stop=stop)
        try:
            yield
        finally:
            stop.set()
            done = report.result()
            assert not done.undelivered, done.problem
            self.produced += sum(done.delivered.values())

    @property
    def view(self) -> GroupView:
        return self.observer.snapshot()

    @property
    def epoch(self) -> int:
        return self.view.controller_epoch or 0

    @property
    def leader(self) -> str:
        """The pod of the controller that holds the Lease."""
        holder: str = self.leases.read_namespaced_lease("kcga-controller", NAMESPACE).spec.holder_identity
        return holder.split("_")[0]

    def consumer_deployments(self) -> set[str]:
        selector = "app.kubernetes.io/component=consumer"
        listed = self.apps.list_namespaced_deployment(NAMESPACE, label_selector=selector).items
        return {each.metadata.name for each in listed}

    def consumer_pods(self) -> list[str]:
        selector = "app.kubernetes.io/component=consumer"
        return [pod.metadata.name for pod in self.core.list_namespaced_pod(NAMESPACE, label_selector=selector).items]

    def all_are_read_by(self, fewest: int, most: int) -> bool:
        """Whether every partition has a reader, and there are so many consumers, each with a Deployment."""
        view = self.view
        readers = {consumer.consumer for consumer in view.consumers if consumer.partitions and not consumer.silent}
        return (
            not view.transits
            and view.partitions == set(self.partitions)
            and fewest <= len(readers) <= most
            and self.consumer_deployments() == {f"{GROUP}-consumer-{number}" for number in readers}
        )

    def kill(self, pod: str) -> None:
        """Its process is killed, not asked; and the API forgets it at once."""
        process = psutil.Process(self.kubelet.processes()[pod])
        process.kill()
        self.core.delete_namespaced_pod(pod, NAMESPACE, grace_period_seconds=0)

    def story(self) -> str:
        """All that is needed to see why something did not come about."""
        pods = self.control_plane.kubectl("get", "pods,deployments", f"--namespace={NAMESPACE}", "--output=wide")
        logs = [f"--- {pod}\n{self.kubelet.log_of(pod)[-6000:]}" for pod in sorted(self.kubelet.processes())]
        return "\n".join([str(self.view), pods, *logs])

    def wait_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 180
        while not condition():
            assert time.monotonic() < deadline, self.story()
            time.sleep(0.2)

    def close(self) -> None:
        self._pool.shutdown()


@pytest.fixture
def group(
    control_plane: ControlPlane,
    kubelet: ProcessKubelet,
    kubectl: None,  # noqa: ARG001
    broker: Broker,
    spark_server: SparkConnectServer,
    create_topic: CreateTopic,
    unique_name: str,
    tmp_path: Path,
    lake_root: Path,
) -> Iterator[GroupOnKubernetes]:
    topic = create_topic(unique_name, partitions=PARTITIONS)
    names = {name: f"{unique_name}.{name}" for name in ("write_speed", "metadata", "decisions")}
    tables: dict[str, dict[str, Any]] = {
        "kafka": {"bootstrap_servers": broker.bootstrap_servers, "group": unique_name},
        "topics": names,
        "monitor": {"topics": [topic], "window_s": 5},
        "controller": {"consumer_capacity": CAPACITY, "interval_s": 5, "scale_down_window_s": 5, "max_consumers": 8},
        "consumer": {"spark_remote": spark_server.remote, "lake_root": str(lake_root), "wait_time_secs": 2},
        "kubernetes": {"name": GROUP},
    }
    file = tmp_path / "settings.toml"
    file.write_text(
        "".join(
            f"[{table}]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in entries.items())
            for table, entries in tables.items()
        )
    )
    control_plane.kubectl("apply", "--server-side", "--filename=-", stdin=render(file, "local", None))
    with ExitStack() as stack:
        stack.callback(control_plane.kubectl, "delete", "namespace", NAMESPACE, "--wait=true", "--timeout=120s")
        observer = stack.enter_context(Observer(broker.bootstrap_servers, names=TopicNames(**names)))
        group = GroupOnKubernetes(control_plane, kubelet, broker, topic, observer)
        stack.callback(group.close)
        yield group


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_group_converges_whatever_fails_and_the_lake_has_every_record_once(
    group: GroupOnKubernetes, spark_server: SparkConnectServer, lake_root: Path
) -> None:
    with group.load(LOW):
        group.wait_until(lambda: group.all_are_read_by(1, 1))
    with group.load(HIGH):
        group.wait_until(lambda: group.all_are_read_by(2, 4))

        epoch, leader = group.epoch, group.leader
        group.kill(leader)
        group.wait_until(lambda: group.epoch > epoch)
        assert group.leader != leader
        group.wait_until(lambda: group.all_are_read_by(2, 4))

        killed = group.consumer_pods()[0]
        group.kill(killed)
        group.wait_until(lambda: killed not in group.consumer_pods() and group.all_are_read_by(2, 4))

        deleted = sorted(group.consumer_deployments())[0]
        uid = group.apps.read_namespaced_deployment(deleted, NAMESPACE).metadata.uid
        group.apps.delete_namespaced_deployment(deleted, NAMESPACE, propagation_policy="Background")
        group.wait_until(lambda: uid not in uids(group) and group.all_are_read_by(2, 4))

    epoch = group.epoch
    with group.load(LOW):
        with group.control_plane.hanging():
            time.sleep(20)
        group.wait_until(lambda: group.all_are_read_by(1, 1) and len(group.consumer_pods()) == 1)
    assert group.epoch == epoch, "a controller that could not renew its lease goes on"

    group.wait_until(lambda: group.view.lag == 0)
    group.observer.catch_up(30)
    assert group.observer.most_readers().count == 1
    (topic,) = {partition.topic for partition in group.partitions}
    accounts = verify(spark_server.remote, str(lake_root), [topic])
    assert sum(account.distinct_offsets for account in accounts.values()) == group.produced > 0
    assert not any(account.doubled for account in accounts.values())


def uids(group: GroupOnKubernetes) -> set[str]:
    return {each.metadata.uid for each in group.apps.list_namespaced_deployment(NAMESPACE).items}
