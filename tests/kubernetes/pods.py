"""A whole group as it is in production: a real kubelet, containerd, and pods of the image that `make image` builds.

`make test-pods` runs it, and nothing else does: it takes minutes, root, and programs that not every machine has.
"""

import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.child import Child
from consumer.verify import verify
from sandbox.ports import LOOPBACK, free_port, listens
from tests.conftest import CreateTopic
from tests.go_program import program
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.group import HIGH, LOW, NAMESPACE, PARTITIONS, GroupOnKubernetes, Readiness, a_group
from tests.kubernetes.real_node import API_ADDRESS, MODULE, POD_PORT, Container, RealNode, missing, set_up_network
from tests.services import SharedBroker, SharedSpark

USER = "10001"


@pytest.fixture(scope="session")
def control_plane(kubernetes_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """In place of the one of the other tests: pods can reach it."""
    assert not missing(), f"this machine lacks {'; '.join(missing())}"
    set_up_network()
    with ControlPlane(tmp_path_factory.mktemp("control-plane"), kubernetes_program, API_ADDRESS) as control_plane:
        yield control_plane


@pytest.fixture(scope="session")
def node(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    with RealNode(control_plane, tmp_path_factory.mktemp("node"), program(MODULE)) as node:
        yield node


@pytest.fixture
def group(
    control_plane: ControlPlane,
    node: RealNode,
    kubectl: None,  # noqa: ARG001
    broker: SharedBroker,
    spark_server: SharedSpark,
    create_topic: CreateTopic,
    unique_name: str,
    tmp_path: Path,
    lake_root: Path,
) -> Iterator[GroupOnKubernetes]:
    topic = create_topic(unique_name, partitions=PARTITIONS)
    consumer = {"spark_remote": spark_server.remote, "lake_root": str(lake_root)}
    with a_group(control_plane, node, broker.bootstrap_servers, topic, consumer, tmp_path) as group:
        yield group


@pytest.mark.timeout(1800)
def test_pods_of_the_image_scale_recover_and_read_every_record_once(
    group: GroupOnKubernetes, node: RealNode, spark_server: SharedSpark, lake_root: Path, tmp_path: Path
) -> None:
    with group.load(LOW), Readiness(group.core) as low:
        group.wait_until(lambda: group.all_are_read_by(1, 1))
        for container in node.containers():
            require_confined(container)
        tell("from pod to ready, s", {part: low.seconds(part) for part in ("controller", "monitor", "consumer")})
        assert "leads, on fresh write speeds" in health_of(group, group.leader, tmp_path)
    with group.load(HIGH):
        with Readiness(group.core) as high:
            group.wait_until(lambda: group.all_are_read_by(2, 4))
        tell("consumers, from pod to ready, s", high.seconds("consumer"))

        group.wait_until(lambda: group.has_a_standby)
        tell("from the death of the controller to the next one, s", group.kill_controller())

        killed = group.consumer_pods()[0]
        group.kill(killed)
        group.wait_until(lambda: killed not in group.consumer_pods() and group.all_are_read_by(2, 4))

    with group.load(LOW):
        group.wait_until(lambda: group.all_are_read_by(1, 1) and len(group.consumer_pods()) == 1)
    group.wait_until(lambda: group.view.lag == 0)
    group.observer.catch_up(120)
    assert group.observer.most_readers().count == 1
    (topic,) = {partition.topic for partition in group.partitions}
    accounts = verify(spark_server.remote, str(lake_root), [topic])
    assert sum(account.distinct_offsets for account in accounts.values()) == group.produced > 0
    assert not any(account.doubled for account in accounts.values())


def health_of(group: GroupOnKubernetes, pod: str, folder: Path) -> str:
    """What the controller in that pod says of itself, asked as an operator asks."""
    port = free_port()
    command = group.control_plane.kubectl_command(
        "port-forward", f"--namespace={NAMESPACE}", f"pod/{pod}", f"{port}:{POD_PORT}"
    )
    with Child("kubectl port-forward", command, folder / "port-forward.log") as forward:
        forward.wait_ready(lambda: listens(port), 30)
        with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/readyz", timeout=10) as answer:
            text: str = answer.read().decode()
    return text


def require_confined(container: Container) -> None:
    """What the manifests promise, as the kernel sees it."""
    assert set(container.status("Uid").split()) == {USER}
    assert set(container.status("Gid").split()) == {USER}
    assert int(container.status("CapEff"), 16) == int(container.status("CapBnd"), 16) == 0
    assert container.status("NoNewPrivs") == "1"
    assert container.status("Seccomp") == "2"
    assert not container.is_writable("/")
    assert container.is_writable("/tmp")  # noqa: S108


def tell(what: str, figures: object) -> None:
    print(f"{what}: {figures}")  # noqa: T201
