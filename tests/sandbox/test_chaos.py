"""One component after the other is broken."""

import signal
import subprocess
from collections.abc import Iterator

import psutil
import pytest

from sandbox.chaos.chaos import Chaos, Harm, Target
from sandbox.chaos.schedule import FIRST_AFTER_S
from tests.patience import PATIENCE_S

EVERY_S = 10.0


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["/bin/sleep", "600"], start_new_session=True) as process:
        yield process
        process.kill()


def test_every_component_is_killed_and_frozen_before_any_is_again() -> None:
    told: list[str] = []
    names = ["the monitor", "Spark", "a consumer"]
    targets: dict[str, Target] = dict.fromkeys(names, dict)
    chaos = Chaos(targets, 0, EVERY_S, told.append)
    for number in range(2 * len(names)):
        chaos.look_after(FIRST_AFTER_S + number * EVERY_S - 0.1)
        assert len(told) == number
        chaos.look_after(FIRST_AFTER_S + number * EVERY_S)
    assert sorted(told) == sorted(f"chaos: {name} is away already" for name in names for _ in Harm)
    assert chaos.done == 0


def test_nothing_is_broken_unless_it_is_asked_for() -> None:
    told: list[str] = []
    chaos = Chaos({"Spark": dict}, 0, None, told.append)
    chaos.look_after(1e9)
    chaos.end()
    assert told == []


def test_what_is_frozen_goes_on_and_what_is_killed_is_told_by_its_own_name(sleeper: subprocess.Popen[bytes]) -> None:
    told: list[str] = []
    process = psutil.Process(sleeper.pid)
    chaos = Chaos({"a consumer": lambda: {"consumer 3": process}}, 0, EVERY_S, told.append)
    at = FIRST_AFTER_S
    while chaos.done < 2:
        chaos.look_after(at)
        chaos.end()
        at += EVERY_S
    assert sorted(line[:29] for line in told) == ["chaos: consumer 3 is frozen f", "chaos: consumer 3 is killed"]
    assert sleeper.wait(PATIENCE_S) == -signal.SIGKILL
    chaos.look_after(at)
    chaos.look_after(at + EVERY_S)
    assert chaos.done == 4, "a process that has ended just now is no matter"
