"""Records are aged by the brokers' clock, and by this machine's where the two agree, or nobody speaks."""

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, TopicPartition

from app import tail as module
from app.tail import LISTEN_S, Tail
from brokers import reading

NOW = 1_000_000.0


class FakeRecord:
    def __init__(self, offset: int, at: float, kind: int = TIMESTAMP_LOG_APPEND_TIME) -> None:
        self._offset, self._at, self._kind = offset, at, kind

    def error(self) -> None:
        return None

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return str(self._offset).encode()

    def timestamp(self) -> tuple[int, int]:
        return self._kind, int(1000 * self._at)


class FakeLog:
    """One partition, a consumer of it, and the time: of the records those after `NOW` are to come yet."""

    def __init__(self, ages_s: list[float], ahead_s: float, kind: int = TIMESTAMP_LOG_APPEND_TIME) -> None:
        self.now = NOW
        self._came = [NOW - age_s for age_s in ages_s]
        self._records = [FakeRecord(offset, at + ahead_s, kind) for offset, at in enumerate(self._came)]
        self._next = 0
        self.asked_ms = 0

    def time(self) -> float:
        return self.now

    monotonic = time

    def get_watermark_offsets(self, _partition: TopicPartition, _timeout_s: float) -> tuple[int, int]:
        return 0, sum(at <= self.now for at in self._came)

    def assign(self, positions: list[TopicPartition]) -> None:
        self._next = positions[0].offset

    def offsets_for_times(self, asked: list[TopicPartition], _timeout_s: float) -> list[TopicPartition]:
        self.asked_ms = asked[0].offset
        found = [each.offset() for each in self._records if each.timestamp()[1] >= self.asked_ms]
        return [TopicPartition("t", 0, min(found, default=-1))]

    def consume(self, count: int, timeout_s: float) -> list[FakeRecord]:
        self.now += timeout_s
        end = self.get_watermark_offsets(TopicPartition("t", 0), 0)[1]
        taken = self._records[self._next : min(end, self._next + count)]
        self._next += len(taken)
        return taken

    def position(self, _partitions: list[TopicPartition]) -> list[TopicPartition]:
        return [TopicPartition("t", 0, self._next)]


def compared(log: FakeLog, monkeypatch: pytest.MonkeyPatch) -> Tail:
    for each in (module, reading):
        monkeypatch.setattr(each, "time", log)
    tail = Tail(log)  # type: ignore[arg-type]
    tail.compare_clocks(("t", 0))
    return tail


@pytest.mark.parametrize("ahead_s", [0.0, 2.0, -3600.0, 3600.0])
def test_what_came_lately_is_found_by_the_clock_here(ahead_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 18: brokers whose clock is an hour off had everything be old, or new."""
    log = FakeLog([5000.0, 60.0, 20.0, 1.0, -1.0], ahead_s)
    tail = compared(log, monkeypatch)
    came = list(tail.since("t", NOW - 40))
    assert [record.value for record in came[:2]] == [b"2", b"3"]
    assert [record.at for record in came[:2]] == [pytest.approx(NOW - age_s, abs=2.1) for age_s in (20, 1)]


def test_where_clocks_agree_nothing_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    log = FakeLog([1.0], 0.0)
    compared(log, monkeypatch)
    assert log.now < NOW + 0.1


@pytest.mark.parametrize("ages_s", [[], [500.0]])
def test_where_nobody_speaks_this_machines_clock_counts(ages_s: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    log = FakeLog(ages_s, 0.0)
    tail = compared(log, monkeypatch)
    assert log.now < NOW + LISTEN_S + 0.1
    assert list(tail.since("t", NOW - 400)) == []


def test_the_clock_of_a_sender_is_not_taken_for_the_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 18: on topics that were made before, records have the times of their senders."""
    log = FakeLog([500.0, -1.0], -3600.0, TIMESTAMP_CREATE_TIME)
    tail = compared(log, monkeypatch)
    list(tail.since("t", NOW - 400))
    assert log.asked_ms == 1000 * (NOW - 400)


@pytest.mark.parametrize(("since_s", "first"), [(30, b"1"), (0, b"2"), (10_000, b"0")])
def test_one_more_is_what_came_last_before(since_s: float, first: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LAST_FEW", 1)
    tail = compared(FakeLog([5000.0, 60.0, 20.0], 0.0), monkeypatch)
    came = [record.value for record in tail.since("t", NOW - since_s, one_more=True)]
    assert came == [b"0", b"1", b"2"][int(first) :]
