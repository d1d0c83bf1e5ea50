"""A clock of one's own for a component: what it asks the system for the time of day is answered by `clock.c`.

Not by libfaketime: with that of Debian 12 no Python can sleep (its `clock_nanosleep` takes no monotonic moments), and
waits do not notice that the clock is set.
"""

import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")


class Clock:
    """A clock that can be set while processes run by it. Their monotonic clocks stay as they are.

    Args:
        compiler: of C.
        folder: takes two files.
        ahead_s: of the system's clock.
    """

    def __init__(self, compiler: Path, folder: Path, ahead_s: int = 0) -> None:
        self._file, self._library = folder / "clock", folder / "clock.so"
        build = [compiler, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", self._library, SOURCE]
        subprocess.run([str(part) for part in build], check=True)
        self._file.touch()
        self.set(ahead_s)
        self._require_ahead(ahead_s)

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables of a process that runs by it, which those that it starts inherit."""
        return {"LD_PRELOAD": str(self._library), "CLOCK": str(self._file)}

    def set(self, ahead_s: int) -> None:
        """Every process sees it at once."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("@l", ahead_s))

    def _require_ahead(self, ahead_s: int) -> None:
        """Makes sure that it does on this machine what is asked of it."""
        program = "import time; time.sleep(0.01); print(time.time(), time.monotonic())"
        asked = subprocess.run(
            [sys.executable, "-c", program], env=self.environment, capture_output=True, text=True, check=True
        )
        wall, monotonic = map(float, asked.stdout.split())
        assert abs(wall - ahead_s - time.time()) < 60, "the time of day is not set"
        assert abs(monotonic - time.monotonic()) < 60, "the monotonic clock is set as well"
