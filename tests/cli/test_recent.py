"""What has lately been said: how far back it is read, and what it amounts to; with topics that are lists."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from app.settings import Settings
from app.tail import Arrived
from cli.live import recent as module
from cli.live.recent import ROUND_S, Came, Recent, recent
from domain.messages import (
    ConsumerReport,
    ControlAction,
    ControllerClaim,
    ControlRequest,
    CreationLimit,
    Decision,
    Standing,
    WriteSpeedReport,
)
from domain.topics import CONTROLLER_PARTITION
from tests.app.any_settings import settings
from tests.sandbox.watch_messages import decision, report, write_speeds

NOW = 10_000.0


class FakeTail:
    """Topics as lists of what was sent, and when; notes what it is asked."""

    def __init__(self) -> None:
        self.topics: dict[tuple[str, int], list[tuple[float, bytes]]] = {}
        self.asked_since: dict[str, float] = {}
        self.looked_at = 0
        self.compared: set[str] = set()

    def compare_clocks(self, *partitions: tuple[str, int]) -> None:
        self.compared |= {topic for topic, _ in partitions}

    def newest_first(self, topic: str, partition: int = 0) -> Iterator[Arrived]:
        for at, record in reversed(self.topics.get((topic, partition), [])):
            self.looked_at += 1
            yield Arrived(at, 0, record)

    def since(self, topic: str, at: float, partition: int = 0, *, one_more: bool = False) -> Iterator[Arrived]:
        assert topic in self.compared
        self.asked_since[topic] = at
        if one_more:
            before = [record for record in self.topics.get((topic, partition), []) if record[0] < at]
            yield from (Arrived(came, 0, record) for came, record in before[-1:])
        yield from (Arrived(came, 0, record) for came, record in self.topics.get((topic, partition), []) if came >= at)


@pytest.fixture
def given() -> Settings:
    return settings(controller={"heartbeat_timeout_s": 40.0, "speeds_timeout_s": 30.0, "migration_window_s": 600.0})


@pytest.fixture
def tail(monkeypatch: pytest.MonkeyPatch) -> FakeTail:
    fake = FakeTail()

    @contextmanager
    def tail(_settings: Settings) -> Iterator[FakeTail]:
        yield fake

    monkeypatch.setattr(module, "tail", tail)
    monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: NOW))
    return fake


def read(settings: Settings, window_s: float = 0.0) -> tuple[Recent, list[Came[WriteSpeedReport]]]:
    with recent(settings, window_s=window_s) as (told, speeds):
        return told, list(speeds)


def claim(at: float, epoch: int, *, paused: bool = False, limit: CreationLimit | None = None) -> ControllerClaim:
    return ControllerClaim(epoch=epoch, incarnation="x", sent_at=at, paused=paused, creation_limit=limit)


def decided(number: int, at: float, *, carried_out: bool) -> Decision:
    return decision(number, at, {"orders-0": (1, 1)}, carried_out=carried_out)


def test_a_group_that_nobody_spoke_of_is_not_known(tail: FakeTail, given: Settings) -> None:
    found, _ = read(given)
    assert found == Recent(NOW, (), (), ())
    assert (found.epoch, found.creation_limit, found.paused) == (None, None, False)
    assert tail.looked_at == 0


def test_measurements_are_handed_on_one_by_one_and_what_is_none_is_left_aside(tail: FakeTail, given: Settings) -> None:
    sent = [write_speeds(NOW - age, {"orders-0": 1.0}) for age in (31.0, 2.0)]
    records = [(each.measured_at, each.encode()) for each in sent]
    tail.topics["monitor.writeSpeed.billing", 0] = [(NOW - 500, b"{}"), records[0], (NOW - 3, b"no JSON"), records[1]]
    assert read(given)[1] == [(each.measured_at, each) for each in sent]


@pytest.mark.parametrize(("window_s", "back_s"), [(0.0, 30.0), (29.0, 30.0), (900.0, 900.0)])
def test_measurements_are_read_as_far_back_as_they_are_fresh_or_needed(
    window_s: float, back_s: float, tail: FakeTail, given: Settings
) -> None:
    read(given, window_s)
    assert tail.asked_since["monitor.writeSpeed.billing"] == NOW - back_s - ROUND_S
    assert tail.asked_since["consumer.metadata.billing"] == NOW - 40.0 - ROUND_S


@pytest.mark.parametrize("ahead_s", [0.0, -3600.0, 3600.0])
def test_of_what_was_measured_before_the_controller_began_only_the_last_is_read(
    ahead_s: float, tail: FakeTail, given: Settings
) -> None:
    """The rest counts as unknown to the controller, whatever its clock shows: `kcga plan` gave a consumer up."""
    standing = Standing(began_at=NOW - 100 + ahead_s, counted_on=())
    said = claim(NOW - 1 + ahead_s, 3).model_copy(update={"standing": standing})
    tail.topics["consumer.metadata.billing", CONTROLLER_PARTITION] = [(NOW - 1, said.encode())]
    sent = [write_speeds(NOW - age_s, {"orders-0": 1.0}) for age_s in (110, 105, 50)]
    tail.topics["monitor.writeSpeed.billing", 0] = [(each.measured_at, each.encode()) for each in sent]
    _, speeds = read(given, 900.0)
    assert tail.asked_since["monitor.writeSpeed.billing"] == NOW - 100
    assert [each.said for each in speeds] == sent[1:]


def test_reports_and_statements_are_told_apart_and_stay_in_their_order(tail: FakeTail, given: Settings) -> None:
    request = ControlRequest(action=ControlAction.PAUSE, sent_at=NOW - 8)
    first, last = claim(NOW - 10, 3), claim(NOW - 6, 3, paused=True)
    said: list[ConsumerReport | ControllerClaim | ControlRequest] = [
        first,
        report(1, NOW - 9),
        request,
        report(2, NOW - 7),
        last,
    ]
    tail.topics["consumer.metadata.billing", CONTROLLER_PARTITION] = [
        (NOW - 9, b""),
        *((message.sent_at, message.encode()) for message in said),
    ]
    found, _ = read(given)
    assert [each.said.consumer for each in found.reports] == [1, 2]
    assert [each.said for each in found.statements] == [first, request, last]
    assert found.paused
    assert found.epoch == 3


def test_decisions_go_back_over_the_budgets_window_and_to_the_newest_that_was_carried_out(
    tail: FakeTail, given: Settings
) -> None:
    decisions = [
        decided(1, NOW - 5_000, carried_out=True),
        decided(2, NOW - 4_000, carried_out=True),
        decided(3, NOW - 3_000, carried_out=False),
        decided(4, NOW - 100, carried_out=False),
    ]
    tail.topics["controller.decisions.billing", 0] = [(each.decided_at, each.encode()) for each in decisions]
    assert [each.said.number for each in read(given)[0].decisions] == [2, 3, 4]
    tail.topics["controller.decisions.billing", 0].append((NOW, decided(5, NOW - 1, carried_out=True).encode()))
    tail.looked_at = 0
    assert [each.said.number for each in read(given)[0].decisions] == [4, 5]
    assert tail.looked_at == 3


def came(at: float, *said: ControllerClaim) -> tuple[Came[ControllerClaim | ControlRequest], ...]:
    return tuple(Came[ControllerClaim | ControlRequest](at, each) for each in said)


LIMIT = CreationLimit(most=3, failed_at=NOW - 50, consumer=4, until=NOW + 50)


@pytest.mark.parametrize("ahead_s", [0.0, -3600.0, 3600.0])
def test_a_limit_of_creation_holds_as_long_as_the_newest_claim_says_so(ahead_s: float) -> None:
    """Issue 18: by its controller's clock, which may be another."""

    def limit(*claims: ControllerClaim, at: float = NOW) -> CreationLimit | None:
        return Recent(at, (), came(NOW - 5, *claims), ()).creation_limit

    said = LIMIT.model_copy(update={"failed_at": LIMIT.failed_at + ahead_s, "until": LIMIT.until + ahead_s})
    assert limit(claim(NOW + ahead_s - 5, 3, limit=said)) == LIMIT
    assert limit(claim(NOW + ahead_s - 5, 3, limit=said), claim(NOW + ahead_s - 3, 3)) is None
    assert limit(claim(NOW + ahead_s - 5, 3, limit=said), at=NOW + 50) is None


