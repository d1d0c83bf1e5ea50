"""A node whose pods are processes of this machine: what a kubelet does, without images, cgroups and networks.

It registers the node, runs the containers of the pods that are bound to it, restarts those that end, probes their
readiness, asks them to leave with their grace period, and tells the API server. Each container has a mount namespace of
its own in which its ConfigMaps, Secrets and the token of its service account are where its manifest says, and the name
of its pod for a host name; so root is needed. Every pod has an address of its own in 127.0.0.0/8. What it does not know
makes the pod fail.
"""

import base64
import contextlib
import os
import re
import signal
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from app.child import Child
from app.errors import KcgaError
from controller.kubernetes.api import CONFLICT, NOT_FOUND, Failure, helps_to_repeat
from controller.kubernetes.mirror import Mirror

LOOK_EVERY_S = 0.05
RESTART_AFTER_S = 1.0

# Upper layers over /etc and /run take the mount points that are not there; nothing of it is seen outside.
_MOUNT = """\
set -eu
echo "$1" > /proc/sys/kernel/hostname
layers=$2; shift 2
mount -t tmpfs tmpfs "$layers"
for top in etc run; do
    mkdir -p "$layers/$top/upper" "$layers/$top/work"
    mount -t overlay overlay -o "lowerdir=/$top,upperdir=$layers/$top/upper,workdir=$layers/$top/work" "/$top"
done
while [ "$1" != -- ]; do
    mkdir -p "$2"
    mount --bind "$1" "$2"
    shift 2
done
shift
exec "$@"
"""
_VARIABLE = re.compile(r"\$\((\w+)\)")


class ProcessKubelet:
    """A node, from entering the context to leaving it.

    Args:
        api: a client that may do everything.
        server: host and port of the API server, as pods are to find it.
        folder: takes the logs and volumes of pods.
        images: the program and first arguments that stand for an image, by the image's name.
        environment: variables that every process has.
        node: its name.
    """

    def __init__(
        self,
        api: client.ApiClient,
        *,
        server: tuple[str, int],
        folder: Path,
        images: Mapping[str, Sequence[str]],
        environment: Mapping[str, str],
        node: str = "processes",
    ) -> None:
        self.core = client.CoreV1Api(api)
        self.server = server
        self.folder = folder
        self.images = images
        self.environment = environment
        self.node = node
        self._addresses = (f"127.0.{net}.{host}" for net in range(1, 256) for host in range(2, 255))
        self._pods: dict[str, _Pod] = {}
        """By their uid."""
        self._guard = threading.Lock()
        self._stop = threading.Event()
        self._mirror = Mirror("pods of the node", "V1Pod", self._list)
        self._thread = threading.Thread(target=self._run, name="kubelet", daemon=True)

    def processes(self) -> dict[str, int]:
        """The process ids of all containers that run, by pod."""
        with self._guard:
            return {pod.name: pod.process.pid for pod in self._pods.values() if pod.process and pod.process.running}

    def running(self) -> list[str]:
        """The pods of which a process runs."""
        return list(self.processes())

    def kill(self, pod: str) -> None:
        """Kills the pod's process, as a crash does."""
        os.kill(self.processes()[pod], signal.SIGKILL)

    def log_of(self, pod: str) -> str:
        return (self.folder / pod / "log").read_text()

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        resources = {"cpu": "1000", "memory": "1000Gi", "pods": "1000", "ephemeral-storage": "1000Gi"}
        self.core.create_node({"metadata": {"name": self.node, "labels": {"kubernetes.io/hostname": self.node}}})
        # Admission marks every new node as not ready.
        self.core.patch_node(self.node, {"spec": {"taints": None}})
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "processes"}
        status = {"capacity": resources, "allocatable": resources, "conditions": [ready]}
        self.core.patch_node_status(self.node, {"status": status})
        self._mirror.start()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._mirror.close()
        for pod in self._pods.values():
            pod.close()
        for pod in self._pods.values():
            pod.thread.join()

    def _list(self, **arguments: Any) -> Any:
        return self.core.list_pod_for_all_namespaces(field_selector=f"spec.nodeName={self.node}", **arguments)

    def _run(self) -> None:
        while not self._stop.wait(LOOK_EVERY_S):
            shown = self._mirror.objects().values()
            for uid in self._pods.keys() - {found.metadata.uid for found in shown}:
                self._pods[uid].leave(0)  # it was deleted by force
            for found in shown:
                with self._guard:
                    pod = self._pods.get(found.metadata.uid)
                    if pod is None:
                        pod = self._pods[found.metadata.uid] = _Pod(self, found, next(self._addresses))
                        pod.thread.start()
                if found.metadata.deletion_timestamp is not None:
                    pod.leave(found.metadata.deletion_grace_period_seconds or 0)


