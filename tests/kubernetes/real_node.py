"""A node as any cluster has them: Kubernetes' own kubelet and kube-proxy, CoreDNS, containerd, runc, and containers
from images.

It needs root, and a network namespace of its own (`unshare --net`), in which the broker and the stores listen on
127.0.0.1; so whatever has to be fetched is made before, by `python -m tests.kubernetes.real_node`. Pods have addresses
of their own on a bridge, and find services by their names. Two things are not as in a real cluster: some ports of a
pod's 127.0.0.1 are the node's, which a plugin of CNI sees to, and nobody enforces network policies.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from kubernetes import client
from rich.console import Console

from app.child import Child
from app.errors import KcgaError
from sandbox.ports import LOOPBACK, free_port
from tests import prepare
from tests.go_program import build
from tests.kubernetes.control_plane import ControlPlane
from tests.tools import GO

BRIDGE, NODE_ADDRESS, PODS = "kcga0", "10.89.0.1", "10.89.0.0/24"
API_ADDRESS = (NODE_ADDRESS, 6443)
"""Where the API server listens; pods are told an address of a service, from which kube-proxy leads there."""
NODE_PORTS = (20_000, 29_999)
"""Which the node gives to whoever asks for a free one: pods find these, on 127.0.0.1, on the node. All others of
127.0.0.1 are their own."""
NAME = "containers"
READY_WITHIN_S = 300.0
IMAGE, SANDBOX = "kcga:local", "kcga-sandbox:local"
"""What `make image` builds, and what holds a pod's namespaces: it only waits."""
MODULE = Path(__file__).with_name("node")
PREPARED = Path("build/pods")

_DOMAIN = "cluster.local"

_KERNEL = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
_PLUGINS = Path("/usr/lib/cni")
_NEEDED = {
    "containerd": "containerd",
    "ctr": "containerd",
    "ip": "iproute2",
    "nft": "nftables",
    "nsenter": "util-linux",
    "runc": "runc",
}
"""Programs, and the packages of Debian that have them."""


@dataclass(frozen=True, slots=True)
class Container:
    """A container that runs, as the kernel shows its first process."""

    pod: str
    process: int

    def status(self, field: str) -> str:
        """A line of `/proc/PID/status`, without its name."""
        lines = Path(f"/proc/{self.process}/status").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith(f"{field}:"))

    def is_writable(self, folder: str) -> bool:
        """Whether the mount of exactly this folder can be written to."""
        for line in Path(f"/proc/{self.process}/mounts").read_text().splitlines():
            _, mount, _, options, *_ = line.split()
            if mount == folder:
                return "rw" in options.split(",")
        raise LookupError(f"nothing is mounted at {folder}")


def missing() -> list[str]:
    """What this machine lacks to be such a node, in words; empty where it lacks nothing."""
    lacks = [f"{name} (Debian: {package})" for name, package in _NEEDED.items() if shutil.which(name) is None]
    if not (_PLUGINS / "bridge").exists():
        lacks.append("the plugins of CNI (Debian: containernetworking-plugins)")
    if os.geteuid() != 0:
        lacks.append("the rights of root")
    elif {path.name for path in Path("/proc/self/net/dev_snmp6").glob("*")} - {"lo", BRIDGE}:
        lacks.append("a network namespace of its own: run it by make test-pods")
    return lacks


def set_up_network() -> None:
    """Makes the bridge of the pods, on which the node has its address."""
    network = Path("/proc/sys/net")
    (network / "ipv4/conf/all/route_localnet").write_text("1")
    (network / "ipv4/ip_forward").write_text("1")
    (network / "ipv4/ip_local_port_range").write_text(" ".join(map(str, NODE_PORTS)))
    # What a pod gets from another by the address of a service comes back by kube-proxy, too.
    (network / "bridge/bridge-nf-call-iptables").write_text("1")
    for arguments in (
        "link set lo up",
        f"link add {BRIDGE} type bridge",
        f"address add {NODE_ADDRESS}/24 dev {BRIDGE}",
        f"link set {BRIDGE} up",
    ):
        command = ["ip", *arguments.split()]
        subprocess.run(command, check=True)


