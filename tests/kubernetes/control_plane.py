"""A real Kubernetes without nodes: etcd, API server, controller manager, scheduler and kubectl, all one program.

The program is built from the Go module in `controlplane/`; `python -m tests.prepare` builds it ahead of the tests.
"""

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import psutil
import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from app.child import Child
from app.errors import KcgaError
from controller.kubernetes.api import Unanswered
from sandbox.ports import LOOPBACK, free_port, listens
from tests.patience import PATIENCE_S, wait_until

MODULE = Path(__file__).with_name("controlplane")
TRIES = 3
"""So often it is started where meanwhile others have taken a port that was free."""
_TAKEN = "address already in use"
_INSISTS = urllib3.Retry(
    total=None,
    connect=0,
    read=0,
    redirect=0,
    other=0,
    status=200,
    status_forcelist=(429, 500, 503, 504),
    allowed_methods={"GET"},
    backoff_factor=0.2,
    backoff_max=3,
    raise_on_status=False,
)
"""For ten minutes."""

_CONTROLLERS = (
    "deployment-controller",
    "disruption-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
)


class ControlPlane:
    """The control plane, from entering the context to leaving it.

    Args:
        folder: takes all its files.
        program: what `build` made of `MODULE`.
        address: where the API server listens; a free port of this machine alone if not given, chosen on entry.
    """

    def __init__(self, folder: Path, program: Path, address: tuple[str, int] | None = None) -> None:
        self._folder = folder
        self._program = program
        self._admin_token = secrets.token_hex(16)
        self._address = address
        self._host, self._port = address or (LOOPBACK, 0)
        self._etcd_port = 0
        self._stack = contextlib.ExitStack()
        self._api_server: Child | None = None

    @property
    def host(self) -> str:
        return self._host

    @property
    def port(self) -> int:
        return self._port

    @property
    def ca_file(self) -> Path:
        """What clients check the server's certificate against."""
        return self._folder / "certificates" / "apiserver.crt"

    @property
    def kubeconfig(self) -> Path:
        """Of a user who may do everything."""
        return self._folder / "kubeconfig"

    def client(self, token: str | None = None, *, insists: bool = False) -> client.ApiClient:
        """A client with the rights of a token; without one it may do everything.

        One that insists looks again where the server says that it cannot answer just now, as where etcd is slow: for
        what a test looks with, never for what it tests.
        """
        # Made from nothing: a copy of another configuration would silently stay that one's user.
        configuration = client.Configuration(
            host=f"https://{self.host}:{self._port}",
            api_key={"BearerToken": token or self._admin_token},
            api_key_prefix={"BearerToken": "Bearer"},
            ssl_ca_cert=str(self.ca_file),
        )
        configuration.retries = _INSISTS if insists else False
        configuration.connection_pool_maxsize = 32
        return client.ApiClient(configuration)

    def kubectl(self, *arguments: str | Path, stdin: str | None = None) -> str:
        """What kubectl prints.

        Raises:
            AssertionError: it failed; with what it said.
        """
        command = self.kubectl_command(*arguments)
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def define(self, resource: str, *arguments: str | Path, stdin: str | None = None) -> None:
        """Has it serve what a CustomResourceDefinition defines, which `kubectl apply` is told by the arguments.

        Not by `kubectl wait`, which fails as long as the definition is so new that it has no conditions.
        """
        self.kubectl("apply", "--server-side", *arguments, stdin=stdin)

        def is_served() -> bool:
            status = json.loads(self.kubectl("get", f"crd/{resource}", "--output=json")).get("status", {})
            conditions = {each["type"]: each["status"] for each in status.get("conditions") or ()}
            return conditions.get("Established") == "True"

        wait_until(is_served, every_s=0.2)

    def remove(self, namespace: str) -> None:
        """With all that is in it; returns when it is gone."""
        self.kubectl("delete", "namespace", namespace, "--wait=true", f"--timeout={PATIENCE_S:.0f}s")

    def kubectl_command(self, *arguments: str | Path) -> list[str]:
        """How kubectl is called."""
        return [str(self._program), "kubectl", f"--kubeconfig={self.kubeconfig}", *map(str, arguments)]

    @contextlib.contextmanager
    def hanging(self) -> Iterator[None]:
        """Within the context the API server takes connections and answers nothing."""
        assert self._api_server is not None
        process = psutil.Process(self._api_server.pid)
        process.suspend()
        try:
            yield
        finally:
            process.resume()

    def kill_api_server(self) -> None:
        """Kills the API server, as an outage does, and starts it anew."""
        assert self._api_server is not None
        os.kill(self._api_server.pid, signal.SIGKILL)
        self._api_server.wait()
        self._start_api_server()

    def __enter__(self) -> Self:
        for left in reversed(range(TRIES)):
            self._host, self._port = self._address or (LOOPBACK, free_port())
            self._etcd_port = free_port()
            try:
                self._start_all()
                break
            except KcgaError:
                if not left or not any(_TAKEN in log.read_text() for log in self._folder.glob("*.log")):
                    raise
                shutil.rmtree(self._folder)
        return self

    def _start_all(self) -> None:
        with contextlib.ExitStack() as stack:
            self._stack = stack
            self._folder.mkdir(parents=True, exist_ok=True)
            key = subprocess.run([self._program, "key"], capture_output=True, check=True).stdout
            (self._folder / "key.pem").write_bytes(key)
            (self._folder / "tokens.csv").write_text(f'{self._admin_token},admin,admin,"system:masters"\n')
            self._write_kubeconfig()
            self._start("etcd", *self._etcd_flags()).wait_ready(lambda: listens(self._etcd_port), PATIENCE_S)
            self._start_api_server()
            self._start_controller_manager()
            self._start("kube-scheduler", f"--kubeconfig={self.kubeconfig}", "--leader-elect=false", "--secure-port=0")
            self._stack = stack.pop_all()

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start(self, part: str, *flags: str) -> Child:
        child = Child(
            part, [self._program, part, *flags], self._folder / f"{part}.log", folder=self._folder, stop_within_s=1
        )
        self._stack.enter_context(child)
        return child

    def _start_api_server(self) -> None:
        self._api_server = self._start("kube-apiserver", *self._api_server_flags())
        self._api_server.wait_ready(self._answers, PATIENCE_S)

    def _start_controller_manager(self) -> None:
        """Again and again: it ends by itself where the server has not been healthy for ten seconds."""
        managers = [self._start("kube-controller-manager", *self._controller_manager_flags())]
        core = client.CoreV1Api(self.client())

        def is_at_work() -> bool:
            if not managers[-1].running:
                managers.append(self._stack.enter_context(managers[-1].again()))
            with contextlib.suppress(ApiException, *Unanswered):
                # Which it makes, and without which no pod can be.
                core.read_namespaced_service_account("default", "default", _request_timeout=5)
                return True
            return False

        wait_until(is_at_work, lambda: managers[-1].error("the controller manager does nothing"), every_s=0.2)

    def _answers(self) -> bool:
        if not self.ca_file.exists():
            return False
        with self.client() as api, contextlib.suppress(ApiException, *Unanswered):
            client.CoreV1Api(api).read_namespace("default", _request_timeout=5)
            healthy, token = f"https://{self.host}:{self._port}/healthz", f"Bearer {self._admin_token}"
            return bool(api.call_api("GET", healthy, {"Authorization": token}, _request_timeout=5).status == 200)
        return False

    def _etcd_flags(self) -> list[str]:
        serving, peers = f"http://{LOOPBACK}:{self._etcd_port}", f"http://{LOOPBACK}:{free_port()}"
        return [
            "--data-dir=etcd",
            f"--listen-client-urls={serving}",
            f"--advertise-client-urls={serving}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--unsafe-no-fsync",
        ]

    def _api_server_flags(self) -> list[str]:
        return [
            f"--etcd-servers=http://{LOOPBACK}:{self._etcd_port}",
            f"--bind-address={self._host}",
            f"--advertise-address={self._host}",
            f"--secure-port={self._port}",
            "--cert-dir=certificates",
            "--authorization-mode=RBAC",
            "--token-auth-file=tokens.csv",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-account-key-file=key.pem",
            "--service-account-signing-key-file=key.pem",
            "--service-cluster-ip-range=10.0.0.0/24",
            # An address that leads nowhere else is none for pods.
            *(["--endpoint-reconciler-type=none"] if self._host == LOOPBACK else []),
            # Names of nodes are known to nobody here.
            "--kubelet-preferred-address-types=InternalIP",
        ]

    def _controller_manager_flags(self) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            "--service-account-private-key-file=key.pem",
            f"--root-ca-file={self.ca_file}",
            f"--controllers={','.join(_CONTROLLERS)}",
            # By default a burst of deployments waits for its turn.
            "--kube-api-qps=1000",
            "--kube-api-burst=1000",
        ]

    def _write_kubeconfig(self) -> None:
        cluster = {"server": f"https://{self.host}:{self._port}", "certificate-authority": str(self.ca_file)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": self._admin_token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
            "current-context": "test",
        }
        self.kubeconfig.write_text(json.dumps(config))  # JSON is YAML
