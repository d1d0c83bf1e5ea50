"""What the doctor says of this machine, and how it says what all checks find."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from app import pyspark_home as home_module
from app.errors import KcgaError
from app.pyspark_home import pyspark_home
from app.settings import Settings
from cli.doctor import examination, machine
from cli.doctor.examination import examine
from cli.doctor.finding import Finding, Grade
from cli.doctor.machine import check_folder, check_java
from tests.app.any_settings import settings


def on_folder(folder: Path) -> Finding:
    (finding,) = check_folder(settings(local={"folder": str(folder)}))
    return finding


def test_a_folder_that_is_yet_to_be_made_is_fine_where_it_can_be_made(tmp_path: Path) -> None:
    finding = on_folder(tmp_path / "not" / "there")
    assert (finding.grade, finding.remedy) == (Grade.OK, "")
    assert str(tmp_path / "not" / "there") in finding.what


def test_a_file_where_a_folder_is_to_be_is_a_fault(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    finding = on_folder(file / "deeper")
    assert finding.grade is Grade.FAULT
    assert finding.what == f"{file} is no folder"
    assert str(file / "deeper") in finding.remedy


def test_a_folder_that_cannot_be_written_to_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.os, "access", lambda *_: False)  # type: ignore[attr-defined]
    finding = on_folder(tmp_path)
    assert (finding.grade, finding.what) == (Grade.FAULT, f"{tmp_path} cannot be written to")


def test_a_machine_without_java_is_a_note_as_not_everybody_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise KcgaError("there is none")

    monkeypatch.setattr(machine, "find_java", missing)
    (finding,) = check_java(settings())
    assert (finding.grade, finding.what) == (Grade.NOTE, "Java: there is none")
    assert finding.remedy


def said(findings: list[Finding], monkeypatch: pytest.MonkeyPatch, encoding: str = "utf-8") -> tuple[bool, str]:
    def check(_settings: Settings) -> Iterator[Finding]:
        yield from findings

    monkeypatch.setattr(examination, "CHECKS", (check, check))
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding=encoding)
    sound = examine(settings(), Console(file=stream, width=40))
    stream.flush()
    return sound, written.getvalue().decode(encoding)


def test_all_checks_are_told_line_by_line_however_narrow_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    long = "Java 17 at " + "a/very/long/path/" * 5
    sound, text = said([Finding(long), Finding.note("[b]", "do this")], monkeypatch)
    assert sound
    assert text.splitlines() == [f"✓ {long}", "· [b]", "  → do this"] * 2


def test_one_fault_makes_the_whole_unsound(monkeypatch: pytest.MonkeyPatch) -> None:
    sound, text = said([Finding.fault("broken", "mend it"), Finding("fine")], monkeypatch, "ascii")
    assert not sound
    assert text.splitlines() == ["x broken", "  -> mend it", "+ fine"] * 2


def test_spark_is_where_pyspark_is_and_a_client_alone_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (pyspark_home() / "jars").is_dir()
    monkeypatch.setattr(home_module, "find_spec", lambda _: None)
    with pytest.raises(KcgaError, match="install kcga anew"):
        pyspark_home()

    class Client:
        origin = str(tmp_path / "pyspark" / "__init__.py")

    monkeypatch.setattr(home_module, "find_spec", lambda _: Client)
    with pytest.raises(KcgaError, match="not pyspark-client"):
        pyspark_home()
