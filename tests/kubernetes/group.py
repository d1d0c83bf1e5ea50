"""A whole group on a real API server, with a real broker: how it is deployed, loaded, watched, and taken away."""

import json
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, Self, TypeVar

import yaml
from kubernetes import client

from cli.commands.deploy import BASE, TEMPLATE_KEY, render
from consumer.verify import PartitionAccount, verify
from controller.kubernetes.decide.names import CLASS
from domain.consumer_class import ORDINARY
from domain.group_view.view import GroupView
from domain.partitions import TopicPartition
from domain.topics import TopicNames
from sandbox.load import LoadReport, run_load
from sandbox.load_profile import Course, LoadProfile
from sandbox.observer import Observer
from tests.kubernetes.control_plane import ControlPlane
from tests.patience import wait_until

T = TypeVar("T")
NAMESPACE = "kcga"
"""The overlay's."""
GROUP = "lake"
CONSUMERS = "app.kubernetes.io/component=consumer"
CAPACITY = 40_000
PARTITIONS = 4
LOW, HIGH = 4_000.0, 18_000.0
"""Bytes/s of a partition: one consumer has room for all, or for one. So few that the slowest machine reads faster: what
it is behind keeps consumers."""


class Node(Protocol):
    """What runs the pods."""

    def running(self) -> Iterable[str]:
        """The pods of which a container runs."""
        ...

    def kill(self, pod: str) -> None:
        """Kills the pod's first process, as a crash does."""
        ...

    def log_of(self, pod: str) -> str: ...


