"""`kcga up` in the background."""

import os
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from app.components import command
from tests import patience

_MARK = "KCGA_TEST"


@contextmanager
def running_up(tmp_path: Path, *options: str, **variables: str) -> Iterator[tuple[subprocess.Popen[bytes], Path, Path]]:
    """`kcga up` in the background, the file that takes what it shows, and the folder where its own folder lies."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    shown = tmp_path / "shown"
    environment = {**os.environ, "TMPDIR": str(temporary), **variables}
    with (
        shown.open("wb") as stderr,
        subprocess.Popen(command("up", *options), env=environment, stdout=subprocess.PIPE, stderr=stderr) as process,
    ):
        try:
            yield process, shown, temporary
        finally:
            if process.poll() is None:
                process.terminate()
            try:
                process.communicate(timeout=patience.PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes], shown: Path) -> None:
    patience.wait_until(lambda: process.poll() is not None or condition(), shown.read_text, every_s=0.2)
    assert process.poll() is None, shown.read_text()


@contextmanager
def leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails where a process that was started within, directly or not, is still there at the end."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(_MARK, mark)
    yield
    left = [process for process in psutil.process_iter(["cmdline"]) if _is_marked(process, mark)]
    assert not left, f"still running: {[process.info['cmdline'] for process in left]}"


def _is_marked(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get(_MARK) == mark
    except (psutil.Error, OSError):
        return False
