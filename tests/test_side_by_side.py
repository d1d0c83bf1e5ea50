"""The groups of tests name tests that there are."""

from pathlib import Path

import pytest

from tests.side_by_side import GROUPS, group_of

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("beginning", GROUPS)
def test_what_a_group_names_is_there(beginning: str) -> None:
    place, _, test = beginning.partition("::")
    assert (ROOT / place).exists()
    assert not test or f"def {test}" in (ROOT / place).read_text(encoding="utf-8")


def test_all_of_a_file_that_is_named_are_in_its_group_and_others_in_none() -> None:
    assert group_of("tests/test_pipeline.py::test_any") == GROUPS["tests/test_pipeline.py"]
    assert group_of("tests/test_docs.py::test_any") is None