class GroupOnKubernetes:
    """A group that was deployed by `kcga deploy`, and what is seen of it."""

    def __init__(
        self,
        control_plane: ControlPlane,
        node: Node,
        bootstrap_servers: str,
        topic: str,
        observer: Observer,
        file: Path,
    ) -> None:
        self.control_plane = control_plane
        self._file = file
        self.node = node
        api = control_plane.client(insists=True)
        self.apps, self.core = client.AppsV1Api(api), client.CoreV1Api(api)
        self.leases = client.CoordinationV1Api(api)
        self.observer = observer
        self.partitions = tuple(TopicPartition(topic, number) for number in range(PARTITIONS))
        self._bootstrap_servers = bootstrap_servers
        self._pool = ThreadPoolExecutor(1)
        self.produced = 0

    @contextmanager
    def load(self, speed: float, first: float | None = None) -> Iterator[None]:
        """Within the context each partition is written so fast, in bytes/s, or the first as fast as `first`."""
        speeds = dict.fromkeys(self.partitions, speed) | ({} if first is None else {self.partitions[0]: first})
        profile = LoadProfile({partition: Course(((0, each), (1e6, each))) for partition, each in speeds.items()})
        stop = threading.Event()
        report: Future[LoadReport] = self._pool.submit(run_load, self._bootstrap_servers, profile, stop=stop)
        try:
            yield
        finally:
            stop.set()
            done = report.result()
            assert not done.undelivered, done.problem
            self.produced += sum(done.delivered.values())

    def deploy(self, image: str | None = None, *, of_consumers: str | None = None) -> None:
        """Everything by this image, and consumers by another if one is named."""
        objects = list(yaml.safe_load_all(render(self._file, "local", image)))
        for each in objects if of_consumers else ():
            if each["kind"] == "ConfigMap":
                template = yaml.safe_load(each["data"][TEMPLATE_KEY])
                template["spec"]["template"]["spec"]["containers"][0]["image"] = of_consumers
                each["data"][TEMPLATE_KEY] = yaml.safe_dump(template)
        self.control_plane.kubectl("apply", "--server-side", "--filename=-", stdin=yaml.safe_dump_all(objects))

    def consumer_images(self) -> dict[str, str]:
        """By the names of the consumers' Deployments."""
        deployments = self.apps.list_namespaced_deployment(NAMESPACE, label_selector=CONSUMERS).items
        return {each.metadata.name: each.spec.template.spec.containers[0].image for each in deployments}

    def consumer_classes(self) -> dict[str, str]:
        """The same, of their classes."""
        deployments = self.apps.list_namespaced_deployment(NAMESPACE, label_selector=CONSUMERS).items
        return {each.metadata.name: each.metadata.labels.get(CLASS, ORDINARY) for each in deployments}

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
        return set(self.consumer_images())

    def consumer_pods(self) -> list[str]:
        return [pod.metadata.name for pod in self.core.list_namespaced_pod(NAMESPACE, label_selector=CONSUMERS).items]

    def a_running_consumer(self) -> str:
        """The pod of one whose process runs: one that is only being made cannot be killed."""
        return self.wait_until(lambda: sorted({*self.consumer_pods()} & {*self.node.running()}))[0]

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
        self.node.kill(pod)
        self.core.delete_namespaced_pod(pod, NAMESPACE, grace_period_seconds=0)

    def kill_controller(self) -> float:
        """Kills the controller that acts, and waits until another one does; how long that took, in seconds."""
        epoch, leader = self.epoch, self.leader
        began = time.monotonic()
        self.kill(leader)
        self.wait_until(lambda: self.epoch > epoch and self.leader != leader)
        return time.monotonic() - began

    @property
    def has_a_standby(self) -> bool:
        """Whether two controllers are ready: one acts, one waits."""
        found = self.apps.read_namespaced_deployment("kcga-controller", NAMESPACE)
        return (found.status.ready_replicas or 0) >= 2

    def story(self) -> str:
        """All that is needed to see why something did not come about."""
        return f"{pods_and_logs(self.control_plane, self.node)}\n{self.view}"

    def wait_until(self, condition: Callable[[], T]) -> T:
        return wait_until(condition, self.story, every_s=1.0)

    def require_all_once(self, spark_remote: str, lake_root: Path) -> None:
        """All that was produced is in the lake, once, and no partition had two readers."""
        self.wait_until(lambda: self.view.lag == 0)
        self.observer.catch_up(120)
        assert self.observer.most_readers().count == 1
        (topic,) = {partition.topic for partition in self.partitions}

        def accounts() -> list[PartitionAccount]:
            """Once nothing lacks: what is seen of the lag may be older than the last records."""
            found = list(verify(spark_remote, str(lake_root), [topic]).values())
            return found if sum(each.distinct_offsets for each in found) >= self.produced else []

        found = self.wait_until(accounts)
        assert sum(account.distinct_offsets for account in found) == self.produced > 0
        assert not any(account.doubled for account in found)

    def close(self) -> None:
        self._pool.shutdown()


LARGE = f"""\
[[consumer.classes]]
name = "large"
capacity = {4 * CAPACITY}
price = 3
batch_bytes = 20_000_000
template = "large.yaml"
"""
"""Of a group that gives a partition that is faster than an ordinary consumer a larger one."""
FAST = 1.5 * CAPACITY
POOL = {"pool": "large"}
"""A label of the pods of such consumers, which their template alone has."""


def write_template_of_large(folder: Path) -> None:
    """The template of `LARGE`, for a settings file in this folder."""
    template = yaml.safe_load((BASE / TEMPLATE_KEY).read_text())
    template["spec"]["template"]["metadata"] = {"labels": POOL}
    (folder / "large.yaml").write_text(yaml.safe_dump(template))


def require_a_large_one_comes_and_goes(group: GroupOnKubernetes) -> None:
    """While a partition is too fast for an ordinary consumer, in a pod of its class's template."""

    def large() -> set[str]:
        return {name for name, of in group.consumer_classes().items() if of == "large"}

    def reads_the_fast_one() -> bool:
        held = {consumer.consumer: consumer.partitions for consumer in group.view.consumers}
        reads = {f"{GROUP}-consumer-{number}": {each.partition for each in those} for number, those in held.items()}
        return any(group.partitions[0] in reads.get(name, ()) for name in large())

    with group.load(LOW):
        group.wait_until(lambda: group.all_are_read_by(1, 1))
        assert not large()
    with group.load(LOW, FAST):
        group.wait_until(lambda: reads_the_fast_one() and group.all_are_read_by(1, 3))
        (name,) = large()
        (pod,) = group.core.list_namespaced_pod(NAMESPACE, label_selector="pool=large").items
        assert pod.metadata.name.startswith(f"{name}-")
    with group.load(LOW):
        group.wait_until(lambda: not large() and group.all_are_read_by(1, 1))


