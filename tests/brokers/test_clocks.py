"""The difference of two clocks, by a record that one of them has the time of."""

import pytest

from brokers.clocks import ahead_s


@pytest.mark.parametrize(
    ("appended_at", "told"), [(110.0, 10.0), (100.0, 0.0), (95.0, 0.0), (90.0, 0.0), (30.0, -60.0)]
)
def test_only_what_cannot_have_been_waiting_is_a_difference(appended_at: float, told: float) -> None:
    assert ahead_s(appended_at, since=90.0, until=100.0) == told
