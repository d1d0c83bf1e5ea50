"""A disk of its own for the lake, small enough to be filled."""

import os
import subprocess
from pathlib import Path

SIZE_MB = 1_500
LARGEST_STEP, SMALLEST_STEP = 64 * 1024 * 1024, 4096
"""In bytes, of what fills it."""


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
        taken, step = 0, LARGEST_STEP
        with self._ballast.open("wb") as ballast:
            # In ever smaller steps: what is written at this moment takes some of the room that there was.
            while step >= SMALLEST_STEP:
                try:
                    os.posix_fallocate(ballast.fileno(), taken, step)
                    taken += step
                except OSError:
                    step //= 2

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)

    def close(self) -> None:
        if self.can_be_filled:
            subprocess.run(["umount", "--lazy", str(self._folder)], check=True)  # noqa: S607 (as in the mounting)
