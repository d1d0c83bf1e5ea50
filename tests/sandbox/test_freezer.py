"""What is broken for a while, and goes on."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest

from sandbox.chaos.freezer import Freezer
from tests.patience import wait_until

SHELL = "sleep 600 & exec sleep 600"
OWN_GROUP = "setsid sleep 600 & exec sleep 600"


@pytest.fixture
def begun(request: pytest.FixtureRequest) -> Iterator[psutil.Process]:
    """A process that has begun another."""
    with subprocess.Popen(["/bin/sh", "-c", request.param], start_new_session=True) as started:
        process = psutil.Process(started.pid)
        wait_until(lambda: [each.name() for each in family(process)] == ["sleep", "sleep"])
        all_begun = family(process)
        yield process
        for each in all_begun:
            with suppress(psutil.NoSuchProcess):
                each.kill()


def family(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children()]


def stopped(*processes: psutil.Process) -> list[bool]:
    return [process.status() == psutil.STATUS_STOPPED for process in processes]


@pytest.mark.parametrize("begun", [SHELL], indirect=True)
def test_a_process_is_stopped_with_what_it_began_until_all_goes_on(begun: psutil.Process) -> None:
    freezer = Freezer()
    freezer.freeze(begun, 600)
    freezer.look_after()
    wait_until(lambda: all(stopped(*family(begun))))
    freezer.end_all()
    wait_until(lambda: not any(stopped(*family(begun))))


@pytest.mark.parametrize("begun", [SHELL], indirect=True)
def test_a_process_goes_on_when_its_time_is_over(begun: psutil.Process) -> None:
    freezer = Freezer()
    freezer.freeze(begun, 0.5)
    wait_until(lambda: all(stopped(*family(begun))))
    time.sleep(0.5)
    freezer.look_after()
    wait_until(lambda: not any(stopped(*family(begun))))


@pytest.mark.parametrize("begun", [OWN_GROUP], indirect=True)
def test_what_leads_a_group_of_its_own_is_left_alone(begun: psutil.Process) -> None:
    freezer = Freezer()
    freezer.freeze(begun, 600)
    wait_until(lambda: stopped(*family(begun)) == [True, False])
    freezer.end_all()


@pytest.mark.parametrize("begun", [SHELL], indirect=True)
def test_a_process_that_ends_meanwhile_is_no_matter(begun: psutil.Process) -> None:
    freezer = Freezer()
    freezer.freeze(begun, 600)
    for each in family(begun):
        each.kill()
    begun.wait()
    freezer.end_all()
    freezer.freeze(begun, 600)
