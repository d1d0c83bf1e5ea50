"""What consumers are set up with, as a digest: those that began with another are replaced (`kcga rollout`)."""

import hashlib
import json
import tomllib
from importlib.metadata import version
from pathlib import Path

from domain.consumer_class import ORDINARY

OF_OTHERS = frozenset({"controller", "kubernetes", "local", "monitor", "spark"})
"""The sections of the settings file that consumers do not go by."""


OF_THE_CONTROLLER = frozenset({"capacity", "price", "resources", "template"})
"""What a class says for the controller: it goes by that, or makes Deployments of it."""


def revisions_of(file: Path) -> dict[str, str] | None:
    """A digest of what the file says for consumers of each class, and of kcga's version; None where it cannot be read
    just now."""
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    of_consumers = {name: value for name, value in values.items() if name not in OF_OTHERS}
    classes: list[dict[str, object]] = []
    if isinstance(consumer := of_consumers.get("consumer"), dict):
        given = consumer.get("classes")
        classes = [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
        of_consumers["consumer"] = {name: value for name, value in consumer.items() if name != "classes"}
    begins_with = [version("kcga"), of_consumers]
    own = [{name: value for name, value in each.items() if name not in OF_THE_CONTROLLER} for each in classes]
    return {ORDINARY: _digest(begins_with), **{str(each.get("name")): _digest([*begins_with, each]) for each in own}}


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]
