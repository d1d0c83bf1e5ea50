"""The Helm chart: the objects of `kcga deploy`, values that are checked first, and a group that it installs."""

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client

from app.java import Java
from app.settings import load
from cli.chart import COMPONENTS, objects
from cli.commands.deploy import BASE, MONITORING, SETTINGS_HASH, SETTINGS_KEY, TEMPLATE_KEY, render
from consumer.verify import verify
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.process_kubelet import ProcessKubelet
from tests.kubernetes.secured_group import CHART, grant_rights, helm, secrets_of, settings_file, values_of
from tests.patience import wait_until
from tests.secure_cluster import DATA, Cluster, produce, secure_cluster
from tests.services import SharedSpark

pytestmark = pytest.mark.usefixtures("kubectl")

NAMESPACE = "streams"
SETTINGS = """
[kafka]
bootstrap_servers = "kafka:9092"
group = "lake-writers"
client = { "security.protocol" = "SASL_SSL", "ssl.ca.location" = "/etc/kcga-certificates/ca.crt" }
[monitor]
topics = ["orders", "^clicks\\\\..*"]
window_s = 12.5
[controller]
consumer_capacity = 2_300_000
max_consumers = 50
quiet_periods = [{ cron = "0 22 * * *", duration_s = 28800, time_zone = "Europe/Lisbon" }]
pinned = { "orders-3" = 1 }
[consumer]
spark_remote = "sc://kcga-spark:15002"
lake_root = "gs://lake/kafka"
"""
CLASSES = """
[[consumer.classes]]
name = "large"
capacity = 9_200_000
price = 5
template = "large.yaml"
"""
VALUES: dict[str, Any] = {"image": "registry/kcga:2", "settings": tomllib.loads(SETTINGS)}
MONITORINGS = ["none", *sorted(folder.name for folder in MONITORING.iterdir())]


