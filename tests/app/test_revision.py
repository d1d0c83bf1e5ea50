"""What consumers begin with, by the settings file."""

from pathlib import Path

import pytest

from app.revision import revision_of

SETTINGS = (
    '[kafka]\nbootstrap_servers = "kafka:9092"\n[controller]\nmax_consumers = 3\n[consumer]\nlake_root = "/lake"\n'
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "settings.toml"
    file.write_text(SETTINGS)
    return file


@pytest.mark.parametrize(
    ("before", "after"),
    [('"/lake"', '"/other"'), ('"kafka:9092"', '"kafka-2:9092"'), ("[consumer]", "[consumer]\nbatch_bytes = 9")],
)
def test_a_setting_that_consumers_go_by_makes_another(file: Path, before: str, after: str) -> None:
    first = revision_of(file)
    file.write_text(SETTINGS.replace(before, after))
    assert revision_of(file) != first


@pytest.mark.parametrize("text", [SETTINGS.replace("3", "4"), f"# a remark\n{SETTINGS}", f"{SETTINGS}[monitor]\n"])
def test_nothing_else_does(file: Path, text: str) -> None:
    first = revision_of(file)
    file.write_text(text)
    assert revision_of(file) == first


def test_of_a_file_that_is_being_written_it_is_not_known(file: Path) -> None:
    file.write_text(SETTINGS[:30])
    assert revision_of(file) is None
    file.unlink()
    assert revision_of(file) is None
