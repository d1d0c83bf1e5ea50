"""What `make guards` breaks is there to be broken, and its page has all of it."""

import pytest

from tests.guards import GUARDS, ROOT, Guard, break_guard, page, seen_on


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_guard_is_where_its_row_says(guard: Guard) -> None:
    break_guard(ROOT, guard, write=False)


def test_the_page_has_every_guard_as_it_is() -> None:
    """Otherwise: `python -m tests.guards --only NAME --page docs/guards.md`."""
    shown = (ROOT / "docs" / "guards.md").read_text(encoding="utf-8")
    assert shown == page(seen_on(shown))
