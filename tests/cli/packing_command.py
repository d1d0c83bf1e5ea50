"""The `kcga` command within this process, as it is when a person types it."""

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from cli import main


@dataclass(frozen=True, slots=True)
class Ended:
    exit_code: int
    stdout: str
    stderr: str


Kcga = Callable[..., Ended]
"""`kcga(*arguments, stdin=b"")` runs the command to its end."""


def kcga_command(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Kcga:
    """The command, with everything that is written to both outputs, also by native code."""

    def run(*arguments: object, stdin: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "argv", ["kcga", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capfd.readouterr()
        exit_code = 0
        try:
            main.main()
        except SystemExit as end:
            exit_code = end.code if isinstance(end.code, int) else int(end.code is not None)
        return Ended(exit_code, *capfd.readouterr())

    return run
