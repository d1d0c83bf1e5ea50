"""The reference pages say what the code says."""

from pathlib import Path

import pytest
from rich.text import Text

from app.settings import Settings
from cli.reference import PAGES, commands_page, settings_page

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_the_pages_of_the_documentation_are_current(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), "`make reference` writes it anew"


def test_every_setting_is_in_the_reference_with_its_words() -> None:
    page = settings_page()
    for section, field in Settings.model_fields.items():
        model = field.annotation
        assert f"## [{section}]" in page or f"| `{section}` |" in page
        for name in getattr(model, "model_fields", {}):
            assert f"| `{name}` |" in page
    assert "| `consumer_capacity` | number, 1 or more | `2_300_000` |" in page
    assert "| `topics` | list of text | **needed** |" in page
    assert "| `max_consumers` | whole number, 1 or more, at most 10,000 | `100` |" in page
    assert "| `monitor_port` | whole number, 0 or more, at most 65,535 | none |" in page


def test_every_command_is_in_the_reference_with_its_options() -> None:
    page = commands_page()
    assert "`kcga explain [NUMBER]`: Say in words what the controller decided" in page
    assert "## kcga lake verify" in page
    assert "| `--settings, -s` | The settings file (TOML). Needed. |" in page


def test_nothing_of_a_help_is_taken_for_markup_and_left_out_in_a_terminal() -> None:
    page = commands_page()
    assert Text.from_markup(page).plain == page


def test_rows_of_tables_are_whole() -> None:
    for line in f"{settings_page()}\n{commands_page()}".splitlines():
        assert not line.startswith("|") or line.endswith("|")
