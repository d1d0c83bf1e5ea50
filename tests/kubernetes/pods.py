"""Whole groups as they are in production: a real kubelet, containerd, and pods of the image that `make image` builds.

`make test-pods` runs it, and nothing else does: it takes minutes, root, and programs that not every machine has.
"""

import base64
import json
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from typer.testing import CliRunner

from app.child import Child
from app.java import Java
from cli.chart import COMPONENTS
from cli.main import app
from consumer.settings import TOKEN
from consumer.verify import verify
from sandbox.ports import LOOPBACK, free_port, listens
from tests.conftest import CreateTopic
from tests.go_program import program
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.group import (
    HIGH,
    LARGE,
    LOW,
    NAMESPACE,
    PARTITIONS,
    GroupOnKubernetes,
    Readiness,
    a_group,
    pods_and_logs,
    require_a_large_one_comes_and_goes,
    write_template_of_large,
)
from tests.kubernetes.real_node import API_ADDRESS, MODULE, Container, RealNode, missing, set_up_network
from tests.kubernetes.secured_group import (
    CERTIFICATES,
    CHART,
    grant_rights,
    helm,
    secrets_of,
    settings_file,
    values_of,
)
from tests.object_store import BUCKET, gcs
from tests.object_store.gcs import GCS
from tests.object_store.s3 import S3
from tests.patience import wait_until
from tests.secure_cluster import DATA, Cluster, produce, secure_cluster
from tests.services import SharedBroker, SharedSpark

USER = "10001"
PORT = 8470
"""Of health, figures and the status page."""


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
    request: pytest.FixtureRequest,
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
    more = getattr(request, "param", "")
    write_template_of_large(tmp_path)
    with a_group(control_plane, node, broker.bootstrap_servers, topic, consumer, tmp_path, more=more) as group:
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

        killed = group.a_running_consumer()
        group.kill(killed)
        group.wait_until(lambda: killed not in group.consumer_pods() and group.all_are_read_by(2, 4))

    with group.load(LOW):
        group.wait_until(lambda: group.all_are_read_by(1, 1) and len(group.consumer_pods()) == 1)
    group.require_all_once(spark_server.remote, lake_root)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("group", [LARGE], indirect=True, ids=["with a class"])
def test_a_partition_too_fast_for_an_ordinary_consumer_has_a_large_one_in_a_pod_of_its_own_template(
    group: GroupOnKubernetes, spark_server: SharedSpark, lake_root: Path
) -> None:
    require_a_large_one_comes_and_goes(group)
    group.require_all_once(spark_server.remote, lake_root)


def by_deploy(_values: Mapping[str, Any], settings: Path) -> None:
    done = CliRunner().invoke(app, ["deploy", "--settings", str(settings)], catch_exceptions=False)
    assert done.exit_code == 0, done.output


def by_helm(values: Mapping[str, Any], _settings: Path) -> None:
    done = helm("upgrade", "--install", "kcga", CHART, namespace=NAMESPACE, values=values)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def cluster(java: Java, tmp_path: Path) -> Iterator[Cluster]:
    with secure_cluster(tmp_path, java) as cluster:
        yield cluster


@pytest.fixture
def store(request: pytest.FixtureRequest, java: Java, tmp_path: Path) -> Iterator[S3 | GCS]:
    folder = tmp_path / "store"
    with S3(folder) if request.param == "S3" else GCS(folder, program(gcs.MODULE), java) as store:
        yield store


