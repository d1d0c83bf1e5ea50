"""What a group is on Kubernetes: the overlay that kustomize makes, with the group's settings and image in it."""

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

import deploy as manifests
from cli.errors import KcgaError, UsageError
from cli.settings import load
from controller.kubernetes.deployment import TemplateError, parse_template

OVERLAYS = Path(manifests.__file__).parent / "overlays"
SETTINGS_MAP, SETTINGS_KEY, TEMPLATE_KEY = "kcga-settings", "settings.toml", "consumer.yaml"
SETTINGS_HASH = "kcga/settings"
"""An annotation of pods: the controller and the monitor begin anew with other settings."""
FIELD_MANAGER = "kcga-deploy"


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as they are."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


def render(file: Path, overlay: str, image: str | None) -> str:
    """The objects as YAML.

    Args:
        file: the settings of the group.
        overlay: one of those that come with kcga, or a folder with a kustomization of one's own.
        image: in place of the overlay's.

    Raises:
        UsageError: the settings, the overlay or its template of consumers are wrong.
        KcgaError: there is no kubectl.
    """
    # Where consumers are is not in the file: the manifests say so, and the rules that go with it count from here on.
    load(file, fleet="kubernetes")
    objects = _kustomized(_folder(overlay))
    text = file.read_text(encoding="utf-8")
    digest = hashlib.sha256(text.encode()).hexdigest()
    for each in objects:
        if each["kind"] == "Deployment":
            pod = each["spec"]["template"]
            pod["metadata"].setdefault("annotations", {})[SETTINGS_HASH] = digest
            for container in pod["spec"]["containers"] if image else ():
                container["image"] = image
        elif each["kind"] == "ConfigMap" and each["metadata"]["name"] == SETTINGS_MAP:
            each["data"][SETTINGS_KEY] = text
    _check(objects, overlay)
    return yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False)


def apply(text: str) -> str:
    """Applies the objects to the cluster of the kubeconfig's current context; what kubectl says.

    Raises:
        KcgaError: kubectl is missing, or the cluster refuses something.
    """
    return _kubectl("apply", "--server-side", f"--field-manager={FIELD_MANAGER}", "--filename=-", stdin=text)


def _folder(overlay: str) -> Path:
    named = OVERLAYS / overlay
    folder = named if named.is_dir() else Path(overlay)
    if not (folder / "kustomization.yaml").is_file():
        known = ", ".join(sorted(each.name for each in OVERLAYS.iterdir() if each.is_dir()))
        raise UsageError(
            f"there is no overlay {overlay!r}: it must be one of {known}, or a folder with a kustomization.yaml"
        )
    return folder


def _kustomized(folder: Path) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(_kubectl("kustomize", str(folder))) if each]


def _check(objects: list[dict[str, Any]], overlay: str) -> None:
    """What the controller would complain about only in the cluster."""
    templates = [
        each["data"].get(TEMPLATE_KEY, "")
        for each in objects
        if each["kind"] == "ConfigMap" and each["metadata"]["name"] == SETTINGS_MAP
    ]
    if not templates:
        raise UsageError(
            f"the overlay {overlay} has no ConfigMap {SETTINGS_MAP} with {SETTINGS_KEY} and {TEMPLATE_KEY}"
        )
    try:
        parse_template(templates[0])
    except TemplateError as error:
        raise UsageError(f"{TEMPLATE_KEY} of the overlay {overlay}: {error}") from error


def _kubectl(*arguments: str, stdin: str | None = None) -> str:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise KcgaError("kubectl is not on the PATH: install it, it also holds kustomize")
    done = subprocess.run([kubectl, *arguments], input=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise KcgaError(f"kubectl {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout
