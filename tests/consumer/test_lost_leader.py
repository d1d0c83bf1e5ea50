"""A partition that loses its leader while it is read, of which the client tells in its statistics alone."""

import json
from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TopicPartition as Position

from consumer import fetcher
from consumer.decide.reached import Reached
from consumer.fetcher import Fetcher
from domain.partitions import TopicPartition

LED, LOST = TopicPartition("orders", 0), TopicPartition("orders", 1)


class Client:
    """Of a topic with two partitions."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._take_statistics: Callable[[str], None] = config["stats_cb"]
        self.leaders = {LED.partition: 1, LOST.partition: 1}
        self.assigned: set[int] = set()
        self.looks = 0

    def tell_statistics(self) -> None:
        partitions = {str(number): {"leader": leader} for number, leader in self.leaders.items()}
        topics = {LED.topic: {"partitions": {**partitions, "-1": {"leader": -1}}}}
        self._take_statistics(json.dumps({"rx_bytes": 0, "rxmsg_bytes": 0, "topics": topics}))

    def list_topics(self, topic: str, timeout: float) -> object:
        del timeout
        self.looks += 1
        partitions = {number: SimpleNamespace(leader=leader) for number, leader in self.leaders.items()}
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions=partitions)})

    def incremental_assign(self, positions: Iterable[Position]) -> None:
        self.assigned |= {position.partition for position in positions}

    def incremental_unassign(self, positions: Iterable[Position]) -> None:
        self.assigned -= {position.partition for position in positions}


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> list[Client]:
    """Those that were opened."""
    opened: list[Client] = []

    def open_client(config: Mapping[str, Any]) -> Client:
        opened.append(Client(config))
        return opened[-1]

    monkeypatch.setattr(fetcher, "Consumer", open_client)
    monkeypatch.setattr(fetcher, "pause_s", lambda _: 0.0)
    return opened


def test_a_partition_that_loses_its_leader_is_a_fault_until_it_has_one_again(clients: list[Client]) -> None:
    reads = Fetcher({})
    (client,) = clients
    assert reads.settle({LED, LOST}) == (LED, LOST)
    reads.place({LED: Reached(3), LOST: Reached(5)})
    client.leaders[LOST.partition] = -1
    client.tell_statistics()
    assert reads.settle() == ()
    assert reads.fault == f"{LOST}: has no leader"
    assert client.assigned == {LED.partition}
    client.leaders[LOST.partition] = 2
    assert reads.settle() == ()
    assert reads.fault is None
    assert client.assigned == {LED.partition, LOST.partition}


def test_the_brokers_are_not_asked_while_all_have_leaders(clients: list[Client]) -> None:
    reads = Fetcher({})
    (client,) = clients
    reads.settle({LED, LOST})
    reads.place({LED: Reached(3), LOST: Reached(5)})
    looks = client.looks
    client.tell_statistics()
    assert reads.settle() == ()
    assert client.looks == looks
