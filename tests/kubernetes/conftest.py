"""The real control plane and the node of processes, started once a session and only if a test asks for them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes import client

from tests.conftest import cannot, of_go
from tests.kubernetes.control_plane import MODULE, ControlPlane
from tests.kubernetes.nodes import a_node
from tests.kubernetes.process_kubelet import ProcessKubelet


@pytest.fixture(scope="session")
def kubernetes_program() -> Path:
    """What control plane and kubectl are in."""
    return of_go(MODULE)


@pytest.fixture(scope="session")
def control_plane(kubernetes_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A Kubernetes control plane without nodes that all tests of the session share, each in a namespace of its own."""
    with ControlPlane(tmp_path_factory.mktemp("control-plane"), kubernetes_program) as control_plane:
        yield control_plane


@pytest.fixture
def kubectl(kubernetes_program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first kubectl and the first Helm on the PATH are those of the control plane."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("kubectl", "helm"):
        (folder / name).write_text(f'#!/bin/sh\nexec {kubernetes_program} {name} "$@"\n')
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def namespace(control_plane: ControlPlane, unique_name: str) -> Iterator[str]:
    core = client.CoreV1Api(control_plane.client())
    core.create_namespace({"metadata": {"name": unique_name}})
    yield unique_name
    core.delete_namespace(unique_name)


@pytest.fixture(scope="session")
def kubelet(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessKubelet]:
    """A node on which every image but `missing` can be had."""
    if os.geteuid() != 0:
        cannot("only root can give processes a place of their own in the file system")
    with a_node(control_plane, tmp_path_factory.mktemp("pods")) as kubelet:
        yield kubelet
