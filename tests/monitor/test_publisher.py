"""Whether reports arrive is known later than they are sent; with a producer that delivers when it is told to."""

from collections.abc import Callable, Mapping

import pytest
from confluent_kafka import KafkaError

from domain.messages import WriteSpeedReport
from monitor import publisher
from monitor.connection import ConnectionSettingsError
from monitor.publisher import ReportPublisher
from tests.sandbox.watch_messages import BEGAN, write_speeds

Delivered = Callable[[KafkaError | None, object], None]


class FakeProducer:
    """What librdkafka's does with a report is decided by the test, and told when the producer is polled."""

    def __init__(self, config: Mapping[str, object]) -> None:
        self.config = config
        self.sent: list[bytes] = []
        self.refusal: Exception | None = None
        self.fates: list[KafkaError | None] = []
        self.calls: list[str] = []
        self._told: list[Delivered] = []

    def produce(self, topic: str, value: bytes, on_delivery: Delivered) -> None:
        assert topic == "speeds"
        if self.refusal is not None:
            raise self.refusal
        self.sent.append(value)
        self._told.append(on_delivery)

    def poll(self, _timeout: float) -> None:
        while self.fates and self._told:
            self._told.pop(0)(self.fates.pop(0), None)

    def flush(self, _timeout: float) -> None:
        self.calls.append("flush")

    def purge(self) -> None:
        self.calls.append("purge")

    def complain(self, error: KafkaError) -> None:
        heard = self.config["error_cb"]
        assert callable(heard)
        heard(error)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[FakeProducer]:
    producers: list[FakeProducer] = []

    def make(config: Mapping[str, object]) -> FakeProducer:
        producers.append(FakeProducer(config))
        return producers[-1]

    monkeypatch.setattr(publisher, "Producer", make)
    return producers


REPORT = write_speeds(BEGAN, {"orders-0": 30.0})


def test_reports_go_out_as_they_are_and_none_is_at_fault_before_its_fate_is_known(made: list[FakeProducer]) -> None:
    sender = ReportPublisher("speeds", "kafka:9092", {})
    sender.publish(REPORT)
    assert [WriteSpeedReport.decode(sent) for sent in made[0].sent] == [REPORT]
    assert sender.fault is None


def test_a_report_that_did_not_arrive_is_a_fault_until_one_does(made: list[FakeProducer]) -> None:
    sender = ReportPublisher("speeds", "kafka:9092", {})
    sender.publish(REPORT)
    made[0].fates.append(KafkaError(KafkaError._MSG_TIMED_OUT))
    fault = sender.fault
    assert fault is not None
    assert fault.startswith("speeds: ")
    sender.publish(REPORT)
    assert sender.fault == fault
    made[0].fates.append(None)
    assert sender.fault is None


def test_a_fault_names_what_the_client_last_complained_of_and_forgets_it_once_a_report_arrives(
    made: list[FakeProducer],
) -> None:
    sender = ReportPublisher("speeds", "kafka:9092", {})
    made[0].complain(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    down = KafkaError(KafkaError._ALL_BROKERS_DOWN).str()
    for fate, is_named in ((KafkaError._MSG_TIMED_OUT, True), (None, False), (KafkaError._MSG_TIMED_OUT, False)):
        sender.publish(REPORT)
        made[0].fates.append(None if fate is None else KafkaError(fate))
        assert ((sender.fault or "").endswith(f"({down})")) == is_named


def test_a_report_that_cannot_even_be_handed_over_is_a_fault(made: list[FakeProducer]) -> None:
    sender = ReportPublisher("speeds", "kafka:9092", {})
    made[0].refusal = BufferError("Local: Queue full")
    sender.publish(REPORT)
    assert sender.fault == "Local: Queue full"
    made[0].refusal = None
    sender.publish(REPORT)
    made[0].fates.append(None)
    assert sender.fault is None


def test_the_end_waits_for_the_last_report_and_then_gives_it_up(made: list[FakeProducer]) -> None:
    ReportPublisher("speeds", "kafka:9092", {}).close()
    assert made[0].calls == ["flush", "purge", "flush"]


def test_how_to_connect_is_as_asked_and_how_to_deliver_is_not(made: list[FakeProducer]) -> None:
    ReportPublisher("speeds", "kafka:9092", {"client.id": "me", "acks": "all", "bootstrap.servers": "other:1"})
    config = made[0].config
    assert (config["client.id"], config["acks"], config["bootstrap.servers"]) == ("me", 1, "kafka:9092")
    assert config["max.in.flight.requests.per.connection"] == 1


def test_properties_that_the_client_refuses_are_an_error_that_names_them() -> None:
    with pytest.raises(ConnectionSettingsError, match=r"no\.such\.property"):
        ReportPublisher("speeds", "127.0.0.1:1", {"no.such.property": "x"})