def pods_and_logs(control_plane: ControlPlane, node: Node) -> str:
    """Of the group: what they said last, and, as the ends of texts survive, at the end how the API shows them."""
    pods = control_plane.kubectl("get", "pods,deployments", f"--namespace={NAMESPACE}", "--output=wide")
    return "\n".join([*(f"--- {pod}\n{node.log_of(pod)[-6000:]}" for pod in sorted(node.running())), "---", pods])


class Readiness:
    """How long each pod of the namespace takes from its creation until it is ready, as the API shows it."""

    def __init__(self, core: client.CoreV1Api) -> None:
        self._core = core
        self._seen: dict[str, float] = {}
        self._took_s: dict[str, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="readiness", daemon=True)

    def seconds(self, component: str) -> list[float]:
        """Of the component's pods that were ready, in the order in which they were created."""
        took = [self._took_s[pod] for pod in self._seen if pod in self._took_s and f"-{component}-" in pod]
        return [round(each, 2) for each in took if math.isfinite(each)]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.05):
            pods = self._core.list_namespaced_pod(NAMESPACE).items
            now = time.monotonic()
            for pod in pods:
                name = pod.metadata.name
                is_ready = any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions or ())
                if name not in self._seen:
                    # Of one that is ready already nobody knows how long it took.
                    self._seen[name] = -math.inf if is_ready else now
                elif is_ready:
                    self._took_s.setdefault(name, now - self._seen[name])


@contextmanager
def a_group(
    control_plane: ControlPlane,
    node: Node,
    bootstrap_servers: str,
    topic: str,
    consumer: Mapping[str, Any],
    folder: Path,
    controller: Mapping[str, Any] = MappingProxyType({}),
    more: str = "",
    kubernetes: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[GroupOnKubernetes]:
    """The group that reads a topic of `PARTITIONS` partitions; gone, with its namespace, when the context ends.

    Args:
        control_plane: of the cluster.
        node: what runs its pods.
        bootstrap_servers: of the broker that has the topic.
        topic: its name, which is also the group's.
        consumer: the settings of consumers: Spark, and the lake.
        folder: takes the settings file.
        controller: further settings of the controller.
        more: further tables of the settings.
        kubernetes: further settings of Kubernetes.
    """
    names = {name: f"{topic}.{name}" for name in ("write_speed", "metadata", "decisions")}
    tables: dict[str, Mapping[str, Any]] = {
        "kafka": {"bootstrap_servers": bootstrap_servers, "group": topic},
        "topics": names,
        "monitor": {"topics": [topic], "window_s": 5},
        "controller": {
            "consumer_capacity": CAPACITY,
            "interval_s": 5,
            "scale_down_window_s": 5,
            "max_consumers": 8,
            **controller,
        },
        "consumer": {"wait_time_secs": 2, **consumer},
        "kubernetes": {"name": GROUP, **kubernetes},
    }
    file = folder / "settings.toml"
    file.write_text(
        "".join(
            f"[{table}]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in entries.items())
            for table, entries in tables.items()
        )
        + more
    )
    with ExitStack() as stack:
        stack.callback(control_plane.remove, NAMESPACE)
        observer = stack.enter_context(Observer(bootstrap_servers, names=TopicNames(**names)))
        group = GroupOnKubernetes(control_plane, node, bootstrap_servers, topic, observer, file)
        stack.callback(group.close)
        group.deploy()
        yield group
