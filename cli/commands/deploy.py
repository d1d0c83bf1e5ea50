"""`kcga deploy`: the overlay that kustomize makes, with a group's settings and image in it."""

import hashlib
import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
import yaml

from app.errors import KcgaError, UsageError
from app.settings import NAMED_BY_TOPIC, Settings, load
from cli.options import SettingsFile
from controller.kubernetes.decide.deployment import TemplateError, parse_template
from domain.consumer_class import ORDINARY
from domain.secrecy import masked, redacted

MANIFESTS = Path(__file__).parents[1] / "manifests"
BASE, OVERLAYS, MONITORING = (MANIFESTS / name for name in ("base", "overlays", "monitoring"))
SETTINGS_MAP, SETTINGS_KEY, TEMPLATE_KEY = "kcga-settings", "settings.toml", "consumer.yaml"
VARIABLES = "kcga-kafka"
"""The Secret whose keys are variables of every component's environment."""
OWN_VARIABLES = ("kcga-monitor", "kcga-controller", "kcga-consumer", "kcga-spark")
"""The Secrets whose keys are variables of one component's environment, and go before those of all."""
SETTINGS_HASH = "kcga/settings"
"""An annotation of pods: the controller and the monitor begin anew with other settings."""
FIELD_MANAGER = "kcga-deploy"
CONTROLLER = "kcga-controller"
"""The Role of the controller."""
SPARK = "kcga-spark"
"""The Service of the Spark Connect server that goes with a group, if its consumers name it."""
HISTORY, NOW, BEFORE = "kcga-deployed", "now", "before"
"""The ConfigMap that keeps what was applied, and its keys."""
COMPONENT = "app.kubernetes.io/component"
KEY = re.compile(r"[-._a-zA-Z0-9]+")
"""Of a ConfigMap."""


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as they are."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


Overlay = Annotated[str, typer.Option(help="local, gke, eks, or a folder with a kustomization of one's own.")]


def deploy(
    settings: SettingsFile,
    overlay: Overlay = "local",
    image: Annotated[str | None, typer.Option(help="The image of all components, in place of the overlay's.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be applied, and apply nothing.")] = False,
) -> None:
    objects = render(settings, overlay, image)
    if dry_run:
        print(objects, end="")  # noqa: T201
    else:
        print(apply(objects), end="")  # noqa: T201
        remember(objects, overlay)


def render(file: Path, overlay: str, image: str | None) -> str:
    """The objects as YAML.

    Args:
        file: the settings of the group.
        overlay: one of those that come with kcga, or a folder with a kustomization of one's own.
        image: in place of the overlay's.

    Raises:
        UsageError: the settings, the overlay or its template of consumers are wrong, or secrets are in the settings.
        KcgaError: there is no kubectl.
    """
    # Where consumers are is not in the file: the manifests say so, and the rules that go with it count from here on.
    settings = load(file, fleet="kubernetes")
    text = file.read_text(encoding="utf-8")
    _require_no_secrets(file, text)
    objects = kustomized(_folder(overlay))
    if not any(urlsplit(remote).hostname == SPARK for remote in settings.consumer.spark_remote or ()):
        objects = [each for each in objects if each["metadata"].get("labels", {}).get(COMPONENT) != "spark"]
    digest = hashlib.sha256(text.encode()).hexdigest()
    for each in objects:
        if each["kind"] == "Deployment":
            pod = each["spec"]["template"]
            pod["metadata"].setdefault("annotations", {})[SETTINGS_HASH] = digest
            for container in pod["spec"]["containers"] if image else ():
                container["image"] = image
        elif each["kind"] == "ConfigMap" and each["metadata"]["name"] == SETTINGS_MAP:
            each["data"] = {**_beside(file, settings), **each["data"], SETTINGS_KEY: text}
        elif each["kind"] == "Role" and each["metadata"]["name"] == CONTROLLER and settings.controller.observes:
            # Not left out: what was applied before, for a controller that manages, would stay.
            each["rules"] = []
    _check(objects, overlay, settings)
    return yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False)


def _of_classes(settings: Settings) -> dict[str, str]:
    """The names of the templates that classes are made from, with the class that names each first."""
    found: dict[str, str] = {}
    for each in settings.consumer.classes:
        if each.template is not None:
            found.setdefault(str(each.template), each.name)
    return found


def _beside(file: Path, settings: Settings) -> dict[str, str]:
    """The templates of classes that are beside the settings, by their names, as they are in the ConfigMap.

    Raises:
        UsageError: a template is in another folder, or cannot be read.
    """
    texts = {}
    for name, of in _of_classes(settings).items():
        if not KEY.fullmatch(name):
            raise UsageError(
                f"the class {of} is made from {name}: kcga deploy puts that beside {SETTINGS_KEY} in the ConfigMap "
                f"{SETTINGS_MAP}, so it must be a file's name without a folder, of letters, digits, '-', '_' and '.'"
            )
        try:
            texts[name] = (file.parent / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            continue  # the overlay has it
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"{file.parent / name}, which the class {of} is made from, cannot be read: {error}"
            ) from error
    return texts


