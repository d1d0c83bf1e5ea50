"""Archives are unpacked in one way on every Python."""

import tarfile
from collections.abc import Sequence
from pathlib import Path


def unpack(archive: tarfile.TarFile, folder: Path, members: Sequence[tarfile.TarInfo]) -> None:
    """Puts the members into the folder, and nothing anywhere else, on each Python that can tell (3.11.4 and newer)."""
    archive.extraction_filter = getattr(tarfile, "data_filter", None)
    archive.extractall(folder, members)  # noqa: S202
