"""What a consumer reads at most, where nobody says it: by what members of a group read while they lagged."""

from dataclasses import dataclass, field

import pytest

from app.watch.decide import words
from app.watch.decide.membership import Membership
from app.watch.decide.watcher import CapacityFrom, Moment, Watcher
from controller.settings import AUTO, ControllerSettings
from domain.partitions import TopicPartition
from domain.speeds import Lag, WriteSpeeds
from tests.cli.test_watcher import SETTINGS, group, watched, watcher
from tests.sandbox.watch_messages import partition

RECORD_BYTES = 10.0
COMMITS_EVERY_S = 5
LEARNS = ControllerSettings.model_validate(
    {"consumer_capacity": AUTO, "capacity_floor": 1, "scale_down_window_s": 10, "max_consumers": 5}
)
ONE, TWO = group(("orders-0",)), group(("orders-0",), ("orders-1",))


@dataclass
class Reading:
    """A group whose members read so many records/s of each partition, and commit them every few seconds."""

    watcher: Watcher = field(default_factory=lambda: watcher(LEARNS))
    at: int = 1000
    written: dict[str, float] = field(default_factory=dict)
    read: dict[str, float] = field(default_factory=dict)
    behind: dict[str, float] = field(default_factory=dict)
    """Records."""
    done: dict[str, float] = field(default_factory=dict)
    committed: dict[TopicPartition, int | None] = field(default_factory=dict)

    def look(self, found: Membership, seconds: int) -> Moment:
        for _ in range(seconds):
            self.at += 1
            for name, speed in self.written.items():
                waiting = self.behind.get(name, 0.0) + speed
                reads = min(self.read.get(name, 0.0), waiting)
                self.behind[name], self.done[name] = waiting - reads, self.done.get(name, 0.0) + reads
                if self.at % COMMITS_EVERY_S == 0 or partition(name) not in self.committed:
                    self.committed[partition(name)] = int(self.done[name])
            moment = self.watcher.look(float(self.at), found, self._speeds(), self.committed)
        return moment

    def _speeds(self) -> WriteSpeeds:
        known = {partition(name): speed * RECORD_BYTES for name, speed in self.written.items()}
        lags = {}
        for name in self.written:
            held_back = self.done[name] - (self.committed[partition(name)] or 0)
            records = round(self.behind[name] + held_back)
            lags[partition(name)] = Lag(records, records * RECORD_BYTES, None)
        return WriteSpeeds(float(self.at), known, lags=lags)


def test_nothing_is_advised_or_said_of_anybody_until_a_member_was_seen_to_lag() -> None:
    reading = Reading(written={"orders-0": 100.0}, read={"orders-0": 500.0})
    moment = reading.look(ONE, 300)
    assert moment.capacity_from is CapacityFrom.UNKNOWN
    assert (moment.decision, moment.needed, moment.advised, moment.saving) == (None, None, None, None)
    assert (moment.overloaded, moment.idle) == ((), ())
    assert "no advice: what a consumer reads at most is not known" in words.advice(moment)


def test_the_most_that_a_member_read_while_it_lagged_is_the_estimate() -> None:
    reading = Reading(written={"orders-0": 300.0, "orders-1": 10.0}, read={"orders-0": 200.0, "orders-1": 200.0})
    moment = reading.look(TWO, 200)
    assert moment.capacity_from is CapacityFrom.ESTIMATE
    assert moment.capacity == pytest.approx(200.0 * RECORD_BYTES, rel=0.1)
    assert moment.overloaded == (1,)
    assert moment.decision is not None
    assert moment.decision.saturated, "orders-0 is faster than a consumer"
    (said,) = words.capacity(moment)
    assert said == "by an estimate: 2.00 kB/s is the most that a member was seen to read while it lagged"
    assert said in "\n".join(words.account(moment))


def test_a_member_that_comes_to_read_more_raises_it_and_one_that_reads_less_does_not() -> None:
    reading = Reading(written={"orders-0": 300.0}, read={"orders-0": 200.0}, behind={"orders-0": 1e6})
    assert reading.look(ONE, 200).capacity == pytest.approx(2000.0, rel=0.1)
    reading.read["orders-0"] = 280.0
    assert reading.look(ONE, 200).capacity == pytest.approx(2800.0, rel=0.1)
    reading.read["orders-0"] = 100.0
    assert reading.look(ONE, 200).capacity == pytest.approx(2800.0, rel=0.1)


def test_a_backlog_that_shrinks_tells_as_well_as_long_as_there_is_one() -> None:
    reading = Reading(written={"orders-0": 50.0}, read={"orders-0": 400.0}, behind={"orders-0": 60_000.0})
    assert reading.look(ONE, 130).capacity == pytest.approx(4000.0, rel=0.1)
    assert reading.look(ONE, 300).capacity == pytest.approx(4000.0, rel=0.1)


def test_what_changes_hands_begins_anew() -> None:
    reading = Reading(written={"orders-0": 300.0, "orders-1": 300.0}, read={"orders-0": 200.0, "orders-1": 200.0})
    for _ in range(8):
        assert reading.look(TWO, 40).capacity_from is CapacityFrom.UNKNOWN
        assert reading.look(group(("orders-1",), ("orders-0",)), 40).capacity_from is CapacityFrom.UNKNOWN


def test_a_capacity_that_is_given_stays() -> None:
    moment = watched(ONE, 150.0, seconds=100, settings=SETTINGS)
    assert (moment.capacity_from, moment.capacity) == (CapacityFrom.GIVEN, 100.0)
    assert list(words.capacity(moment)) == []
