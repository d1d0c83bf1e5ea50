"""Where logs begin and end, as a real broker tells."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from brokers import log_offsets
from domain.partitions import TopicPartition
from tests.patience import PATIENCE_S
from tests.services import SharedBroker


@pytest.fixture
def reader(broker: SharedBroker, unique_name: str) -> Iterator[Consumer]:
    reader = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": unique_name})
    yield reader
    reader.close()


def test_each_log_begins_and_ends_where_it_does(
    broker: SharedBroker, reader: Consumer, create_topic: Callable[..., str], unique_name: str
) -> None:
    topic = create_topic(unique_name, partitions=2)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for _ in range(3):
        producer.produce(topic, b"record", partition=1)
    producer.flush(PATIENCE_S)
    empty, full = (TopicPartition(topic, number) for number in range(2))
    assert log_offsets.beginnings(reader, [empty, full], PATIENCE_S) == {empty: 0, full: 0}
    assert log_offsets.ends(reader, [empty, full], PATIENCE_S) == {empty: 0, full: 3}


def test_a_log_ends_before_the_transaction_that_is_under_way(
    broker: SharedBroker, reader: Consumer, create_topic: Callable[..., str], unique_name: str
) -> None:
    partition = TopicPartition(create_topic(unique_name), 0)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": unique_name})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(partition.topic, b"record", partition=0)
    producer.flush(PATIENCE_S)
    assert log_offsets.ends(reader, [partition], PATIENCE_S) == {partition: 0}
    producer.abort_transaction(PATIENCE_S)


def test_what_does_not_exist_is_left_out(reader: Consumer, create_topic: Callable[..., str], unique_name: str) -> None:
    there = TopicPartition(create_topic(unique_name), 0)
    absent = [TopicPartition(there.topic, 1), TopicPartition(f"{unique_name}-other", 0)]
    assert log_offsets.ends(reader, [there, *absent], PATIENCE_S) == {there: 0}
    assert log_offsets.ends(reader, [], PATIENCE_S) == {}


def test_where_nobody_answers_is_an_error(unique_name: str) -> None:
    reader = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": unique_name, "log_level": 0})
    with pytest.raises(KafkaException):
        log_offsets.ends(reader, [TopicPartition("orders", 0)], 0.2)
    reader.close()
