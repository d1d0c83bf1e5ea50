"""What a consumer says and is told on the metadata topic."""

import pytest
from confluent_kafka import Producer
from structlog.testing import capture_logs

from consumer.channel import CommandReader, Reporter
from consumer.kafka import common_config, reading_config
from domain.messages import Action, ConsumerCommand, ConsumerReport, ConsumerState
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


def test_reports_that_do_not_arrive_before_the_end_are_told_in_a_line() -> None:
    reporter = Reporter(common_config("127.0.0.1:1", CONSUMER, {}), "consumer.metadata")
    for sequence in range(5):
        reporter.send(
            ConsumerReport(
                consumer=CONSUMER,
                incarnation="a",
                sequence=sequence,
                sent_at=1.0,
                state=ConsumerState.READY,
                applied_epoch=1,
            )
        )
    with capture_logs() as lines:
        reporter.close(0.2)
    assert [line["reports"] for line in lines if line["event"] != "a kafka client reports an error"] == [5]
