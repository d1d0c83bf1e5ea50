"""The doctor asks the Kubernetes API what the controller may do there."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from app.settings import Settings, load
from cli.doctor.finding import Finding, Grade
from cli.doctor.kubernetes import check_kubernetes
from tests.app.test_settings import GOOD

ON_KUBERNETES = f'fleet = "kubernetes"\n{GOOD}[kubernetes]\nname = "billing"\nnamespace = "kcga"\n'


class Api(BaseHTTPRequestHandler):
    """Answers access reviews alone: everything is allowed but what is in `refused`."""

    refused: frozenset[tuple[str, str]] = frozenset()
    asked: list[tuple[str, str, str, str]]

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = review["spec"]["resourceAttributes"]
        self.asked.append((asked["namespace"], asked["verb"], asked["resource"], asked.get("name", "")))
        answer = {**review, "status": {"allowed": (asked["verb"], asked["resource"]) not in self.refused}}
        body = json.dumps(answer).encode()
        self.send_response(201)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    file = tmp_path / "settings.toml"
    file.write_text(ON_KUBERNETES)
    return load(file)


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Api]]:
    handler = type("Handler", (Api,), {"asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(
            yaml.safe_dump(
                {
                    "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
                    "users": [{"name": "u", "user": {}}],
                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                    "current-context": "x",
                }
            )
        )
        monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(kubeconfig))
        yield handler
        server.shutdown()
        thread.join()


def test_an_account_that_may_do_all_is_fine(settings: Settings, api: type[Api]) -> None:
    (finding,) = check_kubernetes(settings)
    assert finding == Finding("the Kubernetes API allows what the controller does in the namespace kcga")
    assert ("kcga", "patch", "deployments", "") in api.asked
    assert ("kcga", "update", "leases", settings.kubernetes.lease) in api.asked


def test_what_is_refused_is_named(settings: Settings, api: type[Api]) -> None:
    api.refused = frozenset({("delete", "deployments"), ("update", "leases")})
    (finding,) = check_kubernetes(settings)
    assert finding.grade is Grade.FAULT
    assert finding.what.endswith(f"kcga: delete deployments, update leases {settings.kubernetes.lease}")
    assert finding.remedy


def test_without_a_cluster_there_is_one_clear_line(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none"))
    (finding,) = check_kubernetes(settings)
    assert finding.grade is Grade.FAULT
    assert "no Kubernetes cluster is configured" in finding.what


def test_local_consumers_need_no_cluster(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(GOOD)
    assert list(check_kubernetes(load(file))) == []
