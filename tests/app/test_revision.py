"""What consumers begin with, by the settings file."""

from pathlib import Path

import pytest

from app.revision import revisions_of

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
    first = revisions_of(file)
    file.write_text(SETTINGS.replace(before, after))
    assert revisions_of(file) != first


@pytest.mark.parametrize("text", [SETTINGS.replace("3", "4"), f"# a remark\n{SETTINGS}", f"{SETTINGS}[monitor]\n"])
def test_nothing_else_does(file: Path, text: str) -> None:
    first = revisions_of(file)
    file.write_text(text)
    assert revisions_of(file) == first


def test_of_a_file_that_is_being_written_it_is_not_known(file: Path) -> None:
    file.write_text(SETTINGS[:30])
    assert revisions_of(file) is None
    file.unlink()
    assert revisions_of(file) is None


LARGE = '[[consumer.classes]]\nname = "large"\ncapacity = 9000\nprice = 5\n'


def test_each_class_has_one_of_its_own_that_its_price_is_no_part_of(file: Path) -> None:
    before = revisions_of(file)
    file.write_text(SETTINGS + LARGE)
    first = revisions_of(file)
    assert before is not None
    assert first is not None
    assert first.keys() == {"ordinary", "large"}
    assert first["ordinary"] == before["ordinary"] != first["large"]
    file.write_text(SETTINGS + LARGE.replace("5", "4").replace("9000", "8000"))
    assert revisions_of(file) == first
    file.write_text(SETTINGS + LARGE + "batch_bytes = 9000\n")
    third = revisions_of(file)
    assert third is not None
    assert (third["ordinary"] == first["ordinary"], third["large"] == first["large"]) == (True, False)


@pytest.mark.parametrize("classes", ["1", "[1]", '["a"]', "{}"])
def test_classes_that_are_none_yet_are_left_aside(file: Path, classes: str) -> None:
    file.write_text(f"{SETTINGS}classes = {classes}\n")
    revisions = revisions_of(file)
    assert revisions is not None
    assert revisions.keys() == {"ordinary"}
