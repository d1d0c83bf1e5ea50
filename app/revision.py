"""What consumers are set up with, as a digest: those that began with another are replaced (`kcga rollout`)."""

import hashlib
import json
import tomllib
from importlib.metadata import version
from pathlib import Path

OF_OTHERS = frozenset({"controller", "kubernetes", "local", "monitor", "spark"})
"""The sections of the settings file that consumers do not go by."""


def revision_of(file: Path) -> str | None:
    """A digest of what the file says for consumers, and of kcga's version; None where it cannot be read just now."""
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    of_consumers = {name: value for name, value in values.items() if name not in OF_OTHERS}
    begins_with = json.dumps([version("kcga"), of_consumers], sort_keys=True, default=str)
    return hashlib.sha256(begins_with.encode()).hexdigest()[:16]
