"""What this machine has: Java, and room for what local consumers leave."""

import os
from collections.abc import Iterator

from app.errors import KcgaError
from app.java import find_java
from app.settings import Settings
from cli.doctor.finding import Finding


def check_java(_settings: Settings) -> Iterator[Finding]:
    try:
        java = find_java()
    except KcgaError as error:
        yield Finding.note(f"Java: {error}", "only kcga up needs it here: brokers and Spark may run elsewhere")
    else:
        yield Finding(f"Java {java.version} at {java.home}")


def check_folder(settings: Settings) -> Iterator[Finding]:
    """Where consumers that are processes of this machine leave their logs: it is made when it is first needed."""
    folder = settings.local.folder.absolute()
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    if not existing.is_dir():
        yield Finding.fault(
            f"{existing} is no folder", f"set local.folder to another than {folder}, or remove the file"
        )
    elif not os.access(existing, os.W_OK | os.X_OK):
        yield Finding.fault(f"{existing} cannot be written to", "set local.folder to a folder that can")
    else:
        yield Finding(f"local consumers have their logs in {folder}")
