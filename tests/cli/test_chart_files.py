"""The Helm chart's files that are made without kubectl are what manifests and settings say."""

from pathlib import Path

import pytest

from cli.chart import objects, parts

PARTS = {file: text for file, text in parts(Path(__file__).parents[2] / "deploy").items() if text is not objects}


@pytest.mark.parametrize("file", PARTS, ids=lambda file: file.name)
def test_what_follows_from_manifests_and_settings_is_current(file: Path) -> None:
    assert file.read_text(encoding="utf-8") == PARTS[file](), "`make chart` writes it anew"
