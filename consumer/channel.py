"""A consumer's side of `consumer.metadata`: receives its commands, sends its reports."""

import time
from collections.abc import Mapping

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Position

from brokers.clients import LARGE_MESSAGES, REQUEST_LIMIT_S
from brokers.errors import FatalKafkaError
from brokers.reading import EACH_AS_IT_COMES
from domain.assignment import ConsumerId
from domain.messages import ConsumerCommand, ConsumerReport, MessageError
from domain.printable import printable
from domain.topics import CONTROLLER_PARTITION

MOST_COMMANDS = 1_000
"""Taken in at one look; more are there at the next."""
PURGED = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})
"""What becomes of reports that are given up at the end."""

log = structlog.get_logger(__name__)


class CommandReader:
    """The commands on partition N of the metadata topic, from the moment of `begin()`.

    Args:
        config: of the client, from `consumer.kafka.reading_config`.
        topic: the metadata topic.
        consumer: N.
        group: commands of others are left aside.
    """

    def __init__(self, config: Mapping[str, object], topic: str, consumer: ConsumerId, group: str) -> None:
        # Where the topic was made anew, old commands count for nothing, and none must be passed over.
        self._consumer = Consumer({**config, **EACH_AS_IT_COMES, "auto.offset.reset": "earliest"})
        self._topic = topic
        self._partition = consumer
        self._group = group
        self._has_told = False
        """That another group has the same topics."""
        self.taken_to = 0
        """The offset behind the commands taken."""

    def begin(self) -> None:
        """Takes its place at the end of the partition: what was sent before is meant for an earlier process.

        Raises:
            KafkaException: the partition does not exist, or no broker answers.
        """
        at = Position(self._topic, self._partition)
        _, self.taken_to = self._consumer.get_watermark_offsets(at, timeout=REQUEST_LIMIT_S)
        self._consumer.assign([Position(self._topic, self._partition, self.taken_to)])

    def take(self) -> tuple[ConsumerCommand, ...]:
        """The commands that have arrived, in the order they came in; it does not wait."""
        received = (self._command(message) for message in self._consumer.consume(MOST_COMMANDS, 0))
        return tuple(command for command in received if command is not None)

    def close(self) -> None:
        self._consumer.close()

    def _command(self, message: Message) -> ConsumerCommand | None:
        """The command that it is, if it is one for this group."""
        error = message.error()
        if error is not None:
            if error.fatal():
                raise FatalKafkaError(error.str())
            log.warning("commands cannot be read", error=error.str())
            return None
        self.taken_to = (message.offset() or 0) + 1
        try:
            command = ConsumerCommand.decode(message.value())
        except MessageError as fault:
            log.warning("a command was left aside", offset=message.offset(), reason=str(fault))
            return None
        if command.is_of(self._group):
            return command
        if not self._has_told:
            self._has_told = True
            log.warning(
                "another group has the same topics: its commands are left aside", group=printable(command.group or "")
            )
        return None


class Reporter:
    """Sends reports to the controller, and knows which have arrived. One that does not is made up for by the next, but
    for its cycle.

    Args:
        config: of the client, from `consumer.kafka.reporting_config`.
        topic: the metadata topic.
    """

    def __init__(self, config: Mapping[str, object], topic: str) -> None:
        own = {**LARGE_MESSAGES, "linger.ms": 0}
        self._producer = Producer({**own, **config, "enable.idempotence": True})
        self._topic = topic
        self._arrived_sent_at: float | None = None

    def send(self, report: ConsumerReport) -> None:
        """Hands the report to the client, which sends it in the background, in order."""
        sent_at = time.monotonic()

        def take_delivery(error: KafkaError | None, _: Message) -> None:
            if error is None:
                self._arrived_sent_at = sent_at
            elif error.code() not in PURGED:
                log.warning("a report did not arrive", reason=error.str())

        try:
            self._producer.produce(
                self._topic, report.encode(), partition=CONTROLLER_PARTITION, on_delivery=take_delivery
            )
        except (BufferError, KafkaException) as error:
            log.warning("a report was not sent", reason=str(error))

    def newest_arrived(self) -> float | None:
        """When the newest report was sent that the brokers have acknowledged, on the monotonic clock."""
        self._producer.poll(0)
        return self._arrived_sent_at

    def close(self, wait_s: float) -> None:
        """Waits so long, at most, for what was sent to arrive."""
        if left := self._producer.flush(wait_s):
            log.warning("reports did not arrive", reports=left)
        self._producer.purge()
        self._producer.close()
