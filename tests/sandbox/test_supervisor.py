"""Components that end without being asked to: begun anew, told of, given up."""

import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from app.child import Child
from app.errors import KcgaError
from sandbox.decide.back_off import MOST_FAILURES
from sandbox.supervisor import Supervisor
from tests.patience import PATIENCE_S


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Watched:
    """A supervisor, and what it told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.clock = Clock()
        self.supervisor = Supervisor(self.told.append, self.clock)

    def pid(self, name: str) -> int | None:
        processes = self.supervisor.processes(name)
        return processes[name].pid if processes else None


@pytest.fixture
def watched() -> Watched:
    return Watched()


def shell(folder: Path, script: str = "exec sleep 600", name: str = "the program") -> Child:
    return Child(name, ["/bin/sh", "-c", script], folder / f"{name}.log")


def kill(child: Child) -> None:
    os.kill(child.pid, signal.SIGKILL)
    child.wait(PATIENCE_S)


def look_after_for(watched: Watched, seconds: float) -> None:
    """The clock that is looked at goes by a second each time that the program does not run: it runs for a moment."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        watched.clock.now += watched.pid("the program") is None
        watched.supervisor.look_after()
        time.sleep(0.01)


def test_what_is_killed_is_begun_anew_and_that_is_told(tmp_path: Path, watched: Watched) -> None:
    with watched.supervisor as supervisor:
        first = shell(tmp_path)
        supervisor.begin(first)
        supervisor.look_after()
        assert watched.pid("the program") == first.pid
        assert (watched.told, supervisor.restarts) == ([], {})
        kill(first)
        assert watched.pid("the program") is None
        watched.clock.now = 75.0
        supervisor.look_after()
        second = watched.pid("the program")
        assert second not in (None, first.pid)
        assert supervisor.runs_s("the program") == 0
    assert watched.told == ["the program was ended by SIGKILL after 01:15, and begins anew: 1 restart"]
    assert supervisor.restarts == {"the program": 1}
    assert second is not None
    assert not psutil.pid_exists(second)


def test_what_ends_soon_again_is_begun_anew_after_a_while(tmp_path: Path, watched: Watched) -> None:
    with watched.supervisor as supervisor:
        supervisor.begin(shell(tmp_path))
        for _ in range(2):
            psutil.Process(watched.pid("the program")).kill()
            while watched.pid("the program") is not None:
                time.sleep(0.01)
            supervisor.look_after()
        assert watched.told[-1].endswith(", and begins anew in 1 s: 2 restarts")
        watched.clock.now += 0.9
        supervisor.look_after()
        assert watched.pid("the program") is None
        watched.clock.now += 0.1
        supervisor.look_after()
        assert watched.pid("the program") is not None


def test_what_keeps_ending_ends_the_run_with_the_end_of_its_log(tmp_path: Path, watched: Watched) -> None:
    with watched.supervisor as supervisor:
        supervisor.begin(shell(tmp_path, "echo it was me; exit 3"))
        with pytest.raises(
            KcgaError, match=rf"(?s)the program ended with exit code 3, .* {MOST_FAILURES} times.*it was me"
        ):
            look_after_for(watched, PATIENCE_S)
    assert (tmp_path / "the program.log").read_text().count("it was me") == MOST_FAILURES
    assert watched.told[-1].endswith(f"and begins anew in 8 s: {MOST_FAILURES - 1} restarts")


def test_what_others_began_is_theirs_to_begin_anew_and_to_end(tmp_path: Path, watched: Watched) -> None:
    first, second = shell(tmp_path), shell(tmp_path)
    first.start()

    def begin_again() -> Child:
        second.start()
        return second

    with watched.supervisor as supervisor:
        supervisor.watch(first, begin_again)
        kill(first)
        supervisor.look_after()
        assert watched.pid("the program") == second.pid
    assert second.running
    first.stop()
    second.stop()


def test_what_is_asked_to_end_is_not_begun_anew(tmp_path: Path, watched: Watched) -> None:
    with watched.supervisor as supervisor:
        supervisor.begin(shell(tmp_path))
        ended = supervisor.end("the program")
        assert ended.wait(PATIENCE_S) == -signal.SIGTERM
        supervisor.look_after()
        assert watched.pid("the program") is None
    assert watched.told == []


def test_what_was_begun_is_ended_the_newest_first(
    tmp_path: Path, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[str] = []
    stop = Child.stop

    def noted(child: Child) -> None:
        stopped.append(child.name)
        stop(child)

    with watched.supervisor as supervisor:
        for name in ("one", "two", "three"):
            supervisor.begin(shell(tmp_path, name=name))
        monkeypatch.setattr(Child, "stop", noted)
    assert stopped == ["three", "two", "one"]
