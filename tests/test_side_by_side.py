"""The groups of tests name tests that there are, and all are run, whatever becomes of a process."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.side_by_side import GROUPS, group_of

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("beginning", GROUPS)
def test_what_a_group_names_is_there(beginning: str) -> None:
    place, _, test = beginning.partition("::")
    assert (ROOT / place).exists()
    assert not test or f"def {test}" in (ROOT / place).read_text(encoding="utf-8")


def test_all_of_a_file_that_is_named_are_in_its_group_and_others_in_none() -> None:
    assert group_of("tests/test_pipeline.py::test_any") == GROUPS["tests/test_pipeline.py"]
    assert group_of("tests/test_docs.py::test_any") is None


@pytest.mark.slow(2)
def test_when_a_process_dies_the_others_run_what_is_left(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "from tests.side_by_side import Scheduler\n"
        "def pytest_xdist_make_scheduler(config, log):\n"
        "    return Scheduler(config, log)\n"
    )
    (tmp_path / "test_some.py").write_text(
        "import os, pathlib, pytest\n"
        "@pytest.mark.parametrize('number', range(40))\n"
        "def test_one(number):\n"
        "    if number == 30 and not (died := pathlib.Path(__file__).with_name('died')).exists():\n"
        "        died.touch()\n"
        "        os._exit(1)\n"
    )
    here = str(tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir", here, "-c", "/dev/null", "-n", "2", here]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=240, check=False)
    assert "1 failed, 40 passed" in run.stdout, run.stdout
