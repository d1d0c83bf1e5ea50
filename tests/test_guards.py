"""What `make guards` breaks is there to be broken."""

import pytest

from tests.guards import GUARDS, ROOT, Guard, break_guard


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_guard_is_where_its_row_says(guard: Guard) -> None:
    break_guard(ROOT, guard, write=False)