def _require_no_secrets(file: Path, text: str) -> None:
    """The settings go into a ConfigMap, which whoever may look at the namespace reads."""
    found = [f"{setting} (as {variable})" for setting, variable in _secrets(tomllib.loads(text))]
    found += [
        f"a comment in line {number}"
        for number, line in enumerate(text.splitlines(), 1)
        if masked(comment := line.partition("#")[2]) != comment
    ]
    if found:
        raise UsageError(
            f"{file} holds secrets, and would be in a ConfigMap: move {', '.join(dict.fromkeys(found))} to the Secret "
            f"{VARIABLES}, which all components have, or to a component's own ({', '.join(OWN_VARIABLES)}), each under "
            "its name in the environment: docs/gke.md, The settings"
        )


def _secrets(value: Any, *names: str) -> Iterator[tuple[str, str]]:
    """The settings that are secret, and the variables that go before them."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name not in NAMED_BY_TOPIC:
                yield from _secrets(inner, *names, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _secrets(inner, *names)
    elif isinstance(value, str) and redacted(value, names[-1]) != value:
        yield ".".join(names), "__".join(("KCGA_" + names[0], *names[1:2])).upper()


def apply(text: str) -> str:
    """Applies the objects to the cluster of the kubeconfig's current context; what kubectl says.

    Raises:
        KcgaError: kubectl is missing, or the cluster refuses something.
    """
    return _kubectl("apply", "--server-side", f"--field-manager={FIELD_MANAGER}", "--filename=-", stdin=text)


def remember(text: str, overlay: str) -> None:
    """Keeps what was applied, and what was applied before that, in the group's namespace, for `undo`.

    Raises:
        KcgaError: kubectl is missing, or the cluster refuses it.
    """
    namespace = _namespace(overlay)
    applied = _applied(namespace)
    if applied.get(NOW) != text:
        _keep({NOW: text, BEFORE: applied.get(NOW, "")}, namespace)


def undo(overlay: str) -> str:
    """Applies what was applied before the last time; what kubectl says. Done twice, it is as it was.

    Raises:
        UsageError: there is no such overlay.
        KcgaError: nothing was applied before, kubectl is missing, or the cluster refuses something.
    """
    namespace = _namespace(overlay)
    applied = _applied(namespace)
    before = applied.get(BEFORE)
    if not before:
        raise KcgaError(f"there is nothing to go back to: kcga deploy has changed nothing in {namespace} yet")
    said = apply(before)
    _keep({NOW: before, BEFORE: applied[NOW]}, namespace)
    return said


def _namespace(overlay: str) -> str:
    named = (each["metadata"] for each in kustomized(_folder(overlay)) if each["kind"] == "ConfigMap")
    return next((str(each["namespace"]) for each in named if "namespace" in each), "default")


def _applied(namespace: str) -> dict[str, str]:
    found = _kubectl("get", "configmap", HISTORY, f"--namespace={namespace}", "--ignore-not-found", "--output=json")
    data: dict[str, str] = json.loads(found)["data"] if found.strip() else {}
    return data


def _keep(data: dict[str, str], namespace: str) -> None:
    history = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": HISTORY, "namespace": namespace}}
    apply(json.dumps({**history, "data": data}))


def _folder(overlay: str) -> Path:
    named = OVERLAYS / overlay
    folder = named if named.is_dir() else Path(overlay)
    if not (folder / "kustomization.yaml").is_file():
        known = ", ".join(sorted(each.name for each in OVERLAYS.iterdir() if each.is_dir()))
        raise UsageError(
            f"there is no overlay {overlay!r}: it must be one of {known}, or a folder with a kustomization.yaml"
        )
    return folder


def kustomized(folder: Path) -> list[dict[str, Any]]:
    """The objects that kustomize makes of a folder.

    Raises:
        KcgaError: kubectl is missing, or refuses the folder.
    """
    return [each for each in yaml.safe_load_all(_kubectl("kustomize", str(folder))) if each]


def _check(objects: list[dict[str, Any]], overlay: str, settings: Settings) -> None:
    """What the controller would complain about only in the cluster."""
    data = [
        each["data"] for each in objects if each["kind"] == "ConfigMap" and each["metadata"]["name"] == SETTINGS_MAP
    ]
    if not data:
        raise UsageError(
            f"the overlay {overlay} has no ConfigMap {SETTINGS_MAP} with {SETTINGS_KEY} and {TEMPLATE_KEY}"
        )
    templates = {TEMPLATE_KEY: "", **data[0]}
    for name, of in {**_of_classes(settings), TEMPLATE_KEY: ORDINARY}.items():
        if name not in templates:
            raise UsageError(
                f"the class {of} is made from {name}, which is neither beside the settings nor in {SETTINGS_MAP} of "
                f"the overlay {overlay}"
            )
        try:
            parse_template(templates[name])
        except TemplateError as error:
            raise UsageError(f"{name} of the overlay {overlay}: {error}") from error


def _kubectl(*arguments: str, stdin: str | None = None) -> str:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise KcgaError("kubectl is not on the PATH: install it, it also holds kustomize")
    done = subprocess.run([kubectl, *arguments], input=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise KcgaError(f"kubectl {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout
