"""The real control plane and the node of processes, started once a session and only if a test asks for them."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes import client

from tests.kubernetes.control_plane import MODULE, ControlPlane
from tests.kubernetes.go_program import build, find_go
from tests.kubernetes.nodes import a_node
from tests.kubernetes.process_kubelet import ProcessKubelet


def without(what: str) -> None:
    """On a laptop the test is skipped; where everything has to be there, it fails."""
    reason = f"NOT TESTED ON KUBERNETES: {what}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    print(reason, file=sys.stderr)  # noqa: T201
    pytest.skip(reason)


@pytest.fixture(scope="session")
def kubernetes_program() -> Path:
    """What control plane and kubectl are in; built if that is not done."""
    go = find_go()
    if go is None:
        without("there is no Go to build its control plane with; install Go 1.21 or newer")
    assert go is not None
    return build(go, MODULE)


@pytest.fixture(scope="session")
def control_plane(kubernetes_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A Kubernetes control plane without nodes that all tests of the session share, each in a namespace of its own."""
    with ControlPlane(tmp_path_factory.mktemp("control-plane"), kubernetes_program) as control_plane:
        yield control_plane


@pytest.fixture
def kubectl(kubernetes_program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first kubectl on the PATH is the one of the control plane."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "kubectl").write_text(f'#!/bin/sh\nexec {kubernetes_program} kubectl "$@"\n')
    (folder / "kubectl").chmod(0o755)
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
        without("only root can give processes a place of their own in the file system")
    with a_node(control_plane, tmp_path_factory.mktemp("pods")) as kubelet:
        yield kubelet