def rendered(values: Mapping[str, Any] = VALUES) -> list[dict[str, Any]]:
    done = helm("template", "kcga", CHART, namespace=NAMESPACE, values=values)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def templates(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The pods' templates by component, that of consumers among them."""
    pods = {
        each["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]: each["spec"]["template"]
        for each in objects
        if each["kind"] == "Deployment"
    }
    (data,) = (each["data"] for each in objects if each["kind"] == "ConfigMap")
    return {**pods, "consumer": yaml.safe_load(data[TEMPLATE_KEY])["spec"]["template"]}


def comparable(objects: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """By kind and name; what is text in another form is compared by what it says."""
    found = {}
    for each in deepcopy(objects):
        if each["kind"] == "Deployment":
            assert len(each["spec"]["template"]["metadata"]["annotations"].pop(SETTINGS_HASH)) == 64
        elif each["kind"] == "ConfigMap":
            each["data"][SETTINGS_KEY] = tomllib.loads(each["data"][SETTINGS_KEY])
            for name in each["data"].keys() - {SETTINGS_KEY}:
                each["data"][name] = yaml.safe_load(each["data"][name])
        found[each["kind"], each["metadata"]["name"]] = each
    return found


def test_the_objects_are_those_of_the_manifests() -> None:
    assert (CHART / "objects.yaml").read_text() == objects(), "`make chart` writes it anew"


@pytest.mark.parametrize("remote", ["sc://kcga-spark:15002", "sc://mine:15002", ["sc://mine", "sc://kcga-spark"]])
@pytest.mark.parametrize("monitoring", MONITORINGS)
def test_helm_and_kustomize_make_the_same_objects(monitoring: str, remote: str | list[str], tmp_path: Path) -> None:
    file, overlay = tmp_path / "settings.toml", tmp_path / "overlay"
    file.write_text(SETTINGS.replace('"sc://kcga-spark:15002"', json.dumps(remote)))
    overlay.mkdir()
    write_kustomization(overlay, BASE, *([MONITORING / monitoring] if monitoring != "none" else []))
    by_kustomize = list(yaml.safe_load_all(render(file, str(overlay), VALUES["image"])))
    by_helm = rendered({**VALUES, "settings": tomllib.loads(file.read_text()), "monitoring": monitoring})
    assert comparable(by_helm) == comparable(by_kustomize)


@pytest.mark.parametrize("mode", ["manage", "observe"])
def test_a_controller_that_only_observes_has_no_right_by_helm_or_kustomize(mode: str, tmp_path: Path) -> None:
    file, overlay = tmp_path / "settings.toml", tmp_path / "overlay"
    file.write_text(SETTINGS.replace("[controller]", f'[controller]\nmode = "{mode}"'))
    overlay.mkdir()
    write_kustomization(overlay, BASE)
    by_kustomize = list(yaml.safe_load_all(render(file, str(overlay), VALUES["image"])))
    by_helm = rendered({**VALUES, "settings": tomllib.loads(file.read_text())})
    assert comparable(by_helm) == comparable(by_kustomize)
    (rules,) = (each["rules"] for each in by_helm if each["kind"] == "Role")
    assert bool(rules) == (mode == "manage")


def write_kustomization(overlay: Path, *folders: Path) -> None:
    resources = [os.path.relpath(folder, overlay) for folder in folders]
    (overlay / "kustomization.yaml").write_text(json.dumps({"namespace": NAMESPACE, "resources": resources}))


def test_a_class_is_made_from_the_same_template_by_helm_and_kustomize(tmp_path: Path) -> None:
    """Which Helm makes of the consumers' own, and kcga deploy finds beside the settings."""
    pod = {"nodeSelector": {"pool": "large"}, "terminationGracePeriodSeconds": 100}
    resources = {"requests": {"cpu": "4"}}
    template = yaml.safe_load((BASE / TEMPLATE_KEY).read_text())
    spec = template["spec"]["template"]["spec"]
    spec |= pod
    spec["containers"][0]["resources"] = resources
    file, overlay = tmp_path / "settings.toml", tmp_path / "overlay"
    (tmp_path / "large.yaml").write_text(yaml.safe_dump(template))
    file.write_text(f"{SETTINGS}{CLASSES}")
    overlay.mkdir()
    write_kustomization(overlay, BASE)
    by_kustomize = list(yaml.safe_load_all(render(file, str(overlay), VALUES["image"])))
    values = {**VALUES, "settings": tomllib.loads(file.read_text())}
    by_helm = rendered({**values, "templates": {"large.yaml": {"pod": pod, "resources": resources}}})
    assert comparable(by_helm) == comparable(by_kustomize)
    (data,) = (each["data"] for each in comparable(by_helm).values() if each["kind"] == "ConfigMap")
    assert data["large.yaml"]["spec"]["template"]["spec"] == spec
    assert data[TEMPLATE_KEY] == comparable(rendered())["ConfigMap", "kcga-settings"]["data"][TEMPLATE_KEY]


def test_values_of_consumers_are_also_those_of_their_classes() -> None:
    values = changed("consumer", {"pod": {"priorityClassName": "high"}, "resources": {"requests": {"cpu": "2"}}})
    values["templates"] = {"large.yaml": {"pod": {"nodeSelector": {"pool": "large"}}}}
    (data,) = (each["data"] for each in rendered(values) if each["kind"] == "ConfigMap")
    spec = yaml.safe_load(data["large.yaml"])["spec"]["template"]["spec"]
    assert spec["priorityClassName"] == "high"
    assert spec["nodeSelector"] == {"pool": "large"}
    assert spec["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert "nodeSelector" not in data[TEMPLATE_KEY]


def test_a_class_whose_template_is_not_there_is_told_before_anything_is_applied() -> None:
    values = {**VALUES, "settings": tomllib.loads(f"{SETTINGS}{CLASSES}"), "templates": {"larger.yaml": {}}}
    done = helm("template", "kcga", CHART, namespace=NAMESPACE, values=values)
    assert done.returncode != 0
    assert "large is made from large.yaml, and templates has none of that name" in done.stderr


def test_the_settings_are_those_of_the_file(tmp_path: Path) -> None:
    """Helm knows no whole numbers."""
    by_hand = tmp_path / "settings.toml"
    by_hand.write_text(SETTINGS)
    assert load(settings_file(VALUES, tmp_path / "by-helm.toml")) == load(by_hand)


def test_values_of_a_component_are_laid_over_its_pods() -> None:
    own: dict[str, dict[str, Any]] = {
        component: {
            "annotations": {"eks.amazonaws.com/role-arn": f"role-of-{component}"},
            "resources": {"requests": {"cpu": f"{number}"}},
            "pod": {"nodeSelector": {"pool": component}, "terminationGracePeriodSeconds": 100 + number},
        }
        for number, component in enumerate(COMPONENTS, 1)
    }
    objects = rendered({**VALUES, **own, "imagePullSecrets": [{"name": "pull"}], "imagePullPolicy": "Always"})
    of_accounts = [each["metadata"] for each in objects if each["kind"] == "ServiceAccount"]
    accounts = {metadata["name"]: metadata["annotations"] for metadata in of_accounts}
    assert accounts == {f"kcga-{component}": values["annotations"] for component, values in own.items()}
    pods, plain = templates(objects), templates(rendered())
    for component, values in own.items():
        pod, (container,) = pods[component]["spec"], pods[component]["spec"]["containers"]
        assert container["resources"] == values["resources"]
        assert container["imagePullPolicy"] == "Always"
        assert pod["imagePullSecrets"] == [{"name": "pull"}]
        assert pod.items() >= values["pod"].items()
        assert pod["securityContext"] == plain[component]["spec"]["securityContext"]


def test_figures_and_page_can_be_kept_to_peers() -> None:
    peers = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
    policies = {
        each["metadata"]["name"]: each["spec"]["ingress"]
        for each in rendered({**VALUES, "peers": peers})
        if each["kind"] == "NetworkPolicy"
    }
    assert policies["kcga"] == [{"from": peers, "ports": [{"port": "http"}]}]
    assert policies["kcga-spark"] != policies["kcga"]


def changed(path: str, value: object) -> dict[str, Any]:
    """The values with another one at a path with dots."""
    values = deepcopy(VALUES)
    *parents, name = path.split("/")
    table = values
    for parent in parents:
        table = table.setdefault(parent, {})
    table[name] = value
    return values


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("image", "", "/image"),
        ("settings/kafka/bootstrap_servers", None, "bootstrap_servers"),
        ("settings/controller/max_consumer", 5, "max_consumer"),
        ("settings/controller/max_consumers", 0, "/settings/controller/max_consumers"),
        ("settings/controller/consumer_capacity", "much", "/settings/controller/consumer_capacity"),
        ("settings/consumer/lake_root", 7, "/settings/consumer/lake_root"),
        ("settings/http/token", "a-secret-of-16-characters", "token"),
        ("settings/kafka/client/sasl.password", "geheim", "sasl.password"),
        ("settings/consumer/spark_conf/spark.connect.authenticate.token", "geheim", "authenticate.token"),
        ("monitoring", "nobody", "/monitoring"),
        ("consumers", {}, "consumers"),
        ("controller/replica", 3, "replica"),
        ("templates", {"settings.toml": {}}, "invalid propertyName 'settings.toml'"),
        ("templates", {"of/large.yaml": {}}, "invalid propertyName 'of/large.yaml'"),
        ("templates/large.yaml", {"replicas": 3}, "replicas"),
    ],
)
def test_a_mistake_is_told_before_anything_is_applied(path: str, value: object, said: str) -> None:
    done = helm("template", "kcga", CHART, namespace=NAMESPACE, values=changed(path, value))
    assert done.returncode != 0
    assert "values don't meet the specifications of the schema" in done.stderr
    assert said in done.stderr
    assert "geheim" not in done.stderr


def test_consumers_may_have_a_spark_of_their_own(tmp_path: Path) -> None:
    """No default is in its way, and no server comes with the group."""
    values = changed("settings/consumer/spark_master", "local[1]")
    del values["settings"]["consumer"]["spark_remote"]
    assert templates(rendered(values)).keys() == {"controller", "monitor", "consumer"}
    assert load(settings_file(values, tmp_path / "settings.toml")).consumer.spark_remote is None


@pytest.mark.parametrize("capacity", ["auto", 1_000_000, 1.5e6])
def test_a_capacity_may_be_learned(capacity: object) -> None:
    assert rendered(changed("settings/controller/consumer_capacity", capacity))


def test_helm_finds_nothing_to_complain_of() -> None:
    done = helm("lint", CHART, "--strict", namespace=NAMESPACE, values=VALUES)
    assert done.returncode == 0, done.stdout


@pytest.fixture
def cluster(java: Java, tmp_path: Path) -> Iterator[Cluster]:
    with secure_cluster(tmp_path, java) as cluster:
        yield cluster


@pytest.mark.slow(90)
@pytest.mark.timeout(2400)
@pytest.mark.integration
def test_a_group_that_helm_installs_reads_with_least_rights_from_brokers_of_a_private_authority(
    control_plane: ControlPlane,
    kubelet: ProcessKubelet,  # noqa: ARG001 (runs the pods)
    cluster: Cluster,
    spark_server: SharedSpark,
    lake_root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Then with other settings, back to those before, and away with it."""
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig))
    values = values_of(cluster, {"spark_remote": spark_server.remote, "lake_root": str(lake_root)})
    settings = values["settings"]
    grant_rights(cluster, settings_file(values, tmp_path / "settings.toml"))
    looks = control_plane.client(insists=True)
    core, apps = client.CoreV1Api(looks), client.AppsV1Api(looks)
    core.create_namespace({"metadata": {"name": NAMESPACE}})
    for name, texts in secrets_of(cluster).items():
        core.create_namespaced_secret(NAMESPACE, {"metadata": {"name": name}, "stringData": texts})

    def consumers() -> list[str]:
        of = "app.kubernetes.io/component=consumer"
        return [each.metadata.name for each in apps.list_namespaced_deployment(NAMESPACE, label_selector=of).items]

    def comes_to(produced: int) -> bool:
        accounts = verify(spark_server.remote, str(lake_root), [DATA]).values()
        assert not any(account.doubled for account in accounts)
        return sum(account.distinct_offsets for account in accounts) == produced

    def run(*arguments: str | Path) -> None:
        done = helm(*arguments, namespace=NAMESPACE, values=values)
        assert done.returncode == 0, done.stderr

    try:
        run("upgrade", "--install", "kcga", CHART)
        produce(cluster.client("admin"), DATA, [b"x" * 500] * 500, partitions=2)
        wait_until(lambda: comes_to(500))
        before = consumers()

        settings["consumer"]["wait_time_secs"] = 2
        run("upgrade", "kcga", CHART)
        wait_until(lambda: len(now := consumers()) == 1 and now != before)
        produce(cluster.client("admin"), DATA, [b"y" * 500] * 500, partitions=2)
        wait_until(lambda: comes_to(1000))
        after = consumers()

        run("rollback", "kcga")
        wait_until(lambda: len(now := consumers()) == 1 and now != after)
        run("uninstall", "kcga")
        wait_until(lambda: not core.list_namespaced_pod(NAMESPACE).items)
        assert consumers() == []
        assert comes_to(1000)
    finally:
        control_plane.remove(NAMESPACE)
