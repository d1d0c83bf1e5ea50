"""The pieces of `kcga up` that need no services: its folder, its errors, the load in a word, and how the load ends."""

import io
import json
from contextlib import ExitStack
from pathlib import Path

import pytest
from rich.console import Console

from cli.embedded.child import Child
from cli.embedded.load_profile import Course, LoadProfile
from cli.errors import KcgaError
from cli.interrupts import Interrupts
from cli.settings import load
from cli.up import command, demonstration
from cli.up.command import UpOptions, up
from cli.up.demonstration import Demonstration
from cli.up.services import Services
from cli.watch.summary import Summary
from domain.partitions import TopicPartition

SERVICES = Services("127.0.0.1:1", "sc://127.0.0.1:1", "kcga-up-1.")


class FakeDemonstration:
    folders: list[Path]
    ends: Exception | None = None

    def __init__(self, folder: Path, services: Services, *_: object, seconds: float | None, seed: int) -> None:
        assert (services, seconds, seed) == (SERVICES, 5.0, 3)
        self.folders.append(folder)
        (folder / "something").write_text("")

    def run(self) -> str:
        if self.ends is not None:
            raise self.ends
        return "the summary"


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> type[FakeDemonstration]:
    class Fake(FakeDemonstration):
        folders: list[Path] = []  # noqa: RUF012

    def start(_stack: ExitStack, _folder: Path, _console: Console, **_: object) -> Services:
        return SERVICES

    monkeypatch.setattr(command, "start_services", start)
    monkeypatch.setattr(command, "Demonstration", Fake)
    monkeypatch.setattr(command.logs, "configure", lambda *_: None)  # type: ignore[attr-defined]
    return Fake


def run(keep: Path | None = None) -> Summary:
    return up(UpOptions(seconds=5.0, keep=keep, seed=3), Console(file=io.StringIO()), Interrupts())


def test_nothing_of_a_run_is_left_unless_it_is_to_be_kept(runs: type[FakeDemonstration], tmp_path: Path) -> None:
    assert str(run()) == "the summary"
    run(tmp_path / "kept" / "here")
    assert [folder.exists() for folder in runs.folders] == [False, True]
    assert runs.folders[1] == (tmp_path / "kept" / "here").resolve()


def test_nothing_is_left_of_a_run_that_fails_and_what_the_system_refuses_is_one_line(
    runs: type[FakeDemonstration],
) -> None:
    runs.ends = OSError(28, "No space left on device")
    with pytest.raises(KcgaError, match=r"kcga up cannot go on: .*No space left"):
        run()
    runs.ends = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        run()
    assert not any(folder.exists() for folder in runs.folders)


def test_a_folder_with_something_in_it_is_not_written_to(runs: type[FakeDemonstration], tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(KcgaError, match=f"{tmp_path} is not empty"):
        run(tmp_path)
    assert runs.folders == []
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Demonstration:
    profile = LoadProfile({TopicPartition("orders", 0): Course(((0, 100), (20, 100), (40, 300), (60, 100)))})
    demo = Demonstration(tmp_path, SERVICES, Console(file=io.StringIO()), Interrupts(), seconds=None, seed=0)
    monkeypatch.setattr(demo, "_profile", profile)
    return demo


def test_the_load_is_called_what_it_does(made: Demonstration) -> None:
    moments = {0.0: "steady load", 10.0: "steady load", 30.0: "the load rises", 50.0: "the load falls"}
    assert {at: made._phase(at) for at in moments} == moments


def test_the_settings_of_a_run_can_be_read_again(made: Demonstration, tmp_path: Path) -> None:
    settings = load(tmp_path / "settings.toml")
    assert settings == made._settings
    assert settings.kafka.group == "kcga-up-1.kcga"
    assert settings.consumer.spark_remote == "sc://127.0.0.1:1"
    assert settings.http.token is not None


class FakeChild(Child):
    """Has ended, or not, as the test says."""

    def __init__(self, folder: Path, *, is_running: bool = True) -> None:
        super().__init__("the load generator", ["true"], folder / "load.log")
        self._is_running = is_running

    @property
    def running(self) -> bool:
        return self._is_running

    @property
    def exit_code(self) -> int | None:
        return 7

    def terminate(self) -> None:
        self._is_running = False

    def wait(self, timeout_s: float | None = None) -> int | None:
        del timeout_s
        assert not self._is_running
        return 0


def test_a_component_that_ends_by_itself_is_an_error_with_the_end_of_its_log(tmp_path: Path) -> None:
    (tmp_path / "load.log").write_text("it was me\n")
    demonstration._require_running([FakeChild(tmp_path)])
    with pytest.raises(KcgaError, match=r"(?s)the load generator ended by itself, with exit code 7.*it was me"):
        demonstration._require_running([FakeChild(tmp_path), FakeChild(tmp_path, is_running=False)])


def test_the_load_is_asked_to_end_and_says_what_it_produced(tmp_path: Path) -> None:
    (tmp_path / "load.json").write_text(json.dumps({"produced": 1234, "undelivered": 0, "problem": None}))
    child = FakeChild(tmp_path)
    assert demonstration._end_load(child) == 1234
    assert not child.running


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        ("", "the load generator did not say what it produced"),
        ('{"produced": 5, "undelivered": 2, "problem": "timed out"}', "2 records could not be delivered.*timed out"),
    ],
)
def test_a_load_that_was_not_all_delivered_is_no_proof(report: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "load.json").write_text(report)
    with pytest.raises(KcgaError, match=reason):
        demonstration._end_load(FakeChild(tmp_path))
