"""What is asked about partitions some of which nobody leads."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as Position

from brokers import log_offsets
from domain.partitions import TopicPartition

LED, LED_BY_ONE_THAT_HANGS, LEADERLESS, NEW, GONE = (TopicPartition("orders", number) for number in range(5))


class Reader:
    """As the client does, it answers nothing as long as a partition has no leader, or one that does not answer."""

    def list_topics(self, timeout: float) -> SimpleNamespace:
        del timeout
        partitions = {number: SimpleNamespace(leader=leader) for number, leader in enumerate([1, 2, -1, 3])}
        return SimpleNamespace(topics={"orders": SimpleNamespace(partitions=partitions)})

    def offsets_for_times(self, asked: Sequence[Position], timeout: float) -> list[Position]:
        del timeout
        numbers = {position.partition for position in asked}
        if numbers == {NEW.partition}:
            raise KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION))
        if numbers != {LED.partition}:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return [Position(position.topic, position.partition, 70) for position in asked]


def ends(*partitions: TopicPartition) -> dict[TopicPartition, int]:
    reader: Any = Reader()
    return log_offsets.ends(reader, partitions, 1.0)


def test_what_has_a_leader_that_answers_is_told_whatever_the_others_have() -> None:
    """Hole 10: one partition without a leader kept the ends of all from being known."""
    assert ends(LED, LED_BY_ONE_THAT_HANGS, LEADERLESS, GONE) == {LED: 70}
    assert ends(LEADERLESS, GONE) == {}


def test_who_does_not_lead_yet_what_it_is_to_lead_has_answered() -> None:
    assert ends(NEW) == ends(NEW, LED_BY_ONE_THAT_HANGS) == {}
    assert ends(LED, NEW) == {LED: 70}


def test_where_no_leader_answers_that_is_an_error() -> None:
    with pytest.raises(KafkaException):
        ends(LED_BY_ONE_THAT_HANGS, LEADERLESS)
