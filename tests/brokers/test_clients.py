"""What clients say of themselves."""

from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaException

from consumer.kafka import common_config, reading_config
from controller import kafka
from domain.partitions import TopicPartition
from monitor.cluster_logs import BrokerAwayError, ClusterLogs

NOBODY = "127.0.0.1:1"
LIMIT_S = 0.5


def a_consumer(**client_config: str) -> None:
    reader = Consumer(reading_config(common_config(NOBODY, 1, client_config), "lake"))
    try:
        reader.list_topics(timeout=LIMIT_S)
    finally:
        reader.close()


def the_controller() -> None:
    link = kafka.KafkaLink(NOBODY, "lake")
    try:
        link.has_been_used()
    finally:
        link.close()


def the_monitor() -> None:
    ClusterLogs(NOBODY, {}, LIMIT_S).committed("lake", [TopicPartition("orders", 0)])


@pytest.mark.parametrize("asks", [a_consumer, the_controller, the_monitor])
def test_brokers_that_are_away_are_no_lines_of_the_clients_own(
    asks: Callable[[], None], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "BEGIN_TIMEOUT_S", LIMIT_S)
    with pytest.raises((KafkaException, BrokerAwayError)):
        asks()
    assert "%" not in capfd.readouterr().err


def test_clients_speak_where_they_are_told_to(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KafkaException):
        a_consumer(log_level="3")
    assert "%3|" in capfd.readouterr().err