def test_the_newest_controller_is_known_by_its_claims_or_by_what_it_decided() -> None:
    made = Came(NOW, decision(1, NOW, {"orders-0": (1, 1)}, epoch=9))
    assert Recent(NOW, (), came(NOW, claim(NOW, 8), claim(NOW, 7)), (made,)).epoch == 9
    assert Recent(NOW, (), came(NOW, claim(NOW, 10)), (made,)).epoch == 10


@pytest.mark.parametrize("ahead_s", [-3600.0, 3600.0])
def test_what_lately_came_is_known_whatever_times_its_senders_tell(
    ahead_s: float, tail: FakeTail, given: Settings
) -> None:
    """Issue 18: a decision counts for the budget by when it came."""
    tail.topics["monitor.writeSpeed.billing", 0] = [
        (NOW - 1, write_speeds(NOW - 1 + ahead_s, {"orders-0": 1.0}).encode())
    ]
    tail.topics["consumer.metadata.billing", CONTROLLER_PARTITION] = [(NOW - 2, report(1, NOW - 2 + ahead_s).encode())]
    tail.topics["controller.decisions.billing", 0] = [
        (NOW - age_s, decided(number, NOW - age_s + ahead_s, carried_out=True).encode())
        for number, age_s in ((1, 5_000.0), (2, 590.0), (3, 10.0))
    ]
    found, taken = read(given)
    assert [each.at for each in taken] == [NOW - 1]
    assert [each.at for each in found.reports] == [NOW - 2]
    assert [(each.at, each.said.number) for each in found.decisions] == [(NOW - 590, 2), (NOW - 10, 3)]


def test_decisions_of_another_group_are_left_aside(tail: FakeTail, given: Settings) -> None:
    """Hole 19: `kcga plan` and `kcga explain` took them for those of this group."""
    other = decided(7, NOW - 1, carried_out=True).model_copy(update={"group": "another"})
    mine = decided(3, NOW - 2, carried_out=True).model_copy(update={"group": given.kafka.group})
    tail.topics["controller.decisions.billing", 0] = [(NOW - 2, mine.encode()), (NOW - 1, other.encode())]
    assert [each.said.number for each in read(given)[0].decisions] == [3]
