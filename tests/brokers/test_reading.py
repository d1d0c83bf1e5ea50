"""Reading a partition up to a known end, and where its bounds are told; real brokers are in test_controller_kafka."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as Position

from brokers import reading
from brokers.reading import bounds, records

LIMIT_S = 10.0


class Log:
    """A partition with records at some offsets, its reader, and the clock: a second passes at each look."""

    def __init__(
        self, *offsets: int, position: int = 0, refuses: int | None = None, errors: tuple[int, ...] = ()
    ) -> None:
        self.now = 0.0
        self._errors = [KafkaError(code) for code in errors]
        self._offsets = list(offsets)
        self._goes_to = position
        self._refuses = refuses
        self.asked_anew = 0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def assign(self, positions: list[Position]) -> None:
        self._position = positions[0].offset

    def consume(self, most: int, _: float) -> list[SimpleNamespace]:
        self.now += 1.0
        if self._errors:
            told, self._errors = self._errors, []
            return [SimpleNamespace(error=lambda error=error: error, offset=lambda: None) for error in told]
        taken, self._offsets = self._offsets[:most], self._offsets[most:]
        self._position = taken[-1] + 1 if taken else max(self._position, self._goes_to)
        return [SimpleNamespace(error=lambda: None, offset=lambda offset=offset: offset) for offset in taken]

    def position(self, _: list[Position]) -> list[Position]:
        return [Position("t", 0, self._position)]

    def get_watermark_offsets(self, _: Position, __: float) -> tuple[int, int]:
        if self._refuses is not None and (self._refuses != KafkaError.NOT_LEADER_FOR_PARTITION or self.now < 1.0):
            raise KafkaException(KafkaError(self._refuses))
        return 3, 7

    def list_topics(self, *_: object) -> None:
        self.asked_anew += 1


@pytest.fixture
def log(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    made: Log = request.param
    monkeypatch.setattr(reading, "time", made)
    return made


def offsets(log: Any, start: int, end: int) -> list[int | None]:
    return [record.offset() for record in records(log, Position("t", 0, start), end, LIMIT_S)]


@pytest.mark.parametrize("log", [Log(3, 4, 5, 6, 7)], indirect=True)
def test_it_reads_to_the_end_and_no_further(log: Any) -> None:
    assert offsets(log, 3, 6) == [3, 4, 5]


@pytest.mark.parametrize("log", [Log(3, 4, position=7)], indirect=True)
def test_a_marker_of_a_transaction_at_the_end_is_no_record_that_is_waited_for(log: Any) -> None:
    assert offsets(log, 3, 7) == [3, 4]
    assert log.now < LIMIT_S


@pytest.mark.parametrize("log", [Log(*range(0, 2000, 2), position=2000)], indirect=True)
def test_offsets_without_a_record_do_not_count_as_time_without_one(log: Any) -> None:
    assert offsets(log, 0, 2000) == list(range(0, 2000, 2))


@pytest.mark.parametrize("log", [Log(3)], indirect=True)
def test_where_no_more_comes_that_is_an_error(log: Any) -> None:
    with pytest.raises(KafkaException, match="could not be read"):
        offsets(log, 3, 7)
    assert log.now == pytest.approx(LIMIT_S, abs=2.0)


@pytest.mark.parametrize("log", [Log(3, 4, errors=(KafkaError.GROUP_AUTHORIZATION_FAILED,))], indirect=True)
def test_an_error_that_is_not_of_the_topic_does_not_hold_up_its_records(log: Any) -> None:
    """The client asks for its group, too, which nobody reads or commits for here."""
    assert offsets(log, 3, 5) == [3, 4]


@pytest.mark.parametrize("log", [Log(3, 4, errors=(KafkaError.TOPIC_AUTHORIZATION_FAILED,))], indirect=True)
def test_a_topic_that_may_not_be_read_is_not_waited_for(log: Any) -> None:
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        offsets(log, 3, 5)
    assert log.now < LIMIT_S


@pytest.mark.parametrize("log", [Log(refuses=KafkaError.NOT_LEADER_FOR_PARTITION)], indirect=True)
def test_a_new_leader_is_waited_for_and_looked_up(log: Any) -> None:
    assert bounds(log, Position("t", 0), LIMIT_S) == (3, 7)
    assert log.asked_anew > 0


@pytest.mark.parametrize("log", [Log(refuses=KafkaError.TOPIC_AUTHORIZATION_FAILED)], indirect=True)
def test_a_refusal_is_told_at_once(log: Any) -> None:
    with pytest.raises(KafkaException):
        bounds(log, Position("t", 0), LIMIT_S)
    assert log.now == 0.0