@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("kubectl")
@pytest.mark.parametrize(("store", "install"), [("S3", by_deploy), ("GCS", by_helm)], indirect=["store"])
def test_one_command_brings_a_stack_whose_records_reach_a_bucket_once(
    control_plane: ControlPlane,
    node: RealNode,
    cluster: Cluster,
    store: S3 | GCS,
    install: Callable[[Mapping[str, Any], Path], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spark's server among it, which is killed and replaced meanwhile; each component is a user with least rights, of
    brokers with a private authority."""
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig))
    root = f"{store.scheme}://{BUCKET}/lake"
    values = values_of(cluster, {"spark_remote": "sc://kcga-spark:15002", "lake_root": root})
    values["spark"] = {"resources": {"requests": {"cpu": "50m"}}}
    file = settings_file(values, tmp_path / "settings.toml")
    grant_rights(cluster, file)
    looks = control_plane.client(insists=True)
    core, apps = client.CoreV1Api(looks), client.AppsV1Api(looks)
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    core.create_namespace({"metadata": {"name": NAMESPACE, "labels": restricted}})
    secrets = secrets_of(cluster)
    token = {TOKEN: "a-secret-of-16-characters"}
    secrets["kcga-consumer"]["KCGA_CONSUMER__SPARK_CONF"] = json.dumps(token)
    secrets["kcga-spark"] = {"KCGA_SPARK__CONF": json.dumps({**store.conf, **token})}
    for name, texts in secrets.items():
        core.create_namespaced_secret(NAMESPACE, {"metadata": {"name": name}, "stringData": texts})
    if isinstance(store, GCS):
        trust_into_pods(store, core)

    def sparks() -> list[Any]:
        of = "app.kubernetes.io/component=spark"
        pods = core.list_namespaced_pod(NAMESPACE, label_selector=of).items
        return [pod for pod in pods if pod.metadata.deletion_timestamp is None]

    def until(condition: Callable[[], bool]) -> None:
        wait_until(condition, lambda: pods_and_logs(control_plane, node), every_s=0.5)

    def all_are_ready() -> bool:
        found = apps.list_namespaced_deployment(NAMESPACE).items
        components = {each.spec.template.metadata.labels["app.kubernetes.io/component"] for each in found}
        return components == {*COMPONENTS} and all(each.status.ready_replicas == each.spec.replicas for each in found)

    def comes_to(produced: int) -> bool:
        (spark,) = sparks()
        accounts = verify(f"sc://{spark.status.pod_ip}:15002", root, [DATA], conf=token).values()
        assert not any(account.doubled for account in accounts)
        return sum(account.distinct_offsets for account in accounts) == produced

    def produce_more(value: bytes) -> None:
        produce(cluster.client("admin"), DATA, [value * 500] * 500, partitions=2)

    try:
        install(values, file)
        produce_more(b"a")
        until(all_are_ready)
        for container in node.containers():
            require_confined(container)
        until(lambda: comes_to(500))

        (killed,) = sparks()
        produce_more(b"b")
        node.kill(killed.metadata.name)
        produce_more(b"c")
        until(lambda: is_ready_again(*sparks()))
        until(lambda: comes_to(1500))

        produce_more(b"d")
        control_plane.kubectl("rollout", "restart", "deployment/kcga-spark", f"--namespace={NAMESPACE}")
        produce_more(b"e")
        until(lambda: killed.metadata.name not in {pod.metadata.name for pod in sparks()} and all_are_ready())
        produce_more(b"f")
        until(lambda: comes_to(3000))
    finally:
        control_plane.remove(NAMESPACE)


def is_ready_again(pod: Any) -> bool:
    (container,) = pod.status.container_statuses
    return container.restart_count == 1 and bool(container.ready)


def trust_into_pods(store: GCS, core: client.CoreV1Api) -> None:
    """Spark's pods come to the store, and trust it, by two Secrets of theirs: variables, and certificates."""
    trusted = {store.trust_store.name: base64.b64encode(store.trust_store.read_bytes()).decode()}
    core.create_namespaced_secret(NAMESPACE, {"metadata": {"name": "kcga-spark-certificates"}, "data": trusted})
    variables = store.java_environment_with(CERTIFICATES / store.trust_store.name)
    core.patch_namespaced_secret("kcga-spark", NAMESPACE, {"stringData": variables})


def health_of(group: GroupOnKubernetes, pod: str, folder: Path) -> str:
    """What the controller in that pod says of itself, asked as an operator asks."""
    port = free_port()
    command = group.control_plane.kubectl_command(
        "port-forward", f"--namespace={NAMESPACE}", f"pod/{pod}", f"{port}:{PORT}"
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
