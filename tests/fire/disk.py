"""A disk of its own for the lake, small enough to be filled."""

import os
import subprocess
from pathlib import Path

SIZE_MB = 1_500


class SmallDisk:
    """A file system in memory, mounted on a folder. Needs the right to mount."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ballast = folder / "ballast"
        folder.mkdir(parents=True)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m", "kcga-fire", str(folder)]
        self.can_be_filled = subprocess.run(mount, capture_output=True, check=False).returncode == 0

    def fill(self) -> None:
        """Nothing more can be written."""
        room = os.statvfs(self._folder)
        with self._ballast.open("wb") as ballast:
            os.posix_fallocate(ballast.fileno(), 0, max(1, room.f_bavail * room.f_frsize))

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)

    def close(self) -> None:
        if self.can_be_filled:
            subprocess.run(["umount", "--lazy", str(self._folder)], check=True)  # noqa: S607 (as in the mounting)
