"""Programs that run beside kcga: their start, their end, and that nothing of them is left."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.child import Child
from app.errors import KcgaError
from tests.patience import PATIENCE_S, wait_until
from tests.processes import is_alive


def shell(script: str, log: Path, *, output: Path | None = None, stop_within_s: float = 15.0) -> Child:
    return Child("the program", ["/bin/sh", "-c", script], log, output=output, stop_within_s=stop_within_s)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "log"


def test_a_child_writes_both_its_outputs_to_its_log(log: Path) -> None:
    with shell("echo one; echo two >&2", log) as child:
        assert child.wait(PATIENCE_S) == 0
    assert log.read_text() == "one\ntwo\n"


def test_a_childs_standard_output_can_be_kept_apart_from_its_log(log: Path, tmp_path: Path) -> None:
    with shell("echo one; echo two >&2", log, output=tmp_path / "output") as child:
        child.wait(PATIENCE_S)
    assert ((tmp_path / "output").read_text(), log.read_text()) == ("one\n", "two\n")


def test_waiting_ends_as_soon_as_the_child_is_ready(log: Path, tmp_path: Path) -> None:
    with shell(f"touch '{tmp_path}/ready'; exec sleep 600", log) as child:
        child.wait_ready((tmp_path / "ready").exists, PATIENCE_S)
        assert child.running
    assert not child.running


def test_a_child_that_ends_instead_of_getting_ready_is_noticed_and_its_last_words_are_shown(log: Path) -> None:
    with (
        shell("for n in $(seq 50); do echo line $n; done; exit 3", log) as child,
        pytest.raises(KcgaError, match="the program ended while it started, with exit code 3") as raised,
    ):
        child.wait_ready(lambda: False, PATIENCE_S)
    assert str(raised.value).endswith("line 50")
    assert "line 12\n" not in str(raised.value)


def test_of_a_java_log_the_lines_that_tell_something_are_shown(log: Path) -> None:
    said = "10:00 ERROR no luck\njava.io.IOException: No space left\n\tat a.B.c(B.java:1)\n10:01 INFO stopping\n"
    with shell(f"printf '%s' '{said}'", log) as child:
        child.wait(PATIENCE_S)
        assert str(child.error("it ended")).splitlines()[1:] == [
            "  | 10:00 ERROR no luck",
            "  | java.io.IOException: No space left",
        ]


def test_a_child_that_does_not_get_ready_in_time_is_an_error(log: Path) -> None:
    with (
        shell("echo working on it; exec sleep 600", log) as child,
        pytest.raises(KcgaError, match=r"the program was not ready after 0\.3 s"),
    ):
        child.wait_ready(lambda: False, 0.3)


def test_a_program_that_does_not_exist_is_one_clear_error(log: Path) -> None:
    with pytest.raises(KcgaError, match=r"the program cannot be started: .*no-such-program") as raised:
        Child("the program", ["/no-such-program"], log).start()
    assert "\n" not in str(raised.value)


def test_a_child_that_does_not_listen_is_killed(log: Path, tmp_path: Path) -> None:
    script = f"trap '' TERM; touch '{tmp_path}/ready'; while :; do sleep 0.1; done"
    with shell(script, log, stop_within_s=0.3) as child:
        child.wait_ready((tmp_path / "ready").exists, PATIENCE_S)
    assert child.exit_code == -signal.SIGKILL


def test_what_a_child_started_itself_ends_with_it(log: Path) -> None:
    with shell("sleep 600 & echo $!; exec sleep 600", log) as child:
        child.wait_ready(lambda: log.read_text().endswith("\n"), PATIENCE_S)
        grandchild = int(log.read_text())
        assert is_alive(grandchild)
    wait_until(lambda: not is_alive(grandchild))


def test_a_child_can_be_stopped_again_and_before_it_was_started(log: Path) -> None:
    child = shell("exec sleep 600", log)
    child.stop()
    child.start()
    child.stop()
    child.stop()
    assert child.exit_code == -signal.SIGTERM


def test_an_interrupt_of_the_terminal_does_not_reach_a_child(log: Path) -> None:
    with shell("exec sleep 600", log) as child:
        assert os.getsid(child.pid) == os.getpgid(child.pid) == child.pid


def test_a_child_dies_when_kcga_is_killed(log: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from app.child import Child\n"
        "with Child('the program', ['/bin/sh', '-c', 'sleep 600 & exec sleep 600'], Path(sys.argv[1])) as child:\n"
        "    print(child.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(log)], stdout=subprocess.PIPE, text=True) as kcga:
        assert kcga.stdout is not None
        pid = int(kcga.stdout.readline())
        assert is_alive(pid)
        kcga.kill()
    wait_until(lambda: not is_alive(pid))
