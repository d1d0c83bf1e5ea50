"""The metadata topic is deleted and made anew while the controller and a consumer run, on a real broker."""

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from app.topics import Cluster
from consumer.channel import CommandReader, Reporter
from consumer.kafka import common_config, reading_config
from controller.decide.commands import Claim
from controller.kafka import KafkaLink, Received
from domain.messages import Action, ConsumerCommand, ConsumerReport, ConsumerState, ControllerClaim
from domain.topics import TopicNames
from tests.patience import PATIENCE_S, wait_until
from tests.services import SharedBroker

CONSUMER = 2


def command(sequence: int) -> ConsumerCommand:
    return ConsumerCommand(
        consumer=CONSUMER,
        incarnation="a",
        epoch=1,
        plan=1,
        sequence=sequence,
        action=Action.STOP,
        partitions=(),
    )


def report(sequence: int) -> ConsumerReport:
    return ConsumerReport(
        consumer=CONSUMER, incarnation="a", sequence=sequence, sent_at=1.0, state=ConsumerState.READY, applied_epoch=1
    )


@pytest.mark.slow(20)
def test_controller_and_consumers_go_on_with_a_metadata_topic_that_is_made_anew(
    broker: SharedBroker, admin: AdminClient, unique_name: str
) -> None:
    """Among the holes that were not confirmed: `consumer.metadata` made anew under a running controller."""
    names = TopicNames(f"{unique_name}.speed", f"{unique_name}.metadata", f"{unique_name}.decisions")
    cluster = Cluster(broker.bootstrap_servers)
    cluster.ensure_internal_topics(names, highest_consumer=3)
    link = KafkaLink(broker.bootstrap_servers, unique_name, {}, names)
    common = common_config(broker.bootstrap_servers, CONSUMER, {})
    reader = CommandReader(reading_config(common, unique_name), names.metadata, CONSUMER, unique_name)
    reporter = Reporter(common, names.metadata)
    sent, heard, taken = 0, list[Received](), list[ConsumerCommand]()

    def talk() -> None:
        nonlocal sent
        sent += 1
        reporter.send(report(sent))
        reporter.newest_arrived()
        try:
            link.send([link.claim(Claim(sent, paused=False, unsealed={}, settled=()), 1.0), command(sent)])
        except KafkaException as refused:
            if refused.args[0].fatal():
                raise
        heard.extend(link.receive(0.1))
        taken.extend(reader.take())

    def newest_heard(kind: type[ConsumerReport] | type[ControllerClaim]) -> int:
        return max((message.sequence for message in heard if isinstance(message, kind)), default=0)

    def all_hear_what_is_said_after(sequence: int) -> bool:
        talk()
        newest_taken = max((each.sequence for each in taken), default=0)
        return min(newest_heard(ConsumerReport), newest_heard(ControllerClaim), newest_taken) > sequence

    try:
        link.begin()
        reader.begin()
        wait_until(lambda: all_hear_what_is_said_after(20))  # their places are beyond the end of what comes
        admin.delete_topics([names.metadata])[names.metadata].result(PATIENCE_S)
        wait_until(lambda: names.metadata not in cluster.partitions())
        cluster.ensure_internal_topics(names, highest_consumer=3)
        made_anew = sent
        wait_until(lambda: all_hear_what_is_said_after(made_anew))
    finally:
        reporter.close(0)
        reader.close()
        link.close()
