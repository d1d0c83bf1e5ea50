"""Jobs that processes of their own do."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bench.performed import performed
from tests.patience import wait_until
from tests.processes import is_alive


def process_of(job: int) -> tuple[int, int]:
    return job, os.getpid()


def stay(told: str) -> None:
    """A job that says which process does it, and takes for ever."""
    Path(told).write_text(str(os.getpid()))
    signal.pause()


def test_outcomes_come_in_the_order_of_the_jobs_and_each_is_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    outcomes = performed(process_of, range(3), 2, lambda outcome: f"job {outcome[0]}")
    assert [job for job, _ in outcomes] == [0, 1, 2]
    assert os.getpid() not in {process for _, process in outcomes}
    assert capfd.readouterr().err.splitlines() == ["1 of 3: job 0", "2 of 3: job 1", "3 of 3: job 2"]


def test_no_process_outlives_the_one_that_began_it(tmp_path: Path) -> None:
    told = tmp_path / "process"
    program = (
        "from bench.performed import performed\n"
        "from tests.bench.test_performed import stay\n"
        f"performed(stay, [{str(told)!r}], 1, str)"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as parent:
        wait_until(lambda: told.exists() and told.read_text())
        parent.kill()
    wait_until(lambda: not is_alive(int(told.read_text())))
