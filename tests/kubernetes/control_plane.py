"""A real Kubernetes without nodes: etcd, API server, controller manager, scheduler and kubectl, all one program.

The program is built from the Go module in `controlplane/` and kept in kcga's cache folder by the hash of that module.
`python -m tests.kubernetes.control_plane` builds it ahead of the tests.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

import psutil
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from cli.embedded.child import Child
from cli.embedded.jars import cache_folder
from cli.embedded.ports import LOOPBACK, free_port, listens
from cli.errors import KcgaError
from controller.kubernetes.api import Unanswered

MODULE = Path(__file__).with_name("controlplane")
READY_WITHIN_S = 120.0

_BUILD_WITHIN_S = 45 * 60
_CONTROLLERS = (
    "deployment-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
)


def find_go() -> Path | None:
    """The Go command; None where there is none."""
    found = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    return Path(found) if found else None


def program() -> Path:
    """Where the program is, once it is built."""
    digest = hashlib.sha256()
    for file in ("go.mod", "go.sum", "main.go"):
        digest.update((MODULE / file).read_bytes())
    return cache_folder().absolute() / "control-plane" / digest.hexdigest()[:16] / "controlplane"


def build(go: Path) -> Path:
    """The program, built if it is not there. Takes minutes; several processes may ask for it at once.

    Raises:
        KcgaError: it cannot be built; with what Go said.
    """
    built = program()
    built.parent.mkdir(parents=True, exist_ok=True)
    with (built.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            _compile(_new_enough(go), built)
    return built


def _new_enough(go: Path) -> Path:
    """Go as the module asks for it. From 1.21 on it fetches that by itself; an older one is asked to, as for a module.

    Raises:
        KcgaError: it is not to be had.
    """
    said = _output([go, "version"])
    release = re.search(r"go1\.(\d+)", said)
    if release is None or int(release[1]) >= 21:
        return go
    toolchain = re.search(r"^toolchain (\S+)$", (MODULE / "go.mod").read_text(), re.MULTILINE)
    assert toolchain is not None
    system, architecture = said.split()[-1].split("/")
    wanted = f"golang.org/toolchain@v0.0.1-{toolchain[1]}.{system}-{architecture}"
    # Its checksum is checked as that of any module. Modules are read-only, and nothing in them can be run.
    folder = Path(json.loads(_output([go, "mod", "download", "-json", "-modcacherw", wanted]))["Dir"])
    for command in (*folder.glob("bin/*"), *folder.glob("pkg/tool/*/*")):
        command.chmod(0o755)
    return folder / "bin" / "go"


def _output(command: Sequence[str | Path]) -> str:
    done = subprocess.run(command, cwd=tempfile.gettempdir(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise KcgaError(f"{' '.join(map(str, command))} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def _compile(go: Path, built: Path) -> None:
    found = re.search(r"k8s\.io/kubernetes v((\d+)\.(\d+)\.\S+)", (MODULE / "go.mod").read_text())
    assert found is not None
    version, major, minor = found.groups()
    stamps = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    linked = " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamps.items())
    arriving = built.with_suffix(".new")
    command: list[str | Path] = [go, "build", "-trimpath", f"-ldflags=-s -w {linked}", "-o", arriving, "."]
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "auto"}
    log = built.parent / "build.log"
    log.unlink(missing_ok=True)
    with Child("the build of the control plane", command, log, folder=MODULE, environment=environment) as child:
        if child.wait(_BUILD_WITHIN_S) != 0:
            raise child.error("the control plane could not be built")
    arriving.replace(built)


class ControlPlane:
    """The control plane, from entering the context to leaving it.

    Args:
        folder: takes all its files.
        program: what `build` made.
    """

    def __init__(self, folder: Path, program: Path) -> None:
        self._folder = folder
        self._program = program
        self._admin_token = secrets.token_hex(16)
        self._port = free_port()
        self._etcd_port = free_port()
        self._stack = contextlib.ExitStack()
        self._api_server: Child | None = None

    @property
    def host(self) -> str:
        return LOOPBACK

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

    def client(self, token: str | None = None) -> client.ApiClient:
        """A client with the rights of a token; without one it may do everything."""
        # Made from nothing: a copy of another configuration would silently stay that one's user.
        configuration = client.Configuration(
            host=f"https://{self.host}:{self._port}",
            api_key={"BearerToken": token or self._admin_token},
            api_key_prefix={"BearerToken": "Bearer"},
            ssl_ca_cert=str(self.ca_file),
        )
        configuration.retries = False
        configuration.connection_pool_maxsize = 32
        return client.ApiClient(configuration)

    def kubectl(self, *arguments: str | Path, stdin: str | None = None) -> str:
        """What kubectl prints.

        Raises:
            AssertionError: it failed; with what it said.
        """
        command = [str(self._program), "kubectl", f"--kubeconfig={self.kubeconfig}", *map(str, arguments)]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

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
        with contextlib.ExitStack() as stack:
            self._stack = stack
            self._folder.mkdir(parents=True, exist_ok=True)
            key = subprocess.run([self._program, "key"], capture_output=True, check=True).stdout
            (self._folder / "key.pem").write_bytes(key)
            (self._folder / "tokens.csv").write_text(f'{self._admin_token},admin,admin,"system:masters"\n')
            self._write_kubeconfig()
            self._start("etcd", *self._etcd_flags()).wait_ready(lambda: listens(self._etcd_port), READY_WITHIN_S)
            self._start_api_server()
            self._start("kube-controller-manager", *self._controller_manager_flags())
            self._start("kube-scheduler", f"--kubeconfig={self.kubeconfig}", "--leader-elect=false", "--secure-port=0")
            self._stack = stack.pop_all()
        return self

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
        self._api_server.wait_ready(self._answers, READY_WITHIN_S)

    def _answers(self) -> bool:
        if not (self.ca_file.exists() and listens(self._port)):
            return False
        with self.client() as api, contextlib.suppress(ApiException, *Unanswered):
            client.CoreV1Api(api).read_namespace("default", _request_timeout=5)
            return True
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
            f"--bind-address={LOOPBACK}",
            f"--advertise-address={LOOPBACK}",
            f"--secure-port={self._port}",
            "--cert-dir=certificates",
            "--authorization-mode=RBAC",
            "--token-auth-file=tokens.csv",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-account-key-file=key.pem",
            "--service-account-signing-key-file=key.pem",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
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


if __name__ == "__main__":
    go = find_go()
    if go is None:
        raise SystemExit("there is no Go: install it, or put it on the PATH")
    began = time.monotonic()
    print(f"{build(go)}, {time.monotonic() - began:.0f} s")  # noqa: T201
