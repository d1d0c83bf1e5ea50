"""The doctor says whose clock is wrong, and by how much."""

import time
from contextlib import nullcontext
from types import SimpleNamespace
from typing import NoReturn

import pytest

from app.errors import KcgaError
from app.settings import Settings
from cli.doctor import clocks
from cli.doctor.clocks import MOST_NAMED, check_clocks, compared
from cli.doctor.finding import Grade
from domain.group_view.clocks import Sender
from tests.app.any_settings import settings
from tests.sandbox.watch_messages import BEGAN, report, write_speeds

MONITOR, CONTROLLER = Sender("monitor"), Sender("controller")
CONSUMERS = [Sender("consumer", number) for number in range(1, 20)]


def said(ahead_s: dict[Sender, float]) -> list[str]:
    return [finding.what for finding in compared(ahead_s) if finding.grade is Grade.NOTE]


class Said:
    def __init__(self, topic: str, value: bytes) -> None:
        self.topic, self.value = (lambda: topic), (lambda: value)


@pytest.mark.parametrize("skew_s", [-3600, 3600])
def test_what_arrives_is_compared_and_other_groups_are_left_aside(skew_s: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given = settings()
    other = report(2, BEGAN).model_copy(update={"group": "another"})
    now = time.time()
    records = [
        Said("monitor.writeSpeed.billing", write_speeds(now + skew_s, {}).encode()),
        Said("consumer.metadata.billing", b"nonsense"),
        Said("consumer.metadata.billing", other.encode()),
        Said("consumer.metadata.billing", report(1, now).encode()),
    ]
    reader = SimpleNamespace(arriving=lambda *_, **__: records)
    monkeypatch.setattr(clocks, "tail", lambda _: nullcontext(reader))
    monkeypatch.setattr(clocks, "time", SimpleNamespace(time=lambda: now))
    (finding,) = check_clocks(given)
    assert (
        finding.what == f"the clock of the monitor is 3,600 s {'ahead of' if skew_s > 0 else 'behind'} this machine's"
    )


def test_where_no_broker_answers_it_says_nothing_as_another_check_does(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_: Settings) -> NoReturn:
        raise KcgaError("nobody answers")

    monkeypatch.setattr(clocks, "tail", away)
    assert list(check_clocks(settings())) == []


def test_where_nobody_speaks_or_all_agree_nothing_is_wrong() -> None:
    for ahead_s in ({}, {MONITOR: 3.0, CONTROLLER: -4.0}):
        (finding,) = compared(ahead_s)
        assert (finding.grade, finding.remedy) == (Grade.OK, "")


@pytest.mark.parametrize(("ahead_s", "words"), [(3600.2, "3,600 s ahead of"), (-5.6, "6 s behind")])
def test_who_differs_is_named_with_how_much_and_what_to_do(ahead_s: float, words: str) -> None:
    """Issue 18: a difference above a few seconds is a finding."""
    (finding,) = compared({MONITOR: ahead_s, CONTROLLER: 0.1})
    assert finding.what == f"the clock of the monitor is {words} this machine's"
    assert (finding.grade, "NTP" in finding.remedy) == (Grade.NOTE, True)


def test_where_most_say_something_else_it_is_this_machines_clock_that_is_wrong() -> None:
    """Issue 18: what would be right."""
    ahead_s = {MONITOR: 100.0, CONTROLLER: 101.0, CONSUMERS[0]: 50.0}
    assert said(ahead_s) == [
        "this machine's clock is 100 s behind most others",
        "the clock of consumer 1 is 50 s behind most others",
    ]
    assert said({MONITOR: -9.0}) == ["the clock of the monitor is 9 s behind this machine's"]


def test_of_many_the_worst_are_named() -> None:
    wrong = {consumer: 10.0 * consumer.consumer for consumer in CONSUMERS if consumer.consumer}
    lines = said(wrong)
    assert len(lines) == MOST_NAMED + 1
    assert lines[0] == "the clock of consumer 19 is 190 s ahead of this machine's"
    assert lines[-1] == f"so are {len(wrong) - MOST_NAMED} clocks more"