class _Pod:
    """One pod of one container, in a thread of its own."""

    def __init__(self, kubelet: ProcessKubelet, pod: Any, address: str) -> None:
        self.name: str = pod.metadata.name
        self.process: Child | None = None
        self.thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._kubelet = kubelet
        self._pod = pod
        self._namespace: str = pod.metadata.namespace
        self._container = pod.spec.containers[0]
        self._address = address
        self._folder = kubelet.folder / self.name
        self._grace_s: float | None = None
        self._leaves = threading.Event()
        self._closed = False
        self._restarts = 0
        self._ready = False

    def leave(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._leaves.set()

    def close(self) -> None:
        """Ends the process at once and tells nobody."""
        self._closed = True
        self.leave(0)

    def _run(self) -> None:
        while not self._leaves.is_set():
            try:
                self.process = self._start()
                self._post_running()
                self._watch(self.process)
            except Failure as error:
                self._fail("ContainerCreating", str(error))
            except (KcgaError, NotImplementedError, subprocess.CalledProcessError) as error:
                self._fail("CreateContainerError", str(error))
        if self.process is not None:
            self._end(self.process)
        self._insist(self._remove)

    def _insist(self, request: Callable[[], object]) -> None:
        """Makes the request until it is carried out, or the pod is no more: where etcd is slow, the server says no."""
        while not self._closed:
            try:
                request()
                return
            except Failure as error:
                if isinstance(error, ApiException) and error.status in (NOT_FOUND, CONFLICT):
                    return
                if not helps_to_repeat(error):
                    raise
            time.sleep(LOOK_EVERY_S)

    def _remove(self) -> None:
        this_one = client.V1Preconditions(uid=self._pod.metadata.uid)
        options = client.V1DeleteOptions(grace_period_seconds=0, preconditions=this_one)
        self._kubelet.core.delete_namespaced_pod(self.name, self._namespace, body=options)

    def _watch(self, process: Child) -> None:
        """Returns when the process has ended, and after a pause, or when it is to leave."""
        while process.running:
            if (ready := self._probe()) != self._ready:
                self._ready = ready
                self._post_running()
            if self._leaves.wait(0.25):
                return
        self._restarts += 1
        self._fail("CrashLoopBackOff", f"it ended with exit code {process.exit_code}")
        process.stop()

    def _end(self, process: Child) -> None:
        process.terminate()
        began = time.monotonic()
        # The grace may become shorter while it is waited for: a deletion by force.
        while process.running and time.monotonic() - began < (self._grace_s or 0):
            time.sleep(LOOK_EVERY_S)
        if process.running:
            os.killpg(process.pid, 9)
        process.wait()
        process.stop()

    def _fail(self, reason: str, message: str) -> None:
        self._ready = False
        with contextlib.suppress(*Failure):
            self._post({"waiting": {"reason": reason, "message": message}})
        self._leaves.wait(RESTART_AFTER_S)

    def _start(self) -> Child:
        container = self._container
        if container.image not in self._kubelet.images and not container.command:
            self._leaves.wait(RESTART_AFTER_S)
            raise KcgaError(f"ErrImagePull: there is no image {container.image}")
        variables = dict(self._variables())
        entrypoint = container.command or self._kubelet.images[container.image]
        command = [_expand(part, variables) for part in (*entrypoint, *(container.args or ()))]
        layers = self._folder / "layers"
        layers.mkdir(parents=True, exist_ok=True)
        mounts = [part for pair in self._mounts() for part in map(str, pair)]
        host, port = self._kubelet.server
        environment = {
            **self._kubelet.environment,
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": str(port),
            **variables,
        }
        child = Child(
            self.name,
            [
                "unshare",
                "--mount",
                "--uts",
                "/bin/sh",
                "-c",
                _MOUNT,
                "mount",
                self.name,
                layers,
                *mounts,
                "--",
                *command,
            ],
            self._folder / "log",
            environment=environment,
            stop_within_s=0,
        )
        child.start()
        return child

    def _variables(self) -> Iterator[tuple[str, str]]:
        for source in self._container.env_from or ():
            if source.secret_ref is not None:
                secret = source.secret_ref
                yield from _secret(
                    self._kubelet.core, secret.name, self._namespace, optional=bool(secret.optional)
                ).items()
            else:
                yield from self._config_map(source.config_map_ref.name).items()
        for variable in self._container.env or ():
            source = variable.value_from
            if source is None:
                # A pod has one address of its own here, not all of its network.
                yield variable.name, self._address if variable.value == "0.0.0.0" else variable.value or ""  # noqa: S104
            elif source.field_ref is not None:
                yield variable.name, self._field(source.field_ref.field_path)
            elif source.secret_key_ref is not None:
                secret = _secret(self._kubelet.core, source.secret_key_ref.name, self._namespace)
                yield variable.name, secret[source.secret_key_ref.key]
            else:
                raise NotImplementedError(f"the source of the variable {variable.name}")

    def _field(self, path: str) -> str:
        metadata = self._pod.metadata
        known = {
            "metadata.name": metadata.name,
            "metadata.namespace": metadata.namespace,
            "metadata.uid": metadata.uid,
            "spec.nodeName": self._kubelet.node,
            "status.podIP": self._address,
        }
        if path not in known:
            raise NotImplementedError(f"the field {path}")
        value: str = known[path]
        return value

    def _mounts(self) -> Iterator[tuple[Path, str]]:
        """What is mounted where. Scratch folders are left out: the machine's own serve, and hide nothing."""
        volumes = {volume.name: volume for volume in self._pod.spec.volumes or ()}
        for mount in self._container.volume_mounts or ():
            volume = volumes[mount.name]
            if volume.empty_dir is None:
                yield self._volume(volume), mount.mount_path

    def _volume(self, volume: Any) -> Path:
        folder: Path = self._folder / "volumes" / volume.name
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self._files(volume).items():
            (folder / name).write_text(content)
        return folder

    def _files(self, volume: Any) -> dict[str, str]:
        if volume.config_map is not None:
            return self._config_map(volume.config_map.name)
        if volume.secret is not None:
            return _secret(self._kubelet.core, volume.secret.secret_name, self._namespace)
        if volume.projected is None:
            raise NotImplementedError(f"the volume {volume.name}")
        files: dict[str, str] = {}
        for source in volume.projected.sources:
            if source.service_account_token is not None:
                files[source.service_account_token.path] = self._token()
            elif source.secret is not None:
                name, optional = source.secret.name, bool(source.secret.optional)
                files |= _secret(self._kubelet.core, name, self._namespace, optional=optional)
            elif source.config_map is not None:
                found = self._config_map(source.config_map.name)
                files.update({item.path: found[item.key] for item in source.config_map.items or ()})
            else:
                files.update({item.path: self._field(item.field_ref.field_path) for item in source.downward_api.items})
        return files

    def _config_map(self, name: str) -> dict[str, str]:
        data: dict[str, str] | None = self._kubelet.core.read_namespaced_config_map(name, self._namespace).data
        return data or {}

    def _token(self) -> str:
        bound = {"apiVersion": "v1", "kind": "Pod", "name": self.name, "uid": self._pod.metadata.uid}
        answer = self._kubelet.core.create_namespaced_service_account_token(
            self._pod.spec.service_account_name or "default",
            self._namespace,
            {"spec": {"boundObjectRef": bound, "expirationSeconds": 3607, "audiences": []}},
        )
        token: str = answer.status.token
        return token

    def _probe(self) -> bool:
        """Whether the readiness probe, where there is one, succeeds."""
        probe = self._container.readiness_probe
        if probe is None:
            return True
        if probe.http_get is None:
            raise NotImplementedError("a readiness probe other than httpGet")
        port = probe.http_get.port
        named = {each.name: each.container_port for each in self._container.ports or ()}
        url = f"http://{self._address}:{named.get(port, port)}{probe.http_get.path}"
        try:
            with urllib.request.urlopen(url, timeout=probe.timeout_seconds or 1) as answer:
                status: int = answer.status
                return 200 <= status < 400
        except OSError:
            return False

    def _post_running(self) -> None:
        self._insist(lambda: self._post({"running": {"startedAt": _now()}}))

    def _post(self, state: Mapping[str, Any]) -> None:
        """Tells the API server the state of the container."""
        running = "running" in state
        ready = "True" if running and self._ready else "False"
        kinds = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready", "PodScheduled")
        conditions = [
            {
                "type": kind,
                "status": ready if kind in ("Ready", "ContainersReady") else "True",
                "lastTransitionTime": _now(),
            }
            for kind in kinds
        ]
        container = {
            "name": self._container.name,
            "image": self._container.image,
            "imageID": "",
            "containerID": f"process://{self.process.pid if self.process else 0}",
            "ready": running and self._ready,
            "started": running,
            "restartCount": self._restarts,
            "state": state,
        }
        status = {
            "phase": "Running" if running or self._restarts else "Pending",
            "conditions": conditions,
            "containerStatuses": [container],
            "podIP": self._address,
            "podIPs": [{"ip": self._address}],
            "startTime": self._pod.metadata.creation_timestamp.isoformat(),
        }
        self._kubelet.core.patch_namespaced_pod_status(
            self.name, self._namespace, {"metadata": {"uid": self._pod.metadata.uid}, "status": status}
        )


def _expand(text: str, variables: Mapping[str, str]) -> str:
    """The text with `$(NAME)` replaced by the variable, where there is one."""
    return _VARIABLE.sub(lambda found: variables.get(found[1], found[0]), text)


def _secret(core: client.CoreV1Api, name: str, namespace: str, *, optional: bool = False) -> dict[str, str]:
    try:
        data = core.read_namespaced_secret(name, namespace).data or {}
    except ApiException as error:
        if optional and error.status == NOT_FOUND:
            return {}
        raise
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


def _now() -> str:
    return datetime.now(UTC).isoformat()