class RealNode:
    """A node, from entering the context to leaving it.

    Args:
        control_plane: whose node it is; its API server listens on `API_ADDRESS`.
        folder: takes all its files.
        program: what `build` made of `MODULE`.
    """

    def __init__(self, control_plane: ControlPlane, folder: Path, program: Path) -> None:
        self._control_plane = control_plane
        self._folder = folder
        self._program = program
        self._socket = folder / "containerd.sock"
        self._stack = contextlib.ExitStack()

    def containers(self) -> list[Container]:
        """Those of pods that run, in ascending order of the pods' names."""
        tasks = (line.split() for line in self._ctr("tasks", "list").splitlines()[1:])
        processes = {task: int(process) for task, process, status in tasks if status == "RUNNING"}
        found = []
        for identity, process in processes.items():
            labels = json.loads(self._ctr("containers", "info", identity))["Labels"]
            if labels["io.cri-containerd.kind"] == "container":
                found.append(Container(labels["io.kubernetes.pod.name"], process))
        return sorted(found, key=lambda container: container.pod)

    def running(self) -> list[str]:
        return [container.pod for container in self.containers()]

    def kill(self, pod: str) -> None:
        for container in self.containers():
            if container.pod == pod:
                os.kill(container.process, signal.SIGKILL)

    def log_of(self, pod: str) -> str:
        return "".join(file.read_text() for file in sorted((self._folder / "logs").glob(f"*_{pod}_*/*/*.log")))

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self._stack = stack
            self._folder.mkdir(parents=True, exist_ok=True)
            stack.callback(_set_kernel, _kernel())
            self._write_plugins()
            self._start("containerd", "containerd", f"--config={self._write('containerd.toml', self._containerd())}")
            self._until(lambda: self._succeeds("version"), "containerd answers")
            stack.callback(self._end_all)
            for image in (IMAGE, SANDBOX):
                self._ctr("images", "import", "--digests", str(_archive(image)))
                self._name_image(image)
            self._start(
                "kubelet",
                self._program,
                "kubelet",
                f"--config={self._write('kubelet.json', json.dumps(self._kubelet_settings()))}",
                f"--kubeconfig={self._control_plane.kubeconfig}",
                f"--root-dir={self._folder / 'kubelet'}",
                f"--cert-dir={self._folder / 'certificates'}",
                f"--hostname-override={NAME}",
                f"--node-ip={NODE_ADDRESS}",
            )
            core = client.CoreV1Api(self._control_plane.client(insists=True))
            self._until(lambda: _is_ready(core), "the node is ready")
            # What no controller of this cluster does: admission marks every new node as not ready.
            core.patch_node(NAME, {"spec": {"taints": None}})
            self._start("coredns", self._program, "coredns", f"-conf={self._write('Corefile', self._names())}")
            proxying = self._write("kube-proxy.json", json.dumps(self._proxy_settings()))
            self._start("kube-proxy", self._program, "kube-proxy", f"--config={proxying}")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start(self, name: str, program: str | Path, *arguments: str) -> None:
        command = [program, *arguments]
        self._stack.enter_context(Child(name, command, self._folder / f"{name}.log", folder=self._folder))

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + READY_WITHIN_S
        while not condition():
            if time.monotonic() > deadline:
                logs = [self._folder / f"{name}.log" for name in ("containerd", "kubelet", "kube-proxy", "coredns")]
                tails = [f"--- {log}\n{log.read_text()[-4000:]}" for log in logs if log.exists()]
                raise KcgaError("\n".join([f"it did not come about that {what}", *tails]))
            time.sleep(0.1)

    def _ctr(self, *arguments: str) -> str:
        command = ["ctr", f"--address={self._socket}", "--namespace=k8s.io", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def _succeeds(self, *arguments: str) -> bool:
        try:
            self._ctr(*arguments)
        except subprocess.CalledProcessError:
            return False
        return True

    def _name_image(self, name: str) -> None:
        """Gives the image just imported, which is named after a registry of its builder's, the name that pods use."""
        full = f"docker.io/library/{name}"
        (imported,) = (
            line for line in self._ctr("images", "list", "--quiet").splitlines() if line.endswith(f"/{name}")
        )
        if imported != full:
            self._ctr("images", "tag", imported, full)

    def _end_all(self) -> None:
        """What tests have left, sandboxes included."""
        for task in self._ctr("tasks", "list", "--quiet").split():
            self._succeeds("tasks", "delete", "--force", task)

    def _write(self, name: str, text: str) -> Path:
        (self._folder / name).write_text(text)
        return self._folder / name

    def _containerd(self) -> str:
        return f"""\
version = 2
root = "{self._folder}/containerd"
state = "{self._folder}/containerd-state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs"]
[grpc]
address = "{self._socket}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "docker.io/library/{SANDBOX}"
# A machine that is itself a sandbox may not let it be lowered.
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{self._folder}/cni"
conf_dir = "{self._folder}/cni-settings"
"""

    def _write_plugins(self) -> None:
        plugins, settings = self._folder / "cni", self._folder / "cni-settings"
        plugins.mkdir()
        settings.mkdir()
        for name in ("bridge", "host-local", "loopback"):
            (plugins / name).symlink_to(_PLUGINS / name)
        own = plugins / "node-loopback"
        own.write_text(f"#!/bin/sh\nexec {sys.executable} {Path(__file__).with_name('node_loopback.py')}\n")
        own.chmod(0o755)
        addresses = {
            "type": "host-local",
            "dataDir": str(self._folder / "addresses"),
            "ranges": [[{"subnet": PODS, "gateway": NODE_ADDRESS}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        }
        loopback = {"type": "node-loopback", "node": NODE_ADDRESS, "ports": "-".join(map(str, NODE_PORTS))}
        chain = [{"type": "bridge", "bridge": BRIDGE, "ipam": addresses}, loopback]
        conf = {"cniVersion": "0.4.0", "name": "kcga", "plugins": chain}
        (settings / "kcga.conflist").write_text(json.dumps(conf))

    def _names(self) -> str:
        return f"""\
.:53 {{
    bind {NODE_ADDRESS}
    errors
    kubernetes {_DOMAIN} {{
        kubeconfig {self._control_plane.kubeconfig}
    }}
}}
"""

    def _proxy_settings(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "clientConnection": {"kubeconfig": str(self._control_plane.kubeconfig)},
            "hostnameOverride": NAME,
            "clusterCIDR": PODS,
            "healthzBindAddress": "",
            "metricsBindAddress": f"{LOOPBACK}:{free_port()}",
            # How many connections the machine keeps is not for tests to change.
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        }

    def _kubelet_settings(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": NODE_ADDRESS,
            "port": free_port(),
            "healthzPort": 0,
            # Nobody is in this network but the tests, and the API server has no certificate to show.
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "containerRuntimeEndpoint": f"unix://{self._socket}",
            "cgroupDriver": "cgroupfs",
            "failCgroupV1": False,
            "failSwapOn": False,
            "podLogsDir": str(self._folder / "logs"),
            "volumePluginDir": str(self._folder / "volume-plugins"),
            "resolvConf": "",
            "clusterDNS": [NODE_ADDRESS],
            "clusterDomain": _DOMAIN,
            # A disk that others have filled is no concern of these tests.
            "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%"},
            "imageGCHighThresholdPercent": 100,
            "makeIPTablesUtilChains": False,
        }


def _kernel() -> dict[Path, str]:
    """The settings of the machine's kernel that a kubelet changes, as they are."""
    return {path: path.read_text() for path in map(Path("/proc/sys").joinpath, _KERNEL)}


def _set_kernel(settings: Mapping[Path, str]) -> None:
    for path, value in settings.items():
        path.write_text(value)


def _is_ready(core: client.CoreV1Api) -> bool:
    nodes = core.list_node(field_selector=f"metadata.name={NAME}").items
    return any(
        each.type == "Ready" and each.status == "True" for node in nodes for each in node.status.conditions or ()
    )


def _archive(image: str) -> Path:
    return PREPARED / f"{image.replace(':', '-')}.tar"


def make_ready() -> None:
    """Builds and fetches what tests need, and takes the images from docker or podman.

    Raises:
        KcgaError: there is no Go, something cannot be had or built, or the image is not there.
    """
    go = GO.find()
    if go is None:
        raise KcgaError("there is no Go to build the kubelet with")
    prepare.prepare(Console(stderr=True))
    node = build(go, MODULE)
    PREPARED.mkdir(parents=True, exist_ok=True)
    recipe = f'FROM scratch\nCOPY {node.name} /\nENTRYPOINT ["/{node.name}", "pause"]\n'
    _images("build", "--tag", SANDBOX, "--file", "-", str(node.parent), stdin=recipe)
    for image in (IMAGE, SANDBOX):
        _archive(image).unlink(missing_ok=True)
        _images("save", "--output", str(_archive(image)), image)


def _images(*arguments: str, stdin: str = "") -> None:
    program = "docker" if _works("docker") else "podman"
    try:
        done = subprocess.run([program, *arguments], input=stdin, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise KcgaError("there is neither docker nor podman") from error
    if done.returncode != 0:
        raise KcgaError(f"{program} {arguments[0]} failed (make image builds kcga:local): {done.stderr.strip()}")


def _works(program: str) -> bool:
    return shutil.which(program) is not None and subprocess.run([program, "info"], capture_output=True).returncode == 0


if __name__ == "__main__":
    make_ready()
