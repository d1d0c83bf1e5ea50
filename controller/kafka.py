"""The controller's side of the three topics.

All that a controller sends goes through transactions under one transactional id for the group. A controller that
begins thereby fences the one before: what a deposed controller still sends is refused by the broker.
"""

import time
import uuid
from collections.abc import Callable, Iterable, Mapping

import structlog
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Position

from controller.commands import Claim
from controller.history import Beginning, beginning
from domain import topics
from domain.messages import (
    ConsumerCommand,
    ConsumerReport,
    ControllerClaim,
    ControlRequest,
    Decision,
    MessageError,
    MessageToController,
    WriteSpeedReport,
    decode_to_controller,
)

log = structlog.get_logger()

PATIENCE = {"socket.timeout.ms": 10_000, "topic.metadata.refresh.interval.ms": 10_000}
"""For a broker that hangs: with the clients' defaults it would hold everything up for a minute."""
BEGIN_TIMEOUT_S = 60.0
RETRY_S = 0.2
SEND_TIMEOUT_S = 5.0
"""What brokers do not take in so long is tried again later: meanwhile the controller hears what there is to hear."""
NEW_LEADER = frozenset({KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE})
"""What brokers say while another of them comes to lead a partition."""
LARGE_RECORDS = {"message.max.bytes": 50_000_000, "compression.type": "lz4"}
"""A decision names every partition, so it can be larger than what clients send unless told otherwise; brokers judge it
by its compressed size, about a tenth."""
LONG_TRANSACTIONS = {"transaction.timeout.ms": 300_000}
"""Brokers take whoever exceeds it for gone, and fence it. On slow brokers a plan for a thousand consumers, each with a
partition of its own, can exceed the default of a minute; nobody waits for it, as the next controller fences first."""


Received = ConsumerReport | ControlRequest | ControllerClaim | WriteSpeedReport


