"""The guard of the fuzz tests sees what it is to see."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.untrusted import nothing_carried_out

FORBIDDEN: dict[str, Callable[[Path], object]] = {
    "import": lambda _: __import__("this"),
    "compile": lambda _: compile("1", "", "eval"),
    "process": lambda _: subprocess.run([sys.executable, "--version"], check=True),
    "remove": Path.unlink,
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_is_forbidden_is_seen(name: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(AssertionError), nothing_carried_out():
        FORBIDDEN[name](file)


def test_reading_is_not_forbidden() -> None:
    with nothing_carried_out():
        Path(__file__).read_bytes()
