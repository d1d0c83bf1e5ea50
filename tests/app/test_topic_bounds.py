"""What keeps kcga's topics small, without a broker."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, ConfigSource, NewTopic

from app import topics
from app.topics import Cluster
from domain.topics import TopicNames
from tests.patience import PATIENCE_S, wait_until
from tests.services import SharedBroker

NAMES = TopicNames()


class Admin:
    """The brokers, as far as topics and their settings go."""

    def __init__(self) -> None:
        self.topics: dict[str, dict[str, str]] = {}
        """What is set for each topic itself."""
        self.refuses: int | None = None
        """With what error it answers who asks for settings."""
        self.learns_late = 0
        """So often the broker that is asked does not know yet of a topic that was made."""

    def list_topics(self, timeout: float) -> Any:
        del timeout
        listed = {name: SimpleNamespace(partitions=range(9)) for name in self.topics}
        if listed and self.learns_late:
            self.learns_late -= 1
            return SimpleNamespace(topics={})
        return SimpleNamespace(topics=listed)

    def create_topics(self, new: list[NewTopic], **_within: float) -> dict[str, Future[None]]:
        self.topics.update({topic.topic: dict(topic.config or {}) for topic in new})
        return {topic.topic: self._answer(None) for topic in new}

    def describe_configs(
        self, asked: list[ConfigResource], request_timeout: float
    ) -> dict[ConfigResource, Future[Any]]:
        del request_timeout
        return {topic: self._answer(self._entries(topic.name)) for topic in asked}

    def incremental_alter_configs(
        self, asked: list[ConfigResource], request_timeout: float
    ) -> dict[ConfigResource, Future[Any]]:
        del request_timeout
        for topic in asked:
            self.topics[topic.name].update({entry.name: entry.value or "" for entry in topic.incremental_configs})
        return {topic: self._answer(None) for topic in asked}

    def _entries(self, topic: str) -> dict[str, ConfigEntry]:
        of_the_broker = {"segment.ms": "604800000", "segment.bytes": "1073741824", "retention.bytes": "-1"}
        default: Any = ConfigSource.DEFAULT_CONFIG.value  # as numbers they come from the client
        own: Any = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        return {name: ConfigEntry(name, value, source=default) for name, value in of_the_broker.items()} | {
            name: ConfigEntry(name, value, source=own) for name, value in self.topics[topic].items()
        }

    def _answer(self, value: Any) -> Future[Any]:
        answer: Future[Any] = Future()
        if self.refuses is None:
            answer.set_result(value)
        else:
            answer.set_exception(KafkaException(KafkaError(self.refuses)))
        return answer


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> Admin:
    admin = Admin()
    monkeypatch.setattr(topics, "AdminClient", lambda _: admin)
    return admin


def ensure() -> None:
    Cluster("nowhere:1").ensure_internal_topics(NAMES, highest_consumer=8)


def test_a_topic_that_was_made_can_be_used_at_once(admin: Admin) -> None:
    """Brokers learn of it one after the other, and those that have not say that there is none."""
    admin.learns_late = 3
    cluster = Cluster("nowhere:1")
    cluster.create({"orders": 9})
    assert admin.learns_late == 0
    assert cluster.partitions() == {"orders": 9}


def test_whom_brokers_never_tell_of_a_topic_that_it_made_goes_on(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "REQUEST_TIMEOUT_S", 0.1)
    said: list[list[str]] = []
    monkeypatch.setattr(topics.log, "warning", lambda _, topics: said.append(topics))
    admin.learns_late = 1_000_000
    Cluster("nowhere:1").create({"orders": 9})
    assert said == [["orders"]]


def test_no_partition_of_the_metadata_topic_ever_holds_more_than_tens_of_megabytes(admin: Admin) -> None:
    """Hole 1: the segment that is written to is never deleted, and was one for 7 days or 1 GiB."""
    ensure()
    own = {name: int(value) for name, value in admin.topics[NAMES.metadata].items() if value.isdecimal()}
    assert own["retention.bytes"] + own["segment.bytes"] < 50_000_000
    assert own["segment.ms"] < own["retention.ms"] == 3_600_000
    for topic in (NAMES.write_speed, NAMES.decisions):
        assert {"retention.ms", "retention.bytes", "segment.ms", "segment.bytes"} <= admin.topics[topic].keys()


def test_records_have_the_time_of_their_arrival_and_no_sender_s(admin: Admin) -> None:
    """Issue 18: what reads a topic later would age it by the clocks of those who wrote to it."""
    ensure()
    for own in admin.topics.values():
        assert own.pop("message.timestamp.type") == "LogAppendTime"
    ensure()
    assert [own["message.timestamp.type"] for own in admin.topics.values()] == 3 * ["LogAppendTime"]


def test_topics_of_the_version_before_are_bounded_when_a_component_begins(admin: Admin) -> None:
    """Hole 1: they have a retention in time only."""
    ensure()
    expected = {name: dict(own) for name, own in admin.topics.items()}
    for own in admin.topics.values():
        for name in ("retention.bytes", "segment.ms", "segment.bytes"):
            del own[name]
    ensure()
    assert admin.topics == expected


def test_what_somebody_set_for_a_topic_stays(admin: Admin) -> None:
    ensure()
    admin.topics[NAMES.decisions]["retention.ms"] = "-1"
    ensure()
    assert admin.topics[NAMES.decisions]["retention.ms"] == "-1"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, []),
        (KafkaError.POLICY_VIOLATION, [NAMES.metadata, NAMES.decisions, NAMES.write_speed]),
    ],
    ids=["no right", "another reason"],
)
def test_where_the_brokers_refuse_bounds_the_component_begins_all_the_same(
    admin: Admin, monkeypatch: pytest.MonkeyPatch, error: int, said: list[str]
) -> None:
    warned: list[str] = []
    monkeypatch.setattr(topics.log, "warning", lambda _, topic, **__: warned.append(topic))
    ensure()
    admin.refuses = error
    ensure()
    assert warned == said


@pytest.mark.integration
def test_a_broker_takes_the_bounds_for_topics_that_exist(broker: SharedBroker, unique_name: str) -> None:
    """Hole 1, on a real broker."""
    names = TopicNames(f"{unique_name}.speed", f"{unique_name}.metadata", f"{unique_name}.decisions")
    cluster = Cluster(broker.bootstrap_servers)
    cluster.create({names.metadata: 2}, settings={names.metadata: {"retention.ms": 7}})
    cluster.ensure_internal_topics(names, highest_consumer=1)
    cluster.ensure_internal_topics(names, highest_consumer=1)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    bounds = {
        "retention.ms": "7",
        "retention.bytes": str(32 * 2**20),
        "segment.ms": "600000",
        "segment.bytes": str(4 * 2**20),
        "message.timestamp.type": "LogAppendTime",
    }

    def own() -> dict[str, str | None]:
        (answer,) = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, names.metadata)]).values()
        entries: dict[str, Any] = answer.result(PATIENCE_S)
        return {name: entry.value for name, entry in entries.items() if entry.source == topics.OF_THE_TOPIC}

    wait_until(lambda: own() == bounds, own)  # brokers learn of it after the controller
