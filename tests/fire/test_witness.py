"""Reports of consumers whose clocks are whole hours from the brokers'."""

import pytest

from tests.fire.witness import HOUR_S, by_brokers_clock
from tests.sandbox.watch_messages import cycle, read, report

ARRIVED = 1_000_000.0


@pytest.mark.parametrize("hours", [-1, 0, 1])
def test_a_report_has_the_times_of_the_brokers_clock(hours: int) -> None:
    ahead = hours * HOUR_S
    reads = read("a-0", first=ARRIVED - 5 + ahead, last=ARRIVED - 3 + ahead)
    moved = by_brokers_clock(report(1, ARRIVED - 1 + ahead, "a-0", cycle=cycle(reads)), ARRIVED)
    assert moved == report(1, ARRIVED - 1, "a-0", cycle=cycle(read("a-0", first=ARRIVED - 5, last=ARRIVED - 3)))


def test_a_clock_that_was_set_between_two_reads_is_both() -> None:
    reads = read("a-0", first=ARRIVED - 5, last=ARRIVED - 3 + HOUR_S)
    moved = by_brokers_clock(report(1, ARRIVED - 1 + HOUR_S, "a-0", cycle=cycle(reads)), ARRIVED)
    assert moved.cycle == cycle(read("a-0", first=ARRIVED - 5, last=ARRIVED - 3))
