"""A real KEDA scales a Deployment by the scaler of `kcga watch`: `make test-keda`, since it takes long to build.

It is built from its Go module, without its other scalers, which would take an hour; its operator and its metrics server
run as processes beside the control plane of the tests.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kubernetes import client

from app.child import Child
from app.components import command
from app.jars import cache_folder
from sandbox.ports import LOOPBACK, free_port
from tests import go_program
from tests.certificates import Authority
from tests.cli.ordinary_group import RdkafkaGroup, producing, wait_for_group
from tests.conftest import CreateTopic, installed
from tests.kubernetes.control_plane import ControlPlane
from tests.secure_cluster import wait_for
from tests.services import SharedBroker
from tests.tools import GO

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3 * 3600)]

MODULE = Path(__file__).parents[1] / "cli" / "kedaproto"
PROGRAMS = ("operator", "adapter")
KEPT = ("scaler.go", "external_scaler.go", "external_mock_scaler.go")
TRIGGERS = ("external", "external-mock", "external-push")
NAMESPACE = "keda"
API = "v1beta1.external.metrics.k8s.io"
CAPACITY = 10_000
"""Of a consumer, in bytes/s."""


def built(go: Path) -> Path:
    """The folder with KEDA's programs, built if they are not there, and its source.

    Raises:
        KcgaError: it cannot be built; with what Go said.
    """
    source = go_program.source(go, MODULE)
    folder = cache_folder().absolute() / "keda" / source.name
    if all((folder / name).exists() for name in PROGRAMS):
        return folder
    copy = folder / "source"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(source, copy, copy_function=shutil.copyfile)  # modules are read-only
    for place in (copy, *(each for each in copy.rglob("*") if each.is_dir())):
        place.chmod(0o755)
    scalers = copy / "pkg" / "scalers"
    for each in scalers.glob("*.go"):
        if each.name not in KEPT:
            each.unlink()
    (scalers / "kept.go").write_text('package scalers\n\nconst externalMetricType = "External"\n')
    builder = copy / "pkg" / "scaling" / "scalers_builder.go"
    cases = r'\tcase "([^"]+)"(?:, "[^"]+")*:\n(?:\t\t.*\n)+'
    builder.write_text(re.sub(cases, lambda case: case[0] if case[1] in TRIGGERS else "", builder.read_text()))
    flags = ["-mod=readonly", "-p=1", "-buildvcs=false", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags=-s -w"]
    packages = [f"./cmd/{name}" for name in PROGRAMS]
    environment = {**os.environ, "CGO_ENABLED": "0", "GOMAXPROCS": "1"}
    arriving = folder / "new"
    arriving.mkdir(exist_ok=True)
    build: list[str | Path] = [go, "build", *flags, "-o", arriving, *packages]
    with Child("the build of KEDA", build, folder / "build.log", folder=copy, environment=environment) as child:
        if child.wait(2 * 3600) != 0:
            raise child.error("KEDA could not be built")
    for name in PROGRAMS:
        (arriving / name).replace(folder / name)
    return folder


class Aggregating(ControlPlane):
    """With autoscalers, and an API server that passes questions for metrics on."""

    def __init__(self, folder: Path, program: Path, authority: Authority) -> None:
        super().__init__(folder, program)
        self._authority, self._pair = authority, authority.key_store()

    def _api_server_flags(self) -> list[str]:
        headers = {"username": "X-Remote-User", "group": "X-Remote-Group"}
        return [
            *super()._api_server_flags(),
            f"--requestheader-client-ca-file={self._authority.certificate}",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            *(f"--requestheader-{name}-headers={header}" for name, header in headers.items()),
            f"--proxy-client-cert-file={self._pair}",
            f"--proxy-client-key-file={self._pair}",
        ]

    def _controller_manager_flags(self) -> list[str]:
        return [
            f"{flag},horizontal-pod-autoscaler-controller" if flag.startswith("--controllers=") else flag
            for flag in (*super()._controller_manager_flags(), "--horizontal-pod-autoscaler-sync-period=2s")
        ]


@pytest.fixture
def plane(kubernetes_program: Path, tmp_path: Path) -> Iterator[Aggregating]:
    authority = Authority(tmp_path / "ca")
    with Aggregating(tmp_path / "plane", kubernetes_program, authority) as plane:
        yield plane


def test_a_deployment_has_as_many_pods_as_are_advised(
    plane: Aggregating, broker: SharedBroker, create_topic: CreateTopic, unique_name: str, tmp_path: Path
) -> None:
    """By `kcga watch`, beside a real group whose load comes and goes."""
    keda, servers, port = built(installed(GO)), broker.bootstrap_servers, free_port()
    topic, brokers = create_topic(unique_name, 4), {"bootstrap.servers": servers}
    for kind in sorted((keda / "source" / "config" / "crd" / "bases").glob("*.yaml")):
        plane.kubectl("create", "-f", kind)
    plane.kubectl("create", "namespace", NAMESPACE)
    settings, said = tmp_path / "watch.toml", tmp_path / "watch.log"
    settings.write_text(
        f'[kafka]\nbootstrap_servers = "{servers}"\n[controller]\nscale_down_window_s = 0\n'
        f'[monitor]\ntopics = ["{topic}"]\ninterval_s = 0.2\nwindow_s = 3\n'
    )
    options = ("--group", unique_name, "--settings", str(settings), "--capacity", str(CAPACITY))
    watch = [*command("watch"), *options, "--keda-port", str(port)]
    with ExitStack() as running:
        logs = [said, *start(running, plane, keda, tmp_path)]
        running.enter_context(RdkafkaGroup(brokers, unique_name, topic)).join()
        wait_for_group(brokers, unique_name, members=1)
        running.enter_context(Child("kcga watch", watch, said))
        apps = client.AppsV1Api(plane.client(insists=True))

        def replicas() -> int:
            return int(apps.read_namespaced_deployment("writers", NAMESPACE).spec.replicas)

        with producing(brokers, topic, dict.fromkeys(range(4), CAPACITY // 2)):
            create(plane, deployment(), scaled(f"{LOOPBACK}:{port}", unique_name))
            wait_for(lambda: replicas() >= 3, *logs)
        wait_for(lambda: replicas() == 1, *logs)


def start(running: ExitStack, plane: ControlPlane, keda: Path, folder: Path) -> list[Path]:
    """KEDA's two programs, which trust one another's certificates; where they log."""
    authority, certificates = Authority(folder / "keda-ca"), folder / "certificates"
    pair = authority.key_store("DNS:localhost,IP:127.0.0.1", user=NAMESPACE)
    certificates.mkdir()
    for name, file in {"ca.crt": authority.certificate, "tls.crt": pair, "tls.key": pair}.items():
        shutil.copy(file, certificates / name)
    metrics, served = free_port(), free_port()
    create(plane, service(served), api_service(served))
    here = f"--cert-dir={certificates}"
    kubeconfigs = [f"--{use}-kubeconfig={plane.kubeconfig}" for use in ("lister", "authentication", "authorization")]
    flags = {
        "operator": [
            f"--metrics-service-bind-address={LOOPBACK}:{metrics}",
            "--metrics-bind-address=0",
            "--health-probe-bind-address=0",
            "--enable-webhook-patching=false",
            "--enable-apiservice-patching=false",
        ],
        "adapter": [
            f"--metrics-service-address=localhost:{metrics}",
            f"--secure-port={served}",
            f"--bind-address={LOOPBACK}",
            f"--tls-cert-file={certificates / 'tls.crt'}",
            f"--tls-private-key-file={certificates / 'tls.key'}",
            f"--port={free_port()}",
            *kubeconfigs,
        ],
    }
    own = {"POD_NAMESPACE": NAMESPACE, "KEDA_CLUSTER_OBJECT_NAMESPACE": NAMESPACE, "WATCH_NAMESPACE": ""}
    environment = {**os.environ, **own, "KUBECONFIG": str(plane.kubeconfig)}
    logs = []
    for name in PROGRAMS:
        log = folder / f"{name}.log"
        program: list[str | Path] = [keda / name, here, *flags[name]]
        running.enter_context(Child(f"KEDA's {name}", program, log, folder=folder, environment=environment))
        logs.append(log)
    return logs


def create(plane: ControlPlane, *objects: dict[str, object]) -> None:
    plane.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))


def service(port: int) -> dict[str, object]:
    """Of this machine, which is no address that a Service may lead to, and a name that one may have."""
    spec = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "metrics", "namespace": NAMESPACE},
        "spec": spec,
    }


def api_service(port: int) -> dict[str, object]:
    version, _, name = API.partition(".")
    spec = {
        "service": {"name": "metrics", "namespace": NAMESPACE, "port": port},
        "group": name,
        "version": version,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
    }
    return {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": API}, "spec": spec}


def deployment() -> dict[str, object]:
    labels = {"app": "writers"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "writer", "image": "missing"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod}
    metadata = {"name": "writers", "namespace": NAMESPACE}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def scaled(address: str, group: str) -> dict[str, object]:
    """As `docs/watch.md` has it, but that it looks more often, and shrinks at once."""
    at_once = {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}
    spec = {
        "scaleTargetRef": {"name": "writers"},
        "minReplicaCount": 1,
        "maxReplicaCount": 20,
        "pollingInterval": 2,
        "advanced": {"horizontalPodAutoscalerConfig": at_once},
        "triggers": [{"type": "external", "metadata": {"scalerAddress": address, "group": group}}],
    }
    metadata = {"name": "writers", "namespace": NAMESPACE}
    return {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": metadata, "spec": spec}