class DeposedError(Exception):
    """Another controller of the group has begun: this one must not act any more."""


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
        names: topics.TopicNames | None = None,
    ) -> None:
        self._names = names or topics.TopicNames()
        self._incarnation = uuid.uuid4().hex
        self._epoch = 0
        self._received_from: list[Position] = []
        self._unfinished: Callable[[float], None] | None = None
        """The end of a transaction that was begun."""
        common = {**PATIENCE, **(client_config or {}), "bootstrap.servers": bootstrap_servers}
        self._producer = Producer(
            {**LARGE_RECORDS, **LONG_TRANSACTIONS, **common, "transactional.id": f"{group}.controller", "linger.ms": 0}
        )
        self._consumer = Consumer(
            {
                **common,
                "group.id": f"{group}.controller",
                "enable.auto.commit": False,
                "auto.offset.reset": "latest",
                "fetch.wait.max.ms": 50,
            }
        )

    def begin(self) -> Beginning:
        """Fences the controllers before this one, and claims an epoch that is higher than all that were.

        Raises:
            KafkaException: the cluster does not answer in time, or refuses.
            DeposedError: another controller began at the same time.
        """
        self._producer.init_transactions(BEGIN_TIMEOUT_S)
        history, end = self._history()
        begun = beginning(history)
        self._epoch = begun.epoch
        self.claim(Claim(0, begun.paused, begun.unsealed, begun.settled))
        # Reports from before may be of processes that are gone; the newest speeds hold as long as they are fresh. What
        # has come since the history was read counts: an operator's request may be among it.
        reports = Position(self._names.metadata, topics.CONTROLLER_PARTITION, end)
        self._received_from = [reports, self._near_end(self._names.write_speed, records=1)]
        self._consumer.assign(self._received_from)
        return begun

    def claim(self, claim: Claim) -> None:
        """Says who acts, and what the next controller has to know.

        Raises:
            DeposedError: another controller has begun.
            KafkaException: it could not be sent.
        """
        message = ControllerClaim(
            epoch=self._epoch,
            incarnation=self._incarnation,
            sequence=claim.sequence,
            sent_at=time.time(),
            paused=claim.paused,
            unsealed=claim.unsealed,
            settled=claim.settled,
            creation_limit=claim.creation_limit,
        )
        self._send([(self._names.metadata, topics.CONTROLLER_PARTITION, message)])

    def decided_since(self, moment: float) -> list[Decision]:
        """The decisions of all controllers since then (s since the epoch), in their order.

        To be asked between `begin` and the first `receive`.

        Raises:
            KafkaException: the cluster does not answer in time.
        """
        asked = Position(self._names.decisions, 0, int(moment * 1000))
        (start,) = self._consumer.offsets_for_times([asked], BEGIN_TIMEOUT_S)
        records, _ = self._records(start) if start.offset >= 0 else ([], 0)  # below 0: none is so young
        self._consumer.assign(self._received_from)
        decisions = []
        for record in records:
            try:
                decisions.append(Decision.decode(record.value()))
            except MessageError as error:
                log.warning("a decision was dropped", offset=record.offset(), reason=str(error))
        return decisions

    def receive(self, timeout_s: float) -> list[Received]:
        """What has come since, waiting for the first of it at most so long: of claims, this controller's own.

        What is no valid message is dropped.

        Raises:
            DeposedError: another controller has begun.
        """
        received: list[Received] = []
        for record in self._consumer.consume(500, timeout_s):
            if (error := record.error()) is not None:
                log.warning("kafka is not well", error=str(error))
                continue
            try:
                if record.topic() == self._names.write_speed:
                    received.append(WriteSpeedReport.decode(record.value()))
                    continue
                message = decode_to_controller(record.value())
                if not isinstance(message, ControllerClaim) or message.incarnation == self._incarnation:
                    received.append(message)
            except MessageError as error:
                where = f"{record.topic()}-{record.partition()} at offset {record.offset()}"
                log.warning("a message was dropped", where=where, reason=str(error))
        return received

    def send(self, messages: Iterable[ConsumerCommand | Decision]) -> None:
        """Sends the messages, all or none, and returns when the brokers have them.

        Raises:
            DeposedError: another controller has begun.
            KafkaException: they are not known to have been sent; they are all visible later, or none is.
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
            self._finish()
            self._producer.begin_transaction()
            self._unfinished = self._producer.abort_transaction
            for topic, partition, message in records:
                self._producer.produce(topic, message.encode(), partition=partition)
            self._unfinished = self._producer.commit_transaction
            self._finish()
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            if reason.code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH):
                raise DeposedError("another controller has begun, or the brokers gave this one up: it ends") from error
            raise

    def _finish(self) -> None:
        """Ends the transaction that was begun, if there is one: the client takes no new one before."""
        if self._unfinished is None:
            return
        try:
            self._unfinished(SEND_TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].txn_requires_abort():
                self._unfinished = self._producer.abort_transaction
            raise
        self._unfinished = None

    def _history(self) -> tuple[list[MessageToController], int]:
        """All messages that partition 0 of the metadata topic holds now, in their order, and the offset of its end."""
        beginning = Position(self._names.metadata, topics.CONTROLLER_PARTITION, OFFSET_BEGINNING)
        records, end = self._records(beginning)
        return [message for record in records if (message := _decoded(record)) is not None], end

    def _records(self, start: Position) -> tuple[list[Message], int]:
        """All that a partition holds now from there on, in its order, and the offset of its end."""
        low, end = self._bounds(start)
        self._consumer.assign([start])
        records: list[Message] = []
        low = max(low, start.offset)
        deadline = time.monotonic() + BEGIN_TIMEOUT_S
        while low < end and time.monotonic() < deadline:
            records += self._consumer.consume(500, 0.2)
            (position,) = self._consumer.position([start])
            # Markers of transactions take offsets and are no records: the position passes them too.
            low = max(low, position.offset)
        if low < end:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"{start.topic} could not be read"))
        return [record for record in records if record.error() is None], end

    def _near_end(self, topic: str, records: int) -> Position:
        """The position so many records before the end of the topic's partition 0."""
        low, end = self._bounds(Position(topic, 0))
        return Position(topic, 0, max(low, end - records))

    def _bounds(self, partition: Position) -> tuple[int, int]:
        """The offsets of the first record and of the end; a partition that gets a new leader is waited for."""
        deadline = time.monotonic() + BEGIN_TIMEOUT_S
        while True:
            try:
                return self._consumer.get_watermark_offsets(partition, BEGIN_TIMEOUT_S)
            except KafkaException as error:
                if error.args[0].code() not in NEW_LEADER or time.monotonic() > deadline:
                    raise
                time.sleep(RETRY_S)


def _decoded(record: Message) -> MessageToController | None:
    """What is in a record, where it is anything."""
    try:
        return decode_to_controller(record.value())
    except MessageError:
        return None
