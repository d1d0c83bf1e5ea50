"""What the doctor says of the brokers' topics; its questions about rights are in test_secure_cluster."""

from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from confluent_kafka import KafkaError, KafkaException

from app import topics
from cli.doctor import kafka
from cli.doctor.finding import Grade
from cli.doctor.kafka import check_kafka
from tests.app.any_settings import settings

OWN = ("consumer.metadata", "controller.decisions", "monitor.writeSpeed")


class Admin:
    """Brokers on which each topic has so many replicas; of rights they tell nothing."""

    def __init__(self, brokers: int, replicas: dict[str, int]) -> None:
        self._brokers = brokers
        self._replicas = replicas

    def list_topics(self, timeout: float) -> Any:
        del timeout
        listed = {
            name: SimpleNamespace(partitions={number: SimpleNamespace(replicas=[1] * count) for number in range(200)})
            for name, count in self._replicas.items()
        }
        return SimpleNamespace(brokers=range(self._brokers), topics=listed)

    def describe_cluster(self, **_: object) -> NoReturn:
        raise KafkaException(KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED))

    def describe_topics(self, *_: object, **__: object) -> dict[str, object]:
        return {}

    describe_consumer_groups = describe_topics


def notes(monkeypatch: pytest.MonkeyPatch, brokers: int, **replicas: int) -> list[str]:
    """What the doctor has to remark, where the topics have three replicas each unless said otherwise."""
    named = dict.fromkeys((*OWN, "__consumer_offsets", "orders"), 3) | {
        name.replace("metadata", "consumer.metadata"): count for name, count in replicas.items()
    }
    admin = Admin(brokers, named)
    for module in (topics, kafka):
        monkeypatch.setattr(module, "AdminClient", lambda _: admin)
    return [finding.what for finding in check_kafka(settings()) if finding.grade is Grade.NOTE]


def test_a_topic_of_kcgas_own_with_a_single_replica_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among the holes that were not confirmed: with the brokers' default of one replica a broker that is away for half
    a minute ends every lease, and the doctor said nothing."""
    assert notes(monkeypatch, 3) == []
    (said,) = notes(monkeypatch, 3, metadata=1, __consumer_offsets=1, orders=1)
    assert said.startswith("__consumer_offsets, consumer.metadata: a single replica, though there are 3 brokers")


def test_where_there_is_one_broker_a_topic_cannot_have_more_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    assert notes(monkeypatch, 1, metadata=1) == []
