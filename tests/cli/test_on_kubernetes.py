"""From the settings to a fleet on Kubernetes: who wins the Lease has one, and what is wrong is one line."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app import kubernetes as module
from app.errors import KcgaError, UsageError
from app.kubernetes import on_kubernetes
from controller.kubernetes.api import KubernetesError
from controller.kubernetes.decide.deployment import TemplateError, deployment
from tests.app.any_settings import settings

TEMPLATE = """
apiVersion: apps/v1
kind: Deployment
spec:
  template:
    spec:
      containers:
        - {name: consumer, image: kcga, resources: {requests: {cpu: "1"}, limits: {memory: 1Gi}}}
"""


class FakeElection:
    """Is won, or waits until `stop` is set; notes that the Lease is given back."""

    wins = True
    lost = False
    may_act = True
    last: "FakeElection"

    def __init__(self, api: object, *, on_lost: Callable[[], None], **told: Any) -> None:
        assert api == "api"
        self.told = told
        self.on_lost = on_lost
        self.given_back = False
        FakeElection.last = self

    def win(self, stop: threading.Event, stands_by: Callable[[], None]) -> bool:
        if not self.wins:
            stands_by()
            stop.set()
        return self.wins

    def give_back(self) -> None:
        self.given_back = True


class FakeFleet:
    def __init__(self, api: object, **told: Any) -> None:
        assert api == "api"
        self.told = told
        self.closed = False

    def close(self) -> None:
        assert not FakeElection.last.given_back
        self.closed = True


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "consumer.yaml").write_text("a template")
    return tmp_path / "settings.toml"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(FakeElection, "wins", True)
    monkeypatch.setattr(FakeElection, "lost", False)
    monkeypatch.setattr(module, "read_template", lambda path: path.read_text())
    monkeypatch.setattr(module, "connect", lambda: "api")
    monkeypatch.setattr(module, "own_namespace", lambda: None)
    monkeypatch.setattr(module, "find_owner", lambda _, namespace, name: f"{namespace}/{name}")
    monkeypatch.setattr(module, "Election", FakeElection)
    monkeypatch.setattr(module, "KubernetesFleet", FakeFleet)
    return monkeypatch


def never() -> None:
    raise AssertionError("nobody else has the lease")


@pytest.mark.usefixtures("cluster")
def test_who_wins_the_lease_has_a_fleet_which_is_closed_before_the_lease_is_given_back(file: Path) -> None:
    with on_kubernetes(settings(), file, threading.Event(), never) as fleet:
        assert isinstance(fleet, FakeFleet)
        assert (fleet.told["namespace"], fleet.told["group"]) == ("default", "billing")
        assert fleet.told["template"]("ordinary") == "a template"
        assert fleet.told["may_act"]()
        assert not FakeElection.last.given_back
    assert fleet.closed
    assert FakeElection.last.given_back


@pytest.mark.parametrize(
    ("set_", "own", "used"), [("mine", "pod", "mine"), (None, "pod", "pod"), (None, None, "default")]
)
def test_the_namespace_is_the_one_that_is_set_or_the_pods_own_or_the_default(
    set_: str | None, own: str | None, used: str, file: Path, cluster: pytest.MonkeyPatch
) -> None:
    cluster.setattr(module, "own_namespace", lambda: own)
    with on_kubernetes(settings(kubernetes={"namespace": set_}), file, threading.Event(), never):
        assert FakeElection.last.told["namespace"] == used


@pytest.mark.parametrize(("owner", "found"), [("kcga-controller", "default/kcga-controller"), ("", None)])
@pytest.mark.usefixtures("cluster")
def test_consumers_belong_to_the_owner_that_is_set_or_to_nothing(owner: str, found: str | None, file: Path) -> None:
    with on_kubernetes(settings(kubernetes={"owner": owner}), file, threading.Event(), never) as fleet:
        assert isinstance(fleet, FakeFleet)
        assert fleet.told["owner"] == found


def test_two_controllers_never_have_the_same_identity(file: Path, cluster: pytest.MonkeyPatch) -> None:
    del cluster
    identities = []
    for _ in range(2):
        with on_kubernetes(settings(), file, threading.Event(), never):
            identities.append(FakeElection.last.told["identity"])
    assert identities[0] != identities[1]


def test_who_stands_by_until_the_end_has_no_fleet(file: Path, cluster: pytest.MonkeyPatch) -> None:
    cluster.setattr(FakeElection, "wins", False)
    waits: list[int] = []
    with on_kubernetes(settings(), file, threading.Event(), lambda: waits.append(1)) as fleet:
        assert fleet is None
    assert waits == [1]
    assert FakeElection.last.given_back


def test_who_loses_the_lease_is_stopped_and_ends_with_an_error(file: Path, cluster: pytest.MonkeyPatch) -> None:
    stop = threading.Event()

    def lead_and_lose() -> None:
        with on_kubernetes(settings(), file, stop, never):
            FakeElection.last.on_lost()
            cluster.setattr(FakeElection, "lost", True)

    with pytest.raises(KcgaError, match="another controller has taken the lease"):
        lead_and_lose()
    assert stop.is_set()


@pytest.mark.usefixtures("cluster")
def test_whatever_ends_the_controller_the_lease_is_given_back(file: Path) -> None:
    with pytest.raises(ZeroDivisionError), on_kubernetes(settings(), file, threading.Event(), never):
        raise ZeroDivisionError
    assert FakeElection.last.given_back


def test_a_template_that_is_not_there_is_a_usage_error_that_names_it(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match=str(tmp_path / "consumer.yaml")),
        on_kubernetes(settings(), tmp_path / "settings.toml", threading.Event(), never),
    ):
        pass


def test_a_cluster_that_cannot_be_used_is_one_line(file: Path, cluster: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise KubernetesError("no cluster is configured")

    cluster.setattr(module, "connect", refuse)
    with (
        pytest.raises(KcgaError, match=r"^no cluster is configured$"),
        on_kubernetes(settings(), file, threading.Event(), never),
    ):
        pass


def test_a_class_has_a_template_or_resources_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "consumer.yaml").write_text(TEMPLATE)
    (tmp_path / "large.yaml").write_text(TEMPLATE.replace("kcga", "kcga-large"))
    needs = {"requests": {"memory": "4Gi"}}
    own = {"capacity": 5000, "price": 4}
    classes = settings(
        consumer={
            "classes": [{**own, "name": "large", "template": "large.yaml"}, {**own, "name": "wide", "resources": needs}]
        }
    ).consumer.classes
    templates = module.Templates(tmp_path, Path("consumer.yaml"), classes)
    templates.require_all()
    first = {name: deployment(templates(name), "lake", 1, None, "5f", name) for name in ("gone", "large", "wide")}
    containers = {name: made["spec"]["template"]["spec"]["containers"][0] for name, made in first.items()}
    assert {name: each["image"] for name, each in containers.items()} == {
        "gone": "kcga",
        "large": "kcga-large",
        "wide": "kcga",
    }
    assert [containers[name]["resources"].get("requests") for name in ("gone", "wide")] == [
        {"cpu": "1"},
        needs["requests"],
    ]
    assert containers["wide"]["resources"]["limits"] == {"memory": "1Gi"}
    assert {"name": "CONSUMER_CLASS", "value": "wide"} in containers["wide"]["env"]
    (tmp_path / "large.yaml").unlink()
    with pytest.raises(TemplateError, match=r"large\.yaml cannot be read"):
        templates.require_all()
