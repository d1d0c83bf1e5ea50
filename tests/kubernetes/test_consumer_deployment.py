"""The Deployment of a consumer: what the operator's template says, and what the controller decides."""

from pathlib import Path
from types import SimpleNamespace as Shown

import pytest
import yaml

from controller.kubernetes.decide.deployment import (
    Owner,
    Template,
    TemplateError,
    deployment,
    parse_template,
    read_template,
)
from controller.kubernetes.decide.names import consumer_of, deployment_name
from controller.kubernetes.decide.troubles import trouble_of_deployment, trouble_of_pod

TEMPLATE = """
apiVersion: apps/v1
kind: Deployment
metadata:
  labels: {team: lake}
spec:
  progressDeadlineSeconds: 60
  template:
    metadata:
      annotations: {note: mine}
    spec:
      containers:
        - {name: consumer, image: kcga, env: [{name: REGION, value: west}]}
        - {name: sidecar, image: proxy}
"""


@pytest.mark.parametrize("number", [1, 9, 10, 4711])
def test_a_name_says_which_consumer_it_is(number: int) -> None:
    assert consumer_of(deployment_name("lake", number)) == number


@pytest.mark.parametrize(
    "name", ["lake-consumer-", "lake-consumer-0", "lake-consumer-01", "lake-consumer-1x", "lake-7"]
)
def test_other_names_say_none(name: str) -> None:
    assert consumer_of(name) is None


def test_the_operators_part_stays_and_the_controllers_part_is_added() -> None:
    made = deployment(parse_template(TEMPLATE), "lake", 3, Owner("kcga-controller", "abc", "kcga:1"), "5f")
    pod = made["spec"]["template"]
    assert made["metadata"]["name"] == "lake-consumer-3"
    assert made["metadata"]["labels"]["team"] == "lake"
    assert made["metadata"]["ownerReferences"][0]["uid"] == "abc"
    assert made["spec"]["progressDeadlineSeconds"] == 60
    assert made["spec"]["strategy"] == {"type": "Recreate"}
    assert made["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert pod["metadata"]["annotations"] == {"note": "mine"}
    consumer, sidecar = pod["spec"]["containers"]
    assert {entry["name"]: entry["value"] for entry in consumer["env"]} == {
        "REGION": "west",
        "CONSUMER_NAME": "lake-consumer-3",
    }
    assert "env" not in sidecar


def test_the_template_is_left_as_it_is() -> None:
    template = parse_template(TEMPLATE)
    deployment(template, "lake", 1, None, "5f")
    assert template == Template(yaml.safe_load(TEMPLATE))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("", "one Deployment"),
        ("kind: [", "no valid YAML"),
        (TEMPLATE.replace("Deployment", "StatefulSet"), "one Deployment"),
        (TEMPLATE.replace("progressDeadlineSeconds: 60", "replicas: 2"), "spec.replicas is set"),
        (TEMPLATE.replace("labels: {team: lake}", "name: mine"), "metadata.name is set"),
        (TEMPLATE.replace("REGION", "CONSUMER_NAME"), "CONSUMER_NAME is set"),
        (TEMPLATE[: TEMPLATE.index("containers")], "containers is empty"),
    ],
)
def test_what_is_wrong_with_a_template_is_said(change: str, complaint: str) -> None:
    with pytest.raises(TemplateError, match=complaint):
        parse_template(change)


def test_a_template_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match=r"consumer\.yaml cannot be read"):
        read_template(tmp_path / "consumer.yaml")


def container(reason: str | None) -> Shown:
    waiting = Shown(reason=reason, message=None) if reason else None
    return Shown(name="consumer", state=Shown(waiting=waiting))


def pod(*containers: Shown, conditions: tuple[Shown, ...] = ()) -> Shown:
    status = Shown(conditions=conditions, init_container_statuses=None, container_statuses=containers)
    return Shown(status=status)


def test_a_pod_that_starts_or_runs_has_no_trouble() -> None:
    assert trouble_of_pod(pod(container("ContainerCreating"))) is None
    assert trouble_of_pod(pod(container(None))) is None
    assert trouble_of_pod(pod()) is None


def test_the_trouble_of_a_pod_is_told_in_the_clusters_words() -> None:
    assert trouble_of_pod(pod(container("ImagePullBackOff"))) == "consumer: ImagePullBackOff"
    unscheduled = Shown(type="PodScheduled", status="False", reason="Unschedulable", message="0/3 nodes are available")
    assert "0/3 nodes are available" in str(trouble_of_pod(pod(conditions=(unscheduled,))))


def test_the_trouble_of_a_deployment_is_that_it_gets_no_pod() -> None:
    failure = Shown(type="ReplicaFailure", status="True", reason="FailedCreate", message="exceeded quota")
    assert "exceeded quota" in str(trouble_of_deployment(Shown(status=Shown(conditions=[failure]))))
    assert trouble_of_deployment(Shown(status=Shown(conditions=None))) is None
