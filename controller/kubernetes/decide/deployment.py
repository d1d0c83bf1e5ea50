"""The Deployment of a consumer, from the template that the operator owns.

What the controller decides is set here and must not be in the template; everything else (image, resources, probes,
topology spread, grace period) is the operator's.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NewType

import yaml

from controller.kubernetes.decide.names import CLASS, CONSUMER, REVISION, deployment_name, group_labels, pod_labels
from domain.assignment import ConsumerId
from domain.consumer_class import ORDINARY

NAME_VARIABLE = "CONSUMER_NAME"
"""The environment variable in which a consumer finds the name of its Deployment, and thereby which one it is."""

CLASS_VARIABLE = "CONSUMER_CLASS"
"""The same in which one that is not ordinary finds its class."""

Template = NewType("Template", Mapping[str, Any])
"""A Deployment that has been checked, without what the controller sets."""

Resources = Mapping[Literal["requests", "limits"], Mapping[str, str]]

_DECIDED = (("metadata", ("name", "namespace", "ownerReferences")), ("spec", ("replicas", "selector", "strategy")))


class TemplateError(ValueError):
    """What is wrong with the template, and what would be right; names all of it."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The controller's Deployment: consumers are deleted with it."""

    name: str
    uid: str
    image: str
    """Of its first container: what consumers run where the template names no image."""


def read_template(file: Path) -> Template:
    """The template in a file.

    Raises:
        TemplateError: it cannot be read, is no Deployment, or sets what the controller decides.
    """
    try:
        return parse_template(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise TemplateError(f"the template {file} cannot be read: {error}") from error
    except TemplateError as error:
        raise TemplateError(f"the template {file}: {error}") from error


def parse_template(text: str) -> Template:
    """The template in a YAML text.

    Raises:
        TemplateError: it is no Deployment, or sets what the controller decides.
    """
    try:
        template = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise TemplateError(f"no valid YAML: {error}") from error
    if faults := _faults(template):
        raise TemplateError("; ".join(faults))
    return Template(template)


def _faults(template: object) -> list[str]:
    if not isinstance(template, dict) or (template.get("apiVersion"), template.get("kind")) != (
        "apps/v1",
        "Deployment",
    ):
        return ["it must be one Deployment of apps/v1"]
    faults = [
        f"{section}.{field} is set: the controller decides it"
        for section, fields in _DECIDED
        for field in fields
        if field in (_at(template, section) or {})
    ]
    containers = _at(template, "spec", "template", "spec", "containers")
    if not (isinstance(containers, list) and containers and isinstance(containers[0], dict)):
        faults.append("spec.template.spec.containers is empty: the first container is the consumer")
    else:
        set_there = {variable.get("name") for variable in containers[0].get("env") or ()}
        of_ours = (name for name in (NAME_VARIABLE, CLASS_VARIABLE) if name in set_there)
        faults += [f"{name} is set: the controller decides it" for name in of_ours]
    return faults


def _at(value: object, *path: str) -> Any:
    """What is under the keys; None where one is missing."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def with_resources(template: Template, resources: Resources) -> Template:
    """The template with these requests or limits of the consumer's container in place of its own."""
    pod = template["spec"]["template"]
    first, *others = pod["spec"]["containers"]
    first = {**first, "resources": {**(first.get("resources") or {}), **resources}}
    spec = {**pod["spec"], "containers": [first, *others]}
    return Template({**template, "spec": {**template["spec"], "template": {**pod, "spec": spec}}})


def revision_of(template: Template, owner: Owner | None, settings: str) -> str:
    """A digest of what a consumer begins with: the template, the image that it gets from its owner, its settings."""
    begins_with = [template, owner.image if owner else None, settings]
    return hashlib.sha256(json.dumps(begins_with, sort_keys=True, default=str).encode()).hexdigest()[:16]


def deployment(
    template: Template,
    group: str,
    consumer: ConsumerId,
    owner: Owner | None,
    revision: str,
    class_name: str = ORDINARY,
) -> dict[str, Any]:
    """The consumer's Deployment, as it is applied.

    It is recreated rather than rolled: two pods of one consumer would be two processes with one number.
    """
    name = deployment_name(group, consumer)
    is_ordinary = class_name == ORDINARY
    labels = {**group_labels(group), CONSUMER: str(consumer), **({} if is_ordinary else {CLASS: class_name})}
    variables = {NAME_VARIABLE: name, **({} if is_ordinary else {CLASS_VARIABLE: class_name})}
    ours = ({"name": variable, "value": value} for variable, value in variables.items())
    metadata = template.get("metadata") or {}
    pod = template["spec"]["template"]
    pod_metadata = pod.get("metadata") or {}
    first, *others = pod["spec"]["containers"]
    image = {"image": owner.image} if owner else {}
    first = {**image, **first, "env": [*(first.get("env") or ()), *ours]}
    references = (
        [{"apiVersion": "apps/v1", "kind": "Deployment", "name": owner.name, "uid": owner.uid}] if owner else []
    )
    return {
        **template,
        "metadata": {
            **metadata,
            "name": name,
            "labels": {**(metadata.get("labels") or {}), **labels},
            "annotations": {**(metadata.get("annotations") or {}), REVISION: revision},
            "ownerReferences": references,
        },
        "spec": {
            **template["spec"],
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": pod_labels(group, consumer)},
            "template": {
                **pod,
                "metadata": {**pod_metadata, "labels": {**(pod_metadata.get("labels") or {}), **labels}},
                "spec": {**pod["spec"], "containers": [first, *others]},
            },
        },
    }
