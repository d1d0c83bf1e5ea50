"""What is deployed: valid by the schemas, accepted by a real API server, and no more rights than are needed."""

import json
import os
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from typer.testing import CliRunner, Result

from app.errors import UsageError
from cli.commands.deploy import (
    BASE,
    MONITORING,
    OVERLAYS,
    OWN_VARIABLES,
    SETTINGS_KEY,
    VARIABLES,
    apply,
    kustomized,
    render,
)
from cli.main import app
from controller.kubernetes.decide.deployment import Owner, deployment, parse_template
from domain.consumer_class import ORDINARY
from tests import go_program
from tests.conftest import installed
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.secured_group import CERTIFICATES
from tests.tools import GO

pytestmark = pytest.mark.usefixtures("kubectl")

SETTINGS = """
[kafka]
bootstrap_servers = "kafka:9092"
group = "lake-writers"
[monitor]
topics = ["orders"]
[consumer]
spark_remote = "sc://kcga-spark:15002"
lake_root = "gs://lake/kafka"
"""
OVERLAY_NAMES = sorted(overlay.name for overlay in OVERLAYS.iterdir() if overlay.is_dir())
KUBERNETES = "1.35"
FOREIGN = {"PodMonitoring"}
"""Kinds that Kubernetes itself does not know."""

POD_MONITORING = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: podmonitorings.monitoring.googleapis.com}
spec:
  group: monitoring.googleapis.com
  names: {kind: PodMonitoring, plural: podmonitorings, singular: podmonitoring}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    file = tmp_path / "settings.toml"
    file.write_text(SETTINGS)
    return file


def rendered(settings: Path, overlay: str, image: str | None = None) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(render(settings, overlay, image)))


def the_map(objects: list[dict[str, Any]]) -> dict[str, str]:
    (data,) = (each["data"] for each in objects if each["kind"] == "ConfigMap")
    texts: dict[str, str] = data
    return texts


def a_consumer(objects: list[dict[str, Any]], template: str = "consumer.yaml") -> dict[str, Any]:
    owner = Owner("kcga-controller", "1", "kcga")
    class_name = ORDINARY if template == "consumer.yaml" else "large"
    return deployment(parse_template(the_map(objects)[template]), "lake", 7, owner, "5f", class_name)


