"""The controller's side of the three topics.

All that a controller sends goes through transactions under one transactional id for the group. A controller that
begins thereby fences the one before: what a deposed controller still sends is refused by the broker.
"""

import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import structlog
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as Position

from domain import topics
from domain.messages import (
    ConsumerCommand,
    ConsumerReport,
    ControllerClaim,
    Decision,
    MessageError,
    WriteSpeedReport,
    decode_to_controller,
)

log = structlog.get_logger()

BEGIN_TIMEOUT_S = 60.0


class DeposedError(Exception):
    """Another controller of the group has begun: this one must not act any more."""


@dataclass(frozen=True, slots=True)
class TopicNames:
    write_speed: str = topics.WRITE_SPEED
    metadata: str = topics.METADATA
    decisions: str = topics.DECISIONS


class KafkaLink:
    """Receives what is sent to the controller and sends what it commands.

    Args:
        bootstrap_servers: of the cluster.
        group: the consumer group that is controlled.
        client_config: further settings of the clients, by librdkafka's names.
        names: of the topics, which must exist.

    Raises:
        KafkaException: the cluster does not answer.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        group: str,
        client_config: Mapping[str, str] | None = None,
        names: TopicNames | None = None,
    ) -> None:
        self._names = names or TopicNames()
        common = {**(client_config or {}), "bootstrap.servers": bootstrap_servers}
        self._producer = Producer({**common, "transactional.id": f"{group}.controller", "linger.ms": 0})
        self._consumer = Consumer(
            {
                **common,
                "group.id": f"{group}.controller",
                "enable.auto.commit": False,
                "auto.offset.reset": "latest",
                "fetch.wait.max.ms": 50,
            }
        )

    def begin(self) -> int:
        """Fences the controllers before this one and returns this one's epoch, higher than all that were.

        Raises:
            KafkaException: the cluster does not answer in time, or refuses.
            DeposedError: another controller began at the same time.
        """
        self._producer.init_transactions(BEGIN_TIMEOUT_S)
        epoch = 1 + max((self._epoch_of(value) for value in self._history()), default=0)
        claim = ControllerClaim(epoch=epoch, incarnation=uuid.uuid4().hex, sent_at=time.time())
        self._send([(self._names.metadata, topics.CONTROLLER_PARTITION, claim)])
        # Reports from before may be of processes that are gone; the newest speeds hold as long as they are fresh.
        reports = self._near_end(self._names.metadata, records=0)
        self._consumer.assign([reports, self._near_end(self._names.write_speed, records=1)])
        return epoch

    def receive(self, timeout_s: float) -> list[ConsumerReport | WriteSpeedReport]:
        """What has come since, waiting for the first of it at most so long. What is no valid message is dropped.

        Raises:
            DeposedError: another controller has begun.
        """
        received: list[ConsumerReport | WriteSpeedReport] = []
        for record in self._consumer.consume(500, timeout_s):
            if (error := record.error()) is not None:
                log.warning("kafka is not well", error=str(error))
                continue
            try:
                if record.topic() == self._names.write_speed:
                    received.append(WriteSpeedReport.decode(record.value()))
                elif isinstance(message := decode_to_controller(record.value()), ConsumerReport):
                    received.append(message)
            except MessageError as error:
                where = f"{record.topic()}-{record.partition()} at offset {record.offset()}"
                log.warning("a message was dropped", where=where, reason=str(error))
        return received

    def send(self, messages: Iterable[ConsumerCommand | Decision]) -> None:
        """Sends the messages, all or none, and returns when the brokers have them.

        Raises:
            DeposedError: another controller has begun.
            KafkaException: they could not be sent; none is visible.
        """
        names = self._names
        self._send(
            [
                (names.decisions, 0, message)
                if isinstance(message, Decision)
                else (names.metadata, message.consumer, message)
                for message in messages
            ]
        )

    def close(self) -> None:
        self._consumer.close()

    def _send(self, records: list[tuple[str, int, ConsumerCommand | ControllerClaim | Decision]]) -> None:
        if not records:
            return
        try:
            self._producer.begin_transaction()
            for topic, partition, message in records:
                self._producer.produce(topic, message.encode(), partition=partition)
            self._producer.commit_transaction()
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            if reason.code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH):
                raise DeposedError("another controller of this group has begun: this one ends") from error
            if reason.txn_requires_abort():
                self._producer.abort_transaction()
            raise

    def _history(self) -> list[bytes]:
        """All that partition 0 of the metadata topic holds now."""
        partition = Position(self._names.metadata, topics.CONTROLLER_PARTITION, OFFSET_BEGINNING)
        low, high = self._consumer.get_watermark_offsets(partition, BEGIN_TIMEOUT_S)
        self._consumer.assign([partition])
        values: list[bytes] = []
        deadline = time.monotonic() + BEGIN_TIMEOUT_S
        while low < high and time.monotonic() < deadline:
            records = self._consumer.consume(500, 0.2)
            values += [record.value() or b"" for record in records if record.error() is None]
            (position,) = self._consumer.position([partition])
            # Markers of transactions take offsets and are no records: the position passes them too.
            low = max(low, position.offset)
        if low < high:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"{partition.topic} could not be read"))
        return values

    @staticmethod
    def _epoch_of(value: bytes) -> int:
        try:
            message = decode_to_controller(value)
        except MessageError:
            return 0
        return message.epoch if isinstance(message, ControllerClaim) else message.applied_epoch

    def _near_end(self, topic: str, records: int) -> Position:
        """The position so many records before the end of the topic's partition 0."""
        low, high = self._consumer.get_watermark_offsets(Position(topic, 0), BEGIN_TIMEOUT_S)
        return Position(topic, 0, max(low, high - records))
