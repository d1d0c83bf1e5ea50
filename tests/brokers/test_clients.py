"""What clients say of themselves."""

from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaException

from consumer.kafka import common_config, reading_config
from controller import kafka
from domain.partitions import TopicPartition
from monitor.cluster_logs import BrokerAwayError, ClusterLogs

NOBODY = "127.0.0.1:1"
LIMIT_S = 1.0


def of_a_consumer(client_config: dict[str, str]) -> None:
    reader = Consumer(reading_config(common_config(NOBODY, 1, client_config), "lake"))
    reader.list_topics(timeout=LIMIT_S)


def of_the_controller(client_config: dict[str, str]) -> None:
    kafka.KafkaLink(NOBODY, "lake", client_config).has_been_used()


def of_the_monitor(client_config: dict[str, str]) -> None:
    ClusterLogs(NOBODY, client_config, LIMIT_S).committed("lake", [TopicPartition("orders", 0)])


@pytest.mark.parametrize("ask", [of_a_consumer, of_the_controller, of_the_monitor])
def test_brokers_that_are_away_are_no_lines_of_the_clients_own_unless_these_are_asked_for(
    ask: Callable[[dict[str, str]], None], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "BEGIN_TIMEOUT_S", LIMIT_S)
    with pytest.raises((KafkaException, BrokerAwayError)):
        ask({})
    assert "%" not in capfd.readouterr().err
    with pytest.raises((KafkaException, BrokerAwayError)):
        ask({"log_level": "3"})
    assert "%3|" in capfd.readouterr().err