def with_large(settings: Path, template: str = "large.yaml", *, text: str | None = None) -> None:
    """A class with a template of its own, which is the ordinary one but for its nodes where nothing else is said."""
    own = '[[consumer.classes]]\nname = "large"\ncapacity = 9_200_000\nprice = 5\n'
    settings.write_text(f'{SETTINGS}{own}template = "{template}"\n')
    made = yaml.safe_load((BASE / "consumer.yaml").read_text())
    made["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "large"}
    (settings.parent / "large.yaml").write_text(yaml.safe_dump(made) if text is None else text)


def pods_by_component(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Their specs, that of a consumer among them."""
    return {
        each["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]: each["spec"]["template"]["spec"]
        for each in (*objects, a_consumer(objects))
        if each["kind"] == "Deployment"
    }


@pytest.mark.parametrize("overlay", OVERLAY_NAMES)
def test_every_object_is_valid_by_the_strict_schemas(settings: Path, overlay: str) -> None:
    objects = rendered(settings, overlay)
    for each in (*objects, a_consumer(objects)):
        if each["kind"] not in FOREIGN:
            kubernetes_validate.validate(each, KUBERNETES, strict=True)


@pytest.mark.parametrize("overlay", OVERLAY_NAMES)
def test_a_real_api_server_takes_every_object(control_plane: ControlPlane, settings: Path, overlay: str) -> None:
    with_large(settings)
    objects = rendered(settings, overlay)
    namespaces = [each for each in objects if each["kind"] == "Namespace"]
    consumers = [a_consumer(objects), a_consumer(objects, "large.yaml")]
    for consumer in consumers:
        consumer["metadata"]["namespace"] = namespaces[0]["metadata"]["name"]
    control_plane.define("podmonitorings.monitoring.googleapis.com", "--filename=-", stdin=POD_MONITORING)
    # A dry run in a namespace needs the namespace. Warnings are what Pod Security and deprecations say.
    control_plane.kubectl("apply", "--server-side", "--filename=-", stdin=yaml.safe_dump_all(namespaces))
    said = control_plane.kubectl(
        "apply",
        "--server-side",
        "--dry-run=server",
        "--validate=strict",
        "--warnings-as-errors",
        "--filename=-",
        stdin=yaml.safe_dump_all([*objects, *consumers]),
    )
    assert said.count("serverside-applied (server dry run)") == len(objects) + 2


def test_the_prometheus_operator_takes_what_is_for_it(control_plane: ControlPlane, namespace: str) -> None:
    operator = go_program.source(installed(GO), Path(__file__).parent / "prometheusoperator")
    for kind in ("podmonitors", "prometheusrules"):
        schema = operator / "example" / "prometheus-operator-crd" / f"monitoring.coreos.com_{kind}.yaml"
        control_plane.define(f"{kind}.monitoring.coreos.com", f"--filename={schema}")
    said = control_plane.kubectl(
        "apply",
        "--server-side",
        "--dry-run=server",
        "--validate=strict",
        f"--namespace={namespace}",
        "--filename=-",
        stdin=yaml.safe_dump_all(kustomized(MONITORING / "operator")),
    )
    assert said.count("serverside-applied (server dry run)") == 2


@pytest.mark.parametrize("overlay", OVERLAY_NAMES)
def test_no_pod_may_more_than_it_needs(settings: Path, overlay: str) -> None:
    objects = rendered(settings, overlay)
    pods = [
        each["spec"]["template"]["spec"] for each in (*objects, a_consumer(objects)) if each["kind"] == "Deployment"
    ]
    assert len(pods) == 4
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"]
        for container in pod["containers"]:
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"]
            assert not security["allowPrivilegeEscalation"]
            assert security["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize("overlay", OVERLAY_NAMES)
def test_each_component_has_secrets_of_its_own_before_those_of_all_and_none_of_anothers(
    settings: Path, overlay: str
) -> None:
    """Hole 27: all components shared one Secret, and with it one user with the rights of all."""
    pods = pods_by_component(rendered(settings, overlay))
    sources = {
        component: [source["secretRef"] for source in pod["containers"][0]["envFrom"]]
        for component, pod in pods.items()
    }
    assert {component: [source["name"] for source in found] for component, found in sources.items()} == {
        **{component: [VARIABLES, f"kcga-{component}"] for component in ("consumer", "controller", "monitor")},
        "spark": ["kcga-spark"],  # it talks to nobody but the lake
    }
    assert all(source["optional"] for found in sources.values() for source in found), "one for all is enough"
    assert {found[-1]["name"] for found in sources.values()} == set(OWN_VARIABLES)


def test_each_component_has_certificates_of_all_and_its_own(settings: Path) -> None:
    for component, pod in pods_by_component(rendered(settings, "local")).items():
        (volume,) = (each for each in pod["volumes"] if each["name"] == "certificates")
        sources = [source["secret"] for source in volume["projected"]["sources"]]
        assert [source["name"] for source in sources] == ["kcga-certificates", f"kcga-{component}-certificates"]
        assert all(source["optional"] for source in sources)
        (mount,) = (each for each in pod["containers"][0]["volumeMounts"] if each["name"] == "certificates")
        assert mount == {"name": "certificates", "mountPath": str(CERTIFICATES), "readOnly": True}


def test_the_groups_settings_and_image_are_in_what_is_applied(settings: Path) -> None:
    objects = rendered(settings, "gke", "registry/kcga:2")
    assert the_map(objects)["settings.toml"] == SETTINGS
    pods = [each["spec"]["template"] for each in objects if each["kind"] == "Deployment"]
    assert {container["image"] for pod in pods for container in pod["spec"]["containers"]} == {"registry/kcga:2"}


@pytest.mark.parametrize(
    "spark",
    ['spark_remote = "sc://mine:15002"', 'spark_master = "local[1]"'],
    ids=["a server of one's own", "a session of each consumer's own"],
)
def test_a_spark_that_nobody_uses_is_left_out(settings: Path, spark: str) -> None:
    def named(objects: list[dict[str, Any]]) -> set[str]:
        return {each["kind"] for each in objects if each["metadata"]["name"] == "kcga-spark"}

    assert named(rendered(settings, "gke")) == {"Deployment", "Service", "ServiceAccount", "NetworkPolicy"}
    settings.write_text(SETTINGS.replace('spark_remote = "sc://kcga-spark:15002"', spark))
    assert named(rendered(settings, "gke")) == set()


def test_pods_begin_anew_with_other_settings(settings: Path) -> None:
    def annotations() -> list[dict[str, str]]:
        deployments = (each for each in rendered(settings, "local") if each["kind"] == "Deployment")
        return [each["spec"]["template"]["metadata"]["annotations"] for each in deployments]

    before = annotations()
    assert annotations() == before
    settings.write_text(SETTINGS.replace("orders", "clicks"))
    assert all(now != then for now, then in zip(annotations(), before, strict=True))


def test_a_dry_run_prints_what_would_be_applied(settings: Path) -> None:
    said = CliRunner().invoke(app, ["deploy", "--settings", str(settings), "--dry-run"])
    assert said.exit_code == 0, said.output
    assert {each["kind"] for each in yaml.safe_load_all(said.output)} >= {"Deployment", "Role", "NetworkPolicy"}


def test_a_group_whose_name_is_none_for_kubernetes_is_refused(settings: Path) -> None:
    settings.write_text(SETTINGS.replace("lake-writers", "Lake_Writers"))
    with pytest.raises(UsageError, match=r"fleet: the group's name, 'Lake_Writers'.*set kubernetes\.name"):
        render(settings, "local", None)


def test_what_was_deployed_before_can_be_brought_back(
    control_plane: ControlPlane, namespace: str, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what was deployed then, once more."""
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig))
    overlay = tmp_path / "mine"
    overlay.mkdir()
    base = Path(os.path.relpath(OVERLAYS.parent / "base", overlay))
    (overlay / "kustomization.yaml").write_text(f"namespace: {namespace}\nresources: [{base}]\n")

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments, "--overlay", str(overlay)], catch_exceptions=True)

    def deployed() -> str:
        text: str = the_map([yaml.safe_load(control_plane.kubectl("get", "configmap", "kcga-settings", *of))])[
            SETTINGS_KEY
        ]
        return text

    of = (f"--namespace={namespace}", "--output=yaml")
    assert "nothing to go back to" in str(run("rollout", "undo").exception)
    for lake in ("first", "second", "second"):
        settings.write_text(SETTINGS.replace("lake/kafka", f"lake/{lake}"))
        assert run("deploy", "--settings", str(settings)).exit_code == 0
    assert "lake/second" in deployed()
    for lake in ("first", "second"):
        assert run("rollout", "undo").exit_code == 0
        assert f"lake/{lake}" in deployed()


