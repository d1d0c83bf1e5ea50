"""Only the newest controller of a group can send; that real brokers see to it is in test_controller_kafka."""

import pytest

from controller import kafka
from controller.kafka import DeposedError, KafkaLink
from domain.messages import Action, ConsumerCommand
from domain.topics import TopicNames
from tests.transactional_brokers import Brokers


def test_a_controller_that_begins_keeps_the_one_before_from_sending(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers()
    monkeypatch.setattr(kafka, "Producer", brokers.producer)
    monkeypatch.setattr(kafka, "Consumer", brokers.consumer)
    command = ConsumerCommand(
        consumer=2, incarnation="a", epoch=1, plan=1, sequence=1, action=Action.STOP, partitions=()
    )
    old, new = (KafkaLink("nowhere:1", "group") for _ in range(2))
    old.begin()
    old.send([command])
    new.begin()
    with pytest.raises(DeposedError):
        old.send([command])
    new.send([command])
    commands = brokers.records[TopicNames().metadata, command.consumer]
    assert [ConsumerCommand.decode(each) for each in commands] == [command.model_copy(update={"group": "group"})] * 2
