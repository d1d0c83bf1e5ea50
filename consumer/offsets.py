"""The group's commits: how far each partition is written, and who claims it.

A commit is a transaction of a producer that bears the writer's name, by which others can fence it.
"""

from collections.abc import Iterable, Mapping

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as Position

from brokers import log_offsets
from brokers.clients import REQUEST_LIMIT_S
from brokers.transactions import LONG_TRANSACTIONS, Transactions, telling_what_is_fatal
from consumer.decide.claims import Committed
from consumer.kafka import client_position
from domain.partitions import OffsetRange, TopicPartition

COMMIT_LIMIT_S = 5.0
"""What the brokers refuse for the moment the client tries again within a commit, for so long."""
DELETED_AFTER_REFUSALS = 2
"""A partition that the brokers have called unknown at so many commits in a row is taken for deleted."""

log = structlog.get_logger(__name__)


class GroupOffsets:
    """The commits of one group, under the name of one writer.

    Only one thread may commit; everything else is safe from any.

    Args:
        common: of the clients, from `consumer.kafka.common_config`.
        reading: of the clients, from `consumer.kafka.reading_config`.
        group: the consumer group.
        writer: `consumer/incarnation`.
    """

    def __init__(self, common: Mapping[str, object], reading: Mapping[str, object], group: str, writer: str) -> None:
        self._common = common
        self._group = group
        self._reader = Consumer({**reading})
        self._producer = self._producer_of(writer)
        self._transactions = Transactions(self._producer, COMMIT_LIMIT_S)
        self._fenced: set[str] = set()
        """The writers that are known to be fenced, as they are for ever: nobody opens under their names again."""
        self._refusals: dict[TopicPartition, int] = {}

    def open(self) -> None:
        """Registers the writer with the brokers: only from then on can it be fenced, so it must come before its first
        report.

        Raises:
            KafkaException: no broker answers, or it refuses.
            FatalKafkaError: the client can do nothing more.
        """
        with telling_what_is_fatal():
            self._producer.init_transactions(REQUEST_LIMIT_S)

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Committed | None]:
        """What is committed of each; none where nothing is. Waits for transactions that are under way.

        Raises:
            KafkaException: that cannot be told for one of them.
        """
        asked = [Position(partition.topic, partition.partition) for partition in partitions]
        answer = self._reader.committed(asked, timeout=REQUEST_LIMIT_S) if asked else []
        committed: dict[TopicPartition, Committed | None] = {}
        for position in answer:
            if position.error is not None:
                raise KafkaException(position.error)
            partition = TopicPartition(position.topic, position.partition)
            known, note = position.offset >= 0, position.metadata or ""
            committed[partition] = Committed(position.offset, note, position.leader_epoch) if known else None
        return committed

    def ranges(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetRange]:
        """What can be read of each partition at the moment; those that nobody tells of are left out.

        Raises:
            KafkaException: no broker answers.
        """
        return log_offsets.ranges(self._reader, partitions, REQUEST_LIMIT_S)

    def fence(self, writer: str) -> None:
        """From now on nothing that `writer` commits takes effect.

        Raises:
            KafkaException: no broker answers, or it refuses.
        """
        if writer not in self._fenced:
            self._producer_of(writer).init_transactions(REQUEST_LIMIT_S)
            self._fenced.add(writer)
            log.info("a writer was fenced", writer=writer)

    def commit(self, positions: Mapping[TopicPartition, Committed]) -> None:
        """Commits all of them or none, and returns when the brokers have them.

        Of a partition that was deleted meanwhile there is nothing to commit.

        Raises:
            KafkaException: they are not known to have them; the same call again settles it.
            FencedError: another consumer has taken over.
            FatalKafkaError: the client can do nothing more.
        """
        deleted = {partition for partition, refusals in self._refusals.items() if refusals >= DELETED_AFTER_REFUSALS}
        for partition in sorted(deleted & positions.keys()):
            log.warning(
                "a deleted partition was not committed", partition=str(partition), offset=positions[partition].offset
            )
        left = {partition: position for partition, position in positions.items() if partition not in deleted}
        if left:
            try:
                self._commit(left)
            except KafkaException as exception:
                if exception.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    self._count_unknown(left)
                raise
        for partition in positions:
            self._refusals.pop(partition, None)

    def close(self) -> None:
        self._reader.close()

    def _producer_of(self, writer: str) -> Producer:
        return Producer({**LONG_TRANSACTIONS, **self._common, "transactional.id": f"{self._group}/{writer}"})

    def _commit(self, positions: Mapping[TopicPartition, Committed]) -> None:
        offsets = [
            client_position(partition, position.reached, position.note) for partition, position in positions.items()
        ]
        with telling_what_is_fatal():
            self._transactions.commit_offsets(offsets, self._reader.consumer_group_metadata())

    def _count_unknown(self, positions: Iterable[TopicPartition]) -> None:
        """Takes note of which of them the brokers' metadata does not have: a refused commit does not name them."""
        topics = {
            topic: self._reader.list_topics(topic, timeout=REQUEST_LIMIT_S).topics[topic].partitions
            for topic in {partition.topic for partition in positions}
        }
        for partition in positions:
            if partition.partition not in topics[partition.topic]:
                self._refusals[partition] = self._refusals.get(partition, 0) + 1
