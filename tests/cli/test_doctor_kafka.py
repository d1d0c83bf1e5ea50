"""What the doctor says of the brokers' topics; its questions about rights are in test_secure_cluster."""

from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from confluent_kafka import KafkaError, KafkaException

from app import topics
from cli.doctor import kafka
from cli.doctor.finding import Finding, Grade
from cli.doctor.kafka import check_kafka
from domain.partitions import OffsetRange, TopicPartition
from domain.speeds import Source
from monitor.broker_logs import ASKED_FOR
from monitor.prometheus import Prometheus, PrometheusAwayError, Scraped
from tests.app.any_settings import settings
from tests.monitor.measured_logs import FakeLogs, topic

ORDERS = TopicPartition("orders", 0)
OWN = ("consumer.metadata.billing", "controller.decisions.billing", "monitor.writeSpeed.billing")


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


def examined(
    monkeypatch: pytest.MonkeyPatch,
    logs: FakeLogs,
    source: str = "auto",
    brokers: int = 3,
    mode: str = "manage",
    **replicas: int,
) -> list[Finding]:
    """What the doctor says, where the topics have three replicas each unless said otherwise."""
    named = dict.fromkeys((*OWN, "__consumer_offsets", "orders"), 3) | {
        name.replace("metadata", "consumer.metadata.billing"): count for name, count in replicas.items()
    }
    admin = Admin(brokers, named)
    for module in (topics, kafka):
        monkeypatch.setattr(module, "AdminClient", lambda _: admin)
    monkeypatch.setattr(kafka, "ClusterLogs", lambda *_: logs)
    asked = settings(controller={"mode": mode})
    monitor = asked.monitor.model_copy(update={"source": Source(source) if source != "auto" else source})
    return list(check_kafka(asked.model_copy(update={"monitor": monitor})))


def notes(monkeypatch: pytest.MonkeyPatch, brokers: int, **replicas: int) -> list[str]:
    logs = FakeLogs({"orders": topic("orders")}, {ORDERS: 1})
    found = examined(monkeypatch, logs, "auto", brokers, "manage", **replicas)
    return [finding.what for finding in found if finding.grade is Grade.NOTE]


DENIED = "it shows no log directories"


@pytest.mark.parametrize(
    ("denied", "unreadable", "source", "graded", "said"),
    [
        (False, False, "auto", Grade.OK, "write speeds are measured by log_dirs"),
        (False, False, "log_dirs", Grade.OK, "write speeds are measured by log_dirs"),
        (True, False, "auto", Grade.NOTE, f"write speeds are measured of orders by offsets, since {DENIED}"),
        (True, True, "auto", Grade.FAULT, "not allowed: Read on the topic orders, to learn how large its records are"),
        (True, False, "log_dirs", Grade.FAULT, f"write speeds cannot be measured: {DENIED}"),
        (
            False,
            False,
            "offsets",
            Grade.OK,
            f"write speeds are measured of orders by offsets, since {ASKED_FOR}",
        ),
    ],
)
def test_what_tells_the_write_speeds_is_said_and_what_is_missing_for_it(
    monkeypatch: pytest.MonkeyPatch, denied: bool, unreadable: bool, source: str, graded: Grade, said: str
) -> None:
    logs = FakeLogs({"orders": topic("orders")}, {ORDERS: 1}, {ORDERS: OffsetRange(0, 9)}, sizes_denied=denied)
    logs.unreadable = {"orders"} if unreadable else set()
    found = [(finding.grade, finding.what) for finding in examined(monkeypatch, logs, source)]
    assert (graded, said) in found


def test_a_topic_of_kcgas_own_with_a_single_replica_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among the holes that were not confirmed: with the brokers' default of one replica a broker that is away for half
    a minute ends every lease, and the doctor said nothing."""
    assert notes(monkeypatch, 3) == []
    (said,) = notes(monkeypatch, 3, metadata=1, __consumer_offsets=1, orders=1)
    assert said.startswith(
        "__consumer_offsets, consumer.metadata.billing: a single replica, though there are 3 brokers"
    )


def test_where_there_is_one_broker_a_topic_cannot_have_more_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    assert notes(monkeypatch, 1, metadata=1) == []


def test_a_prometheus_that_does_not_answer_is_told_and_not_for_a_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Prometheus) -> NoReturn:
        raise PrometheusAwayError("Prometheus at http://prometheus:9090 does not answer")

    logs = FakeLogs({"orders": topic("orders")}, {ORDERS: 1})
    monkeypatch.setattr(Prometheus, "sizes", refuse)
    (fault,) = [finding for finding in examined(monkeypatch, logs, "prometheus") if finding.grade is Grade.FAULT]
    assert fault.what == "write speeds cannot be measured: Prometheus at http://prometheus:9090 does not answer"
    monkeypatch.setattr(Prometheus, "sizes", lambda _: {})
    (fault,) = [finding for finding in examined(monkeypatch, logs, "prometheus") if finding.grade is Grade.FAULT]
    assert fault.what == "Prometheus knows nothing of 1 partition, the first is orders-0"
    monkeypatch.setattr(Prometheus, "sizes", lambda _: {ORDERS: Scraped(0.0, 5, 0.0)})
    said = [finding.what for finding in examined(monkeypatch, logs, "prometheus")]
    assert "write speeds are measured of orders by prometheus, since monitor.source says so" in said


@pytest.mark.parametrize(("mode", "said"), [("manage", 3), ("observe", 0)])
def test_topics_of_its_own_are_none_of_a_controllers_that_only_observes(
    monkeypatch: pytest.MonkeyPatch, mode: str, said: int
) -> None:
    logs = FakeLogs({"orders": topic("orders")}, {ORDERS: 1})
    found = examined(monkeypatch, logs, mode=mode)
    assert sum(finding.what.startswith(OWN) for finding in found) == said
    assert any("1 topic to read" in finding.what for finding in found)
