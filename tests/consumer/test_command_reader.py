"""Commands on a consumer's partition of the metadata topic, on a real broker."""

import pytest
from confluent_kafka import Producer

from consumer.channel import CommandReader
from consumer.kafka import common_config, reading_config
from domain.messages import Action, ConsumerCommand
from tests.conftest import CreateTopic
from tests.patience import wait_until
from tests.services import SharedBroker

CONSUMER = 2
COMMAND = ConsumerCommand(
    consumer=CONSUMER, incarnation="a", epoch=1, plan=1, sequence=1, action=Action.STOP, partitions=()
)


@pytest.mark.timeout(240)
def test_commands_come_at_once_also_where_data_may_wait(
    broker: SharedBroker, create_topic: CreateTopic, unique_name: str
) -> None:
    """By `kafka.client` brokers wait for a megabyte, or longer than the test may take."""
    topic = create_topic(unique_name, partitions=CONSUMER + 1)
    of_data = {"fetch.min.bytes": "1000000", "fetch.wait.max.ms": "250000", "socket.timeout.ms": "300000"}
    common = common_config(broker.bootstrap_servers, CONSUMER, of_data)
    reader = CommandReader(reading_config(common, unique_name), topic, CONSUMER, unique_name)
    reader.begin()
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    taken: list[ConsumerCommand] = []

    def has_come() -> bool:
        taken.extend(reader.take())
        return bool(taken)

    producer.produce(topic, COMMAND.encode(), partition=CONSUMER)
    producer.flush()
    wait_until(has_come)
    assert taken == [COMMAND]
    reader.close()
