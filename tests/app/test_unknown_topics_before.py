"""A group of which brokers do not tell where it was: no broker."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from app.components import require_no_topics_before
from app.errors import KcgaError
from domain.topics import METADATA, TopicNames
from tests.app.any_settings import settings


@pytest.fixture
def where(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Any:
    """A cluster with the topics of before, which are read with this error."""

    def refuse() -> bool:
        raise KafkaException(KafkaError(request.param))

    def link(_servers: str, _group: str, _config: object, names: TopicNames) -> Any:
        return SimpleNamespace(
            has_been_claimed=lambda: False if names != TopicNames() else refuse(),
            has_been_used=refuse,
            close=lambda: None,
        )

    monkeypatch.setattr("controller.kafka.KafkaLink", link)
    return SimpleNamespace(partitions=lambda: {METADATA: 3})


@pytest.mark.parametrize("where", [KafkaError._TIMED_OUT, KafkaError.LEADER_NOT_AVAILABLE], indirect=True)
def test_a_controller_does_not_begin_where_topics_before_cannot_be_read(where: Any) -> None:
    with pytest.raises(KcgaError, match=r"does not tell whether the group 'billing' was on consumer\.metadata: .*"):
        require_no_topics_before(settings(), where)
    require_no_topics_before(settings(kafka={"group": "kcga"}), where)
    require_no_topics_before(settings(topics={"metadata": METADATA}), where)


@pytest.mark.parametrize("where", [KafkaError.TOPIC_AUTHORIZATION_FAILED], indirect=True)
def test_who_may_not_read_them_has_not_used_them(where: Any) -> None:
    require_no_topics_before(settings(), where)