def test_a_controller_that_only_observes_loses_the_rights_that_it_had(
    control_plane: ControlPlane, namespace: str, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And has them again once it manages again."""
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig))
    overlay = tmp_path / "mine"
    overlay.mkdir()
    base = Path(os.path.relpath(BASE, overlay))
    (overlay / "kustomization.yaml").write_text(f"namespace: {namespace}\nresources: [{base}]\n")

    def rights(mode: str) -> list[Any]:
        settings.write_text(f'{SETTINGS}[controller]\nmode = "{mode}"\n')
        objects = render(settings, str(overlay), None)
        for each in yaml.safe_load_all(objects):
            kubernetes_validate.validate(each, KUBERNETES, strict=True)
        apply(objects)
        asked = ("get", "role", "kcga-controller", f"--namespace={namespace}", "--output=json")
        return json.loads(control_plane.kubectl(*asked)).get("rules") or []

    first, observing, again = map(rights, ("manage", "observe", "manage"))
    assert first == again
    assert {"create", "delete"} <= set(first[0]["verbs"])
    assert observing == []


def test_an_overlay_that_does_not_exist_is_refused(settings: Path) -> None:
    with pytest.raises(UsageError, match="one of eks, gke, local, or a folder"):
        render(settings, "moon", None)


def overlay_with(folder: Path, **texts: str) -> str:
    """One whose ConfigMap has these files, too: `large` is large.yaml."""
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
    base = os.path.relpath(BASE, folder)
    files = json.dumps([f"{name}.yaml" for name in texts])
    (folder / "kustomization.yaml").write_text(
        f"resources: [{base}]\nconfigMapGenerator: [{{name: kcga-settings, behavior: merge, files: {files}}}]\n"
    )
    return str(folder)


def test_the_template_of_a_class_is_beside_the_settings_or_in_the_overlay_which_goes_first(
    settings: Path, tmp_path: Path
) -> None:
    with_large(settings)
    beside = (tmp_path / "large.yaml").read_text()
    assert the_map(rendered(settings, "gke"))["large.yaml"] == beside
    own = beside.replace("pool: large", "pool: huge")
    overlay = overlay_with(tmp_path / "mine", large=own)
    assert the_map(rendered(settings, overlay))["large.yaml"] == own
    (tmp_path / "large.yaml").unlink()
    assert the_map(rendered(settings, overlay))["large.yaml"] == own
    with pytest.raises(
        UsageError, match=r"large is made from large\.yaml, which is neither beside the settings nor in"
    ):
        render(settings, "gke", None)


@pytest.mark.parametrize(
    ("template", "text", "said"),
    [
        ("of/large.yaml", None, "a file's name without a folder"),
        ("/etc/kcga/large.yaml", None, "a file's name without a folder"),
        ("my large.yaml", None, "of letters, digits"),
        ("..", None, "cannot be read"),
        ("large.yaml", "kind: Pod", r"large\.yaml .* it must be one Deployment"),
        ("settings.toml", None, r"settings\.toml .* no valid YAML"),
    ],
)
def test_a_template_of_a_class_that_cannot_be_deployed_is_refused(
    settings: Path, template: str, text: str | None, said: str
) -> None:
    with_large(settings, template, text=text)
    with pytest.raises(UsageError, match=said):
        render(settings, "local", None)


def test_an_overlay_of_ones_own_is_checked(settings: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "consumer.yaml").write_text("kind: Pod")
    (folder / "kustomization.yaml").write_text(
        "configMapGenerator: [{name: kcga-settings, files: [consumer.yaml], options: {disableNameSuffixHash: true}}]"
    )
    with pytest.raises(UsageError, match="it must be one Deployment"):
        render(settings, str(folder), None)
