"""The parts of the Helm chart that follow from the manifests and the settings: `make chart` writes them.

The chart has the objects that kustomize makes, and a schema of its values, so that a mistake in the settings is told
before anything is applied.
"""

import json
import re
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from app.settings import NAMED_BY_TOPIC, Settings
from cli.commands.deploy import BASE, KEY, MONITORING, SETTINGS_KEY, TEMPLATE_KEY, kustomized
from domain.secrecy import is_secret, names_of_secrets

COMPONENTS = ("controller", "monitor", "consumer", "spark")
RULES = MONITORING / "operator" / "rules.yaml"
_TABLE = {"type": "object"}


def rules(alerts: Path) -> str:
    """The alert rules of a file of Prometheus' as an object of its operator."""
    rule = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "kcga"},
        "spec": yaml.safe_load(alerts.read_text(encoding="utf-8")),
    }
    return f"# By `make chart`, of deploy/prometheus/{alerts.name}.\n{yaml.safe_dump(rule, sort_keys=False, width=120)}"


def objects() -> str:
    """All that may belong to a group, a list in YAML.

    Raises:
        KcgaError: there is no kubectl.
    """
    found = [each for folder in (BASE, *sorted(MONITORING.iterdir())) for each in kustomized(folder)]
    return f"# By `make chart`, of cli/manifests.\n{yaml.safe_dump(found, sort_keys=False, width=120)}"


def schema() -> str:
    """The schema of the chart's values: Helm refuses what does not fit."""
    settings = Settings.model_json_schema()
    definitions = settings.pop("$defs")
    for each in (settings, *definitions.values()):
        _keep_out_secrets(each)
    component = _closed({"annotations": _TABLE, "resources": _TABLE, "pod": _TABLE})
    values = _closed(
        {
            "image": {"type": "string", "pattern": "^[^ ]+$", "description": "Of all components: a name, and a tag."},
            "imagePullPolicy": {"enum": ["", "Always", "IfNotPresent", "Never"]},
            "imagePullSecrets": {"type": "array", "items": _TABLE},
            "settings": settings,
            **dict.fromkeys(COMPONENTS, component),
            "templates": {
                "type": "object",
                "propertyNames": {"pattern": f"^{KEY.pattern}$", "not": {"enum": [SETTINGS_KEY, TEMPLATE_KEY]}},
                "additionalProperties": _closed({"resources": _TABLE, "pod": _TABLE}),
            },
            "peers": {"type": "array", "items": _TABLE},
            "monitoring": {"enum": ["none", *sorted(folder.name for folder in MONITORING.iterdir())]},
            "global": _TABLE,
        }
    )
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps({**draft, **values, "required": ["image", "settings"], "$defs": definitions}, indent=1) + "\n"


def _closed(properties: Mapping[str, object]) -> dict[str, object]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _keep_out_secrets(section: dict[str, Any]) -> None:
    """They would be in a ConfigMap: no setting that is one, and none of those that clients take by their names."""
    properties: dict[str, dict[str, Any]] = section.get("properties", {})
    for name in [*properties]:
        if is_secret(name):
            del properties[name]
        elif "additionalProperties" in properties[name] and name not in NAMED_BY_TOPIC:
            properties[name]["propertyNames"] = {"not": names_of_secrets()}


def chart(text: str) -> str:
    """Chart.yaml with the version that kcga has."""
    return re.sub(r"(?m)^(version|appVersion): .*$", rf"\1: {version('kcga')}", text)


def parts(deploy: Path) -> Mapping[Path, Callable[[], str]]:
    """Each file that is made, and what says what is to be in it. `objects` alone needs kubectl."""
    folder = deploy / "helm" / "kcga"
    return {
        RULES: lambda: rules(deploy / "prometheus" / "rules.yml"),
        folder / "objects.yaml": objects,
        folder / "values.schema.json": schema,
        folder / "Chart.yaml": lambda: chart((folder / "Chart.yaml").read_text(encoding="utf-8")),
    }


if __name__ == "__main__":
    for file, text in parts(Path("deploy")).items():
        file.write_text(text(), encoding="utf-8")
