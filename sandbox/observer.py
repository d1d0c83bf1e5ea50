"""Reads what the components tell one another, from the beginning of their topics, and keeps the view of it.

It takes no part in the group: it has no subscription and commits nothing. A thread receives messages while it is
entered. What is no valid message is counted and left aside.
"""

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Position

from app.errors import KcgaError
from brokers import log_offsets
from brokers.clients import NO_COMMITS, PATIENCE, QUIET
from brokers.errors import in_one_line
from domain.group_view.fold import GroupFold, GroupMessage
from domain.group_view.view import GroupView
from domain.messages import ConsumerReport, Decision, MessageError, WriteSpeedReport, decode_to_controller
from domain.partitions import TopicPartition
from domain.topics import CONTROLLER_PARTITION, TopicNames
from sandbox.background import Background
from sandbox.readers import MostReaders, ReadLog, most_readers

REQUEST_TIMEOUT_S = 5.0
_RECEIVE_S = 0.2
_LOOK_FOR_TOPICS_EVERY_S = 0.5
_ASK_AGAIN_S = 0.2

log = structlog.get_logger(__name__)


class Observer(Background):
    """Watches a group from entering the context to leaving it.

    Args:
        bootstrap_servers: of the cluster.
        client_config: further settings of the clients, by librdkafka's names.
        names: of the three topics; they may be created later.
        group: messages of others are left aside; None to take all.
        since: messages sent before, in seconds since the epoch, are left aside; None to take all. Messages are aged by
            when they were sent: all of the group runs on this machine, and has its clock.
        silent_after_s: a consumer that has not been heard of for longer is taken for dead.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        client_config: Mapping[str, str] | None = None,
        names: TopicNames | None = None,
        *,
        group: str | None = None,
        since: float | None = None,
        silent_after_s: float = 15.0,
    ) -> None:
        super().__init__("watch")
        self._names = names or TopicNames()
        self._group = group
        common: dict[str, Any] = {
            "client.id": "kcga-watch",
            **PATIENCE,
            **(client_config or {}),
            "bootstrap.servers": bootstrap_servers,
            # librdkafka's own log goes past Python to standard error, into the picture; errors come by the callback.
            **QUIET,
            "error_cb": self._on_client_error,
        }
        reads = {
            **common,
            **NO_COMMITS,
            "group.id": f"kcga-watch-{uuid.uuid4().hex}",
            "isolation.level": "read_committed",
        }
        self._consumer = Consumer(
            {**reads, "enable.partition.eof": True, "auto.offset.reset": "earliest", "fetch.wait.max.ms": 100}
        )
        self._asker = Consumer(reads)
        """Asks where topics end: the other one may not answer while it reads in a thread of its own."""
        self._changed = threading.Condition()
        """Guards what follows, and tells of its changes."""
        self._fold = GroupFold(since, silent_after_s)
        self._read_log = ReadLog()
        self._next_offsets: dict[tuple[str, int], int] = {}
        """Of each partition that is read; -1 before anything is known of it."""
        self._missing = {self._names.write_speed, self._names.metadata, self._names.decisions}
        """The topics that do not exist yet."""
        self._failure: Exception | None = None
        self._complaint: str | None = None

    def snapshot(self) -> GroupView:
        """What is known now.

        Raises:
            KcgaError: the observer has broken down.
        """
        with self._changed:
            self._require_health()
            self._fold.pass_time(time.time())
            return self._fold.view()

    def most_readers(self) -> MostReaders:
        """The most readers that a partition had at one time, by all reports so far.

        Raises:
            KcgaError: the observer has broken down.
        """
        with self._changed:
            self._require_health()
            stints = self._read_log.stints
        return most_readers(stints)

    def catch_up(self, timeout_s: float) -> None:
        """Returns when everything is taken in that the topics hold at this moment.

        Raises:
            KcgaError: that is not so in time, or the observer has broken down.
        """
        deadline = time.monotonic() + timeout_s
        try:
            with self._changed:
                self._wait_until(lambda: not self._missing, deadline)
                partitions = list(self._next_offsets)
            ends = self._ends(partitions, deadline)
            with self._changed:
                self._wait_until(lambda: all(self._next_offsets[key] >= end for key, end in ends.items()), deadline)
        except (KafkaException, TimeoutError) as error:
            why = in_one_line(error) if isinstance(error, KafkaException) else "time ran out"
            raise KcgaError(
                f"not all messages of the run could be read from Kafka within {timeout_s:g} s: {why}"
            ) from error

    def _wait_until(self, condition: Callable[[], bool], deadline: float) -> None:
        arrived = self._changed.wait_for(
            lambda: self._failure is not None or condition(), max(0.0, deadline - time.monotonic())
        )
        self._require_health()
        if not arrived:
            raise TimeoutError

    def _ends(self, partitions: list[tuple[str, int]], deadline: float) -> dict[tuple[str, int], int]:
        """Up to where each partition can be read; asked again where it has no leader yet, as a new one for a moment."""
        asked = [TopicPartition(topic, partition) for topic, partition in partitions]
        while True:
            told = log_offsets.ends(self._asker, asked, max(0.1, deadline - time.monotonic()))
            if len(told) == len(asked):
                return {(partition.topic, partition.partition): end for partition, end in told.items()}
            if time.monotonic() > deadline:
                raise TimeoutError
            time.sleep(_ASK_AGAIN_S)

    def _require_health(self) -> None:
        if self._failure is not None:
            raise KcgaError(f"the group can no longer be watched: {self._failure}") from self._failure

    def _work(self) -> None:
        try:
            self._receive_messages()
        except Exception as error:
            log.exception("the observer broke down")
            with self._changed:
                self._failure = error
                self._changed.notify_all()
        finally:
            self._consumer.close()
            self._asker.close()

    def _receive_messages(self) -> None:
        looked_at = float("-inf")
        while not self._stop.is_set():
            if self._missing and time.monotonic() - looked_at >= _LOOK_FOR_TOPICS_EVERY_S:
                self._assign_existing()
                looked_at = time.monotonic()
            messages = self._consumer.consume(500, _RECEIVE_S)
            if messages:
                with self._changed:
                    for message in messages:
                        self._take(message)
                    self._changed.notify_all()

    def _assign_existing(self) -> None:
        """Begins to read those of the missing topics that exist by now."""
        try:
            topics = self._consumer.list_topics(timeout=REQUEST_TIMEOUT_S).topics
        except KafkaException as error:
            self._complain(f"no broker answers: {in_one_line(error)}")
            return
        existing = {topic for topic in self._missing if topic in topics and topics[topic].partitions}
        positions = [
            Position(topic, partition, OFFSET_BEGINNING)
            for topic in sorted(existing)
            for partition in sorted(topics[topic].partitions)
            if topic != self._names.metadata or partition == CONTROLLER_PARTITION
        ]
        if positions:
            self._consumer.incremental_assign(positions)
            with self._changed:
                self._next_offsets.update({(position.topic, position.partition): -1 for position in positions})
                self._missing -= existing
                self._changed.notify_all()

    def _take(self, record: Message) -> None:
        error = record.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            self._complain(error.str())
            return
        topic, partition, offset = record.topic() or "", record.partition() or 0, record.offset() or 0
        if error is not None:
            # The end of the partition: markers of transactions, which are no records, may lie before it.
            self._next_offsets[topic, partition] = offset
            return
        self._next_offsets[topic, partition] = offset + 1
        try:
            message = self._decode(record)
        except MessageError as fault:
            self._fold.reject()
            log.warning("a message was left aside", where=f"{topic}-{partition}@{offset}", reason=str(fault))
            return
        if self._group is not None and not message.is_of(self._group):
            return
        if self._fold.receive(message) and isinstance(message, ConsumerReport):
            self._read_log.add(message)

    def _decode(self, record: Message) -> GroupMessage:
        topic = record.topic()
        if topic == self._names.write_speed:
            return WriteSpeedReport.decode(record.value())
        if topic == self._names.decisions:
            return Decision.decode(record.value())
        return decode_to_controller(record.value())

    def _on_client_error(self, error: KafkaError) -> None:
        self._complain(error.str())

    def _complain(self, reason: str) -> None:
        """Once for each reason in a row: a broker that is away would fill the screen otherwise."""
        if reason != self._complaint:
            self._complaint = reason
            log.warning("a kafka client reports an error", reason=reason)
