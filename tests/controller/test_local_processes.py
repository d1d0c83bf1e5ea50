"""Consumers as real processes."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from controller.fleet import FleetError, Revisions
from controller.local_processes import MARK, LocalProcesses, running_consumers
from tests.patience import wait_until

SLEEPS = "import time; time.sleep(600)"
IGNORES_SIGTERM = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
)
ENDS = "import sys; sys.exit(3)"


def running(program: str) -> Callable[[int, str], list[str]]:
    return lambda consumer, class_name: [sys.executable, "-c", program, str(consumer), class_name]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "consumers"
    yield folder
    LocalProcesses(folder, running(SLEEPS), grace_s=0).close()


def processes_of(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == str(folder):
                found.append(process)
    return found


def test_a_consumer_exists_from_its_creation_until_its_process_has_ended(folder: Path) -> None:
    fleet = LocalProcesses(folder, running(SLEEPS))
    fleet.create(1)
    fleet.create(4)
    assert fleet.consumers() == {1, 4}
    fleet.delete(1)
    wait_until(lambda: fleet.consumers() == {4})


def test_a_consumer_that_ends_by_itself_is_noticed(folder: Path) -> None:
    fleet = LocalProcesses(folder, running(ENDS))
    fleet.create(1)
    wait_until(lambda: not fleet.consumers())


def test_a_consumer_that_does_not_leave_is_killed_after_the_grace_time(folder: Path) -> None:
    fleet = LocalProcesses(folder, running(IGNORES_SIGTERM), grace_s=0.2)
    fleet.create(1)
    wait_until(lambda: "up" in (folder / "consumer-1.log").read_text())
    fleet.delete(1)
    wait_until(lambda: not fleet.consumers())


def test_the_consumers_of_the_controller_before_are_found(folder: Path) -> None:
    before = LocalProcesses(folder, running(SLEEPS))
    before.create(2)
    after = LocalProcesses(folder, running(SLEEPS))
    assert after.consumers() == {2}
    after.close()
    assert not after.consumers()
    assert not before.consumers()


def test_the_consumers_of_a_controller_that_was_killed_are_the_next_ones_and_their_end_is_noticed(folder: Path) -> None:
    begins = (
        "import sys, time; from pathlib import Path; from controller.local_processes import LocalProcesses\n"
        "LocalProcesses(Path(sys.argv[1]), lambda *_: [sys.executable, '-c', sys.argv[2]]).create(2)\n"
        "print('begun', flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", begins, str(folder), SLEEPS]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as controller:
        assert controller.stdout is not None
        controller.stdout.readline()
        # The environment of a program that has just begun is empty for a moment.
        (consumer,) = wait_until(lambda: processes_of(folder))
        controller.kill()
    after = LocalProcesses(folder, running(SLEEPS))
    assert after.consumers() == {2}
    assert running_consumers(folder) == {2: consumer}
    assert processes_of(folder) == [consumer]
    consumer.kill()
    wait_until(lambda: not after.consumers())
    assert not running_consumers(folder)


def test_the_consumers_are_found_after_the_clock_was_set(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    LocalProcesses(folder, running(SLEEPS)).create(2)
    began_at = psutil.Process.create_time
    monkeypatch.setattr(psutil.Process, "create_time", lambda process: began_at(process) + 3600)
    (consumer,) = wait_until(lambda: processes_of(folder))
    assert LocalProcesses(folder, running(SLEEPS)).consumers() == {2}
    assert processes_of(folder) == [consumer]


def test_a_consumer_of_the_version_before_is_known_by_its_time(folder: Path) -> None:
    LocalProcesses(folder, running(SLEEPS)).create(2)
    file = folder / "consumer-2.json"
    identity = json.loads(file.read_text())
    del identity["moment"]
    file.write_text(json.dumps(identity))
    assert LocalProcesses(folder, running(SLEEPS)).consumers() == {2}


def test_a_process_that_only_has_the_number_of_a_consumer_is_left_alone(folder: Path) -> None:
    folder.mkdir()
    own = psutil.Process()
    (folder / "consumer-1.json").write_text(f'{{"pid": {own.pid}, "create_time": {own.create_time() - 100}}}')
    (folder / "consumer-3.json").write_text(
        json.dumps({"pid": own.pid, "create_time": own.create_time(), "moment": "before the system's start"})
    )
    (folder / "consumer-2.json").write_text("no json")
    (folder / "consumer-x.json").write_text("{}")
    assert not LocalProcesses(folder, running(SLEEPS)).consumers()


def test_a_consumer_is_created_once_only(folder: Path) -> None:
    fleet = LocalProcesses(folder, running(SLEEPS))
    fleet.create(1)
    with pytest.raises(FleetError, match="exists already"):
        fleet.create(1)


def test_of_two_controllers_only_one_begins_a_consumer(folder: Path) -> None:
    deposed, present = LocalProcesses(folder, running(SLEEPS)), LocalProcesses(folder, running(SLEEPS))
    deposed.create(3)
    present.create(3)
    assert deposed.consumers() == present.consumers() == {3}
    wait_until(lambda: len(processes_of(folder)) == 1)


def test_a_controller_that_finds_its_consumer_ended_does_not_hide_the_one_that_another_began(folder: Path) -> None:
    deposed = LocalProcesses(folder, running(SLEEPS))
    deposed.create(3)
    wait_until(lambda: len(processes_of(folder)) == 1)
    (first,) = processes_of(folder)
    first.kill()
    present = LocalProcesses(folder, running(SLEEPS))
    wait_until(lambda: not present.consumers())
    present.create(3)
    assert not deposed.consumers()
    assert LocalProcesses(folder, running(SLEEPS)).consumers() == {3}
    assert processes_of(folder) != [first]


def test_a_process_that_no_file_names_is_killed_by_the_next_controller(folder: Path) -> None:
    LocalProcesses(folder, running(SLEEPS)).create(1)
    (folder / "consumer-1.json").unlink()
    wait_until(lambda: len(processes_of(folder)) == 1)
    assert not LocalProcesses(folder, running(SLEEPS)).consumers()
    wait_until(lambda: not processes_of(folder))


def test_a_program_that_does_not_exist_is_an_error_that_says_so(folder: Path) -> None:
    fleet = LocalProcesses(folder, lambda *_: ["/does/not/exist"])
    with pytest.raises(FleetError, match="/does/not/exist"):
        fleet.create(1)
    assert not fleet.consumers()


def test_who_began_with_what_outlives_the_controller(folder: Path) -> None:
    before = LocalProcesses(folder, running(SLEEPS), revisions=lambda: {"ordinary": "a"})
    before.create(1)
    assert before.revisions() == Revisions("a", frozenset(), {1: "ordinary"})
    now = LocalProcesses(folder, running(SLEEPS), revisions=lambda: {"ordinary": "b"})
    now.create(2)
    assert now.revisions() == Revisions("b", frozenset({1}), {1: "ordinary", 2: "ordinary"})


def test_what_cannot_be_said_just_now_makes_nobody_outdated(folder: Path) -> None:
    LocalProcesses(folder, running(SLEEPS), revisions=lambda: {"ordinary": "a"}).create(1)
    fleet = LocalProcesses(folder, running(SLEEPS), revisions=lambda: None)
    assert fleet.revisions() == Revisions(None, frozenset(), {1: "ordinary"})


def test_a_consumer_of_the_version_before_names_no_revision_and_is_outdated(folder: Path) -> None:
    LocalProcesses(folder, running(SLEEPS)).create(1)
    file = folder / "consumer-1.json"
    identity = json.loads(file.read_text())
    del identity["revision"]
    file.write_text(json.dumps(identity))
    assert LocalProcesses(folder, running(SLEEPS), revisions=lambda: {"ordinary": "a"}).revisions().outdated == {1}


def test_a_consumer_is_started_as_one_of_its_class_which_the_next_controller_finds(folder: Path) -> None:
    before = LocalProcesses(folder, running(SLEEPS), revisions=lambda: {"ordinary": "a", "large": "b"})
    before.create(1)
    before.create(2, "large")
    processes = running_consumers(folder).values()
    wait_until(lambda: [process.cmdline()[-1:] for process in processes] == [["ordinary"], ["large"]])
    assert before.revisions().outdated == frozenset()
    now = LocalProcesses(folder, running(SLEEPS), revisions=lambda: {"ordinary": "a", "large": "c"})
    assert now.revisions().class_names == {1: "ordinary", 2: "large"}
    assert now.revisions().outdated == {2}
    assert now.revisions().wanted != before.revisions().wanted
    without = LocalProcesses(folder, running(SLEEPS), revisions=lambda: {"ordinary": "a"})
    assert without.revisions() == Revisions("a", frozenset({2}), {1: "ordinary", 2: "large"})
