"""The controller's side of the three topics.

All that a controller sends goes through transactions under one transactional id for the group. A controller that
begins thereby fences the one before: what a deposed controller still sends is refused by the broker.
"""

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import structlog
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Position

from brokers.clients import LARGE_MESSAGES, NO_COMMITS, PATIENCE, QUIET
from brokers.clocks import ahead_s
from brokers.errors import log_error
from brokers.reading import EACH_AS_IT_COMES, SOON_AT_THE_END, bounds, records
from brokers.transactions import LONG_TRANSACTIONS, Transactions, is_fenced
from controller.decide.commands import Claim
from controller.decide.history import Beginning, beginning, can_be_followed, claiming
from domain import topics
from domain.messages import (
    Asked,
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
from domain.printable import printable
from domain.speeds import WriteSpeeds

log = structlog.get_logger()

BEGIN_TIMEOUT_S = 60.0
LOOK_BACK = 100
"""The newest claim is looked for among so many offsets at first, from the end of the partition back; among ten times as
many each further time. It is there every two seconds while a controller acts."""
MOST_LOOK_BACK = 1_000_000
CLAIM_MARK = b"claim"
"""Is in every claim: what is without it need not be decoded to know that it is none."""
SMALL_QUEUE = {"queued.max.messages.kbytes": 16_384}
"""For all that is read at the beginning: without it the client takes up to 64 MB ahead."""
MOST_TOLD = 10
"""Of so many other groups on the same topics it is told."""
SEND_TIMEOUT_S = 5.0
"""What brokers do not take in so long is tried again later: meanwhile the controller hears what there is to hear."""


Received = ConsumerReport | ControlRequest | ControllerClaim | WriteSpeedReport
Sent = ConsumerCommand | ControllerClaim | Decision


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
        self._messages = Position(self._names.metadata, topics.CONTROLLER_PARTITION)
        self._group = group
        self._others: set[str | None] = set()
        """The other groups that messages were of."""
        self._incarnation = uuid.uuid4().hex
        self._epoch = 0
        common = {
            **PATIENCE,
            **QUIET,
            **(client_config or {}),
            "bootstrap.servers": bootstrap_servers,
            "error_cb": log_error,
        }
        self._producer = Producer(
            {**LARGE_MESSAGES, **LONG_TRANSACTIONS, **common, "transactional.id": f"{group}.controller", "linger.ms": 0}
        )
        self._transactions = Transactions(self._producer, BEGIN_TIMEOUT_S)
        """Until it has begun, with as much patience as all of the beginning."""
        self._reading = {
            **SMALL_QUEUE,
            **common,
            **EACH_AS_IT_COMES,
            **NO_COMMITS,
            "group.id": f"{group}.controller",
            "auto.offset.reset": "latest",
        }
        self._consumer = Consumer(self._reading)
        """Of what comes once it has begun."""
        self._brokers_ahead_s = 0.0
        """Their clock, of the one here; 0 where records have the times of their senders."""
        self._heard_to = self._speeds_heard_to = 0
        """The offset before which everything has been handed on: of partition 0, and of the speeds."""

    def begin(self) -> Beginning:
        """Fences the controllers before this one, and claims an epoch that is higher than all that were.

        Raises:
            KafkaException: the cluster does not answer in time, or refuses.
            DeposedError: another controller began at the same time.
        """
        self._producer.init_transactions(BEGIN_TIMEOUT_S)
        with self._past() as past:
            low, end = bounds(past, self._messages, BEGIN_TIMEOUT_S)
            claim, start = self._newest_claim(past, low, end)
            begun = beginning(self._said(past, start, end), claim)
            self._epoch, self._heard_to = begun.epoch, end
            speeds, self._speeds_heard_to = self._last_speeds(past)
        now = time.time()
        self.send([self.claim(begun.claim(now), now)])
        self._transactions = Transactions(self._producer, SEND_TIMEOUT_S)
        # Reports from before may be of processes that are gone, and speeds of any age. What has come since the history
        # was read counts: an operator's request may be among it.
        reports = Position(self._names.metadata, topics.CONTROLLER_PARTITION, end)
        self._consumer.assign([reports, Position(self._names.write_speed, 0, self._speeds_heard_to)])
        return replace(begun, speeds=speeds)

    def has_been_claimed(self) -> bool:
        """Whether a controller of this group has claimed it on these topics, as far as they still tell.

        Raises:
            KafkaException: the cluster does not answer in time, or refuses.
        """
        with self._past() as past:
            return self._newest(past, *bounds(past, self._messages, BEGIN_TIMEOUT_S)) is not None

    def has_been_used(self) -> bool:
        """Whether anything was said to a controller of this group on these topics, as far as they still tell.

        Raises:
            KafkaException: the cluster does not answer in time, or refuses.
        """
        with self._past() as past:
            low, end = bounds(past, self._messages, BEGIN_TIMEOUT_S)
            said = map(_decoded, _records(past, self._messages, low, end))
            return any(message is not None and message.is_of(self._group) for message in said)

    def claim(self, claim: Claim, at: float) -> ControllerClaim:
        """The claim of `at` as a message to be sent, then or later: all that was received until now has to be in it."""
        return claiming(claim, self._epoch, self._incarnation, at, self._heard_to, self._speeds_heard_to)

    def heard(self, at: float) -> Asked:
        """What a question that is put at `at` rests on: all that was received until now has to be in it."""
        return Asked(at=at, heard_to=self._heard_to, speeds_heard_to=self._speeds_heard_to)

    def decided_since(self, moment: float) -> list[Decision]:
        """The decisions of all controllers since then (s since the epoch), in their order.

        Their `decided_at` is when they came, by the clock here: that of the controller that made them may be another.

        Raises:
            KafkaException: the cluster does not answer in time.
        """
        asked = Position(self._names.decisions, 0, int((moment + self._brokers_ahead_s) * 1000))
        decisions = []
        with self._past() as past:
            (start,) = past.offsets_for_times([asked], BEGIN_TIMEOUT_S)
            if start.offset < 0:  # none is so young
                return []
            low, end = bounds(past, start, BEGIN_TIMEOUT_S)
            for record in _records(past, start, max(low, start.offset), end):
                try:
                    decision = Decision.decode(record.value())
                    if decision.is_of(self._group):
                        came_at = record.timestamp()[1] / 1000 - self._brokers_ahead_s
                        decisions.append(decision.model_copy(update={"decided_at": came_at}))
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
                log.warning("a kafka client reports an error", error=str(error))
                continue
            try:
                if record.topic() == self._names.write_speed:
                    self._speeds_heard_to = (record.offset() or 0) + 1
                    speeds = WriteSpeedReport.decode(record.value())
                    if self._is_own(speeds):
                        received.append(speeds)
                    continue
                self._heard_to = (record.offset() or 0) + 1
                message = decode_to_controller(record.value())
                if not self._is_own(message):
                    continue
                if not isinstance(message, ControllerClaim) or message.incarnation == self._incarnation:
                    received.append(message)
            except MessageError as error:
                where = f"{record.topic()}-{record.partition()} at offset {record.offset()}"
                log.warning("a message was dropped", where=where, reason=str(error))
        return received

    def send(self, messages: Sequence[Sent]) -> None:
        """Sends the messages, all or none, and returns when the brokers have them.

        Raises:
            DeposedError: another controller has begun.
            KafkaException: they are not known to have been sent; they are all visible later, or none is.
        """
        if not messages:
            return
        try:
            with self._transactions.one():
                for message in messages:
                    self._produce(message)
        except KafkaException as error:
            if is_fenced(error):
                raise DeposedError("another controller has begun, or the brokers gave this one up: it ends") from error
            raise

    def _produce(self, message: Sent) -> None:
        topic = self._names.decisions if isinstance(message, Decision) else self._names.metadata
        partition = message.consumer if isinstance(message, ConsumerCommand) else topics.CONTROLLER_PARTITION
        own = message.model_copy(update={"group": self._group})
        told = partial(self._compare_clocks, time.time()) if isinstance(message, ControllerClaim) else None
        self._producer.produce(topic, own.encode(), partition=partition, on_delivery=told)

    def _compare_clocks(self, produced_at: float, error: KafkaError | None, record: Message) -> None:
        """A claim of then has been taken in, at some moment since."""
        kind, timestamp_ms = record.timestamp()
        if error is None and kind == TIMESTAMP_LOG_APPEND_TIME:
            self._brokers_ahead_s = ahead_s(timestamp_ms / 1000, since=produced_at, until=time.time())

    def close(self) -> None:
        self._consumer.close()

    @contextmanager
    def _past(self) -> Iterator[Consumer]:
        """Reads what has been said already."""
        reader = Consumer({**self._reading, **SOON_AT_THE_END})
        try:
            yield reader
        finally:
            reader.close()

    def _newest_claim(self, past: Consumer, low: int, end: int) -> tuple[ControllerClaim | None, int]:
        """The newest claim on partition 0 of the metadata topic, and from where on what it does not say is to be read.

        Where it does not tell up to where its controller had heard, or there is none: none, and from the first record.
        """
        match self._newest(past, low, end):
            case claim, offset if claim.heard_to is not None:
                return claim, max(low, min(claim.heard_to, offset))
            case _:
                return None, low

    def _newest(self, past: Consumer, low: int, end: int) -> tuple[ControllerClaim, int] | None:
        """The newest claim of this group on partition 0 of the metadata topic that can be followed, and its offset."""
        high, size = end, LOOK_BACK
        while low < high:
            start = max(low, high - size)
            newest: tuple[ControllerClaim, int] | None = None
            for record in _records(past, self._messages, start, high):
                message = _decoded(record) if CLAIM_MARK in (record.value() or b"") else None
                if not isinstance(message, ControllerClaim) or not message.is_of(self._group):
                    continue
                if can_be_followed(message):
                    newest = message, record.offset() or 0
                else:
                    log.warning("a claim is not followed", reason="its epoch leaves none higher", epoch=message.epoch)
            if newest is not None:
                return newest
            high, size = start, min(10 * size, MOST_LOOK_BACK)
        return None

    def _said(self, past: Consumer, start: int, end: int) -> Iterator[MessageToController]:
        """The messages of partition 0 of the metadata topic at these offsets, the last one excluded, in their order."""
        for record in _records(past, self._messages, start, end):
            if (message := _decoded(record)) is not None and self._is_own(message):
                yield message

    def _is_own(self, message: Received) -> bool:
        """Whether it is of this group; of each other group that is told once."""
        if message.is_of(self._group):
            return True
        if message.group not in self._others and len(self._others) < MOST_TOLD:
            self._others.add(message.group)
            log.warning(
                "another group has the same topics: its messages are left aside",
                group=printable(message.group or ""),
                kind=message.kind,
                hint="give each group topics of its own ([topics])",
            )
        return False

    def _last_speeds(self, past: Consumer) -> tuple[WriteSpeeds | None, int]:
        """What the monitor told last, and the offset after it."""
        partition = Position(self._names.write_speed, 0)
        low, end = bounds(past, partition, BEGIN_TIMEOUT_S)
        speeds = None
        for record in _records(past, partition, max(low, end - 1), end):
            try:
                report = WriteSpeedReport.decode(record.value())
                speeds = report.speeds if self._is_own(report) else None
            except MessageError as error:
                log.warning("speeds were dropped", offset=record.offset(), reason=str(error))
        return speeds, end


def _records(past: Consumer, partition: Position, start: int, end: int) -> Iterator[Message]:
    """The records of a partition at these offsets, the last one excluded, in their order."""
    return records(past, Position(partition.topic, partition.partition, start), end, BEGIN_TIMEOUT_S)


def _decoded(record: Message) -> MessageToController | None:
    """What is in a record, where it is anything."""
    try:
        return decode_to_controller(record.value())
    except MessageError:
        return None
