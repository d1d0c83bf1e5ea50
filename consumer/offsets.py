"""The group's commits: how far each partition is written, and who claims it.

A commit is a transaction of a producer that bears the writer's name. Whoever initialises a producer of the same name
fences the first: of what that one commits afterwards, nothing takes effect, and it learns that it was fenced.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as Position

from consumer import log_offsets
from consumer.claims import Committed
from consumer.kafka import REQUEST_LIMIT_S, FatalKafkaError
from consumer.out_of_range import OffsetRange
from domain.partitions import TopicPartition

COMMIT_LIMIT_S = 5.0
"""What the brokers refuse for the moment the client tries again within a commit, for so long."""
DELETED_AFTER_REFUSALS = 2
"""A partition that the brokers have called unknown at so many commits in a row is taken for deleted."""

_FORGOTTEN = (KafkaError.INVALID_PRODUCER_ID_MAPPING, KafkaError.UNKNOWN_PRODUCER_ID)
"""The transactional id was not used for so long that the brokers know it no more. It must not be initialised again:
nobody could tell any more whether it was fenced before."""

log = structlog.get_logger(__name__)


class FencedError(FatalKafkaError):
    """Another consumer has taken over: this process must end."""


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
        self._fenced: set[str] = set()
        """The writers that are known to be fenced, as they are for ever: nobody opens under their names again."""
        self._refusals: dict[TopicPartition, int] = {}
        self._unfinished: Callable[[float], None] | None = None
        """The end of a transaction that was begun: the client takes no new one before it has an answer to it."""

    def open(self) -> None:
        """Registers the writer with the brokers: only from then on can it be fenced, so it must come before its first
        report.

        Raises:
            KafkaException: no broker answers, or it refuses.
            FatalKafkaError: the client can do nothing more.
        """
        with _telling_what_is_fatal():
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
            known = position.offset >= 0
            committed[partition] = Committed(position.offset, position.metadata or "") if known else None
        return committed

    def ranges(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetRange]:
        """What can be read of each partition at the moment; those that nobody tells of are left out.

        Raises:
            KafkaException: no broker answers.
        """
        wanted = list(partitions)
        beginnings = log_offsets.beginnings(self._reader, wanted, REQUEST_LIMIT_S)
        ends = log_offsets.ends(self._reader, beginnings, REQUEST_LIMIT_S)
        return {partition: OffsetRange(beginnings[partition], end) for partition, end in ends.items()}

    def fence(self, writer: str) -> None:
        """From now on nothing that `writer` commits takes effect.

        Raises:
            KafkaException: no broker answers, or it refuses.
        """
        if writer not in self._fenced:
            self._producer_of(writer).init_transactions(REQUEST_LIMIT_S)
            self._fenced.add(writer)
            log.info("fenced", writer=writer)

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
            log.warning("deleted: not committed", partition=str(partition), offset=positions[partition].offset)
        left = {partition: position for partition, position in positions.items() if partition not in deleted}
        if left:
            try:
                with _telling_what_is_fatal():
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
        return Producer({**self._common, "transactional.id": f"{self._group}/{writer}"})

    def _commit(self, positions: Mapping[TopicPartition, Committed]) -> None:
        offsets = [
            Position(partition.topic, partition.partition, position.offset, position.note)
            for partition, position in positions.items()
        ]
        self._finish()
        self._producer.begin_transaction()
        self._unfinished = self._producer.abort_transaction
        try:
            self._producer.send_offsets_to_transaction(offsets, self._reader.consumer_group_metadata(), COMMIT_LIMIT_S)
        except KafkaException as exception:
            if not exception.args[0].fatal() and exception.args[0].code() not in _FORGOTTEN:
                self._finish()
            raise
        self._unfinished = self._producer.commit_transaction
        self._finish()

    def _finish(self) -> None:
        """Ends the transaction that was begun, if there is one."""
        if self._unfinished is None:
            return
        try:
            self._unfinished(COMMIT_LIMIT_S)
        except KafkaException as exception:
            if exception.args[0].txn_requires_abort():
                self._unfinished = self._producer.abort_transaction
            raise
        self._unfinished = None

    def _count_unknown(self, positions: Iterable[TopicPartition]) -> None:
        """Takes note of which of them the brokers' metadata does not have: a refused commit does not name them."""
        topics = {
            topic: self._reader.list_topics(topic, timeout=REQUEST_LIMIT_S).topics[topic].partitions
            for topic in {partition.topic for partition in positions}
        }
        for partition in positions:
            if partition.partition not in topics[partition.topic]:
                self._refusals[partition] = self._refusals.get(partition, 0) + 1


@contextmanager
def _telling_what_is_fatal() -> Iterator[None]:
    try:
        yield
    except KafkaException as exception:
        error = exception.args[0]
        if error.code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH):
            raise FencedError(f"another consumer has taken over from this one: {error.str()}") from exception
        if error.code() in _FORGOTTEN:
            raise FatalKafkaError(f"the brokers have forgotten its transactional id: {error.str()}") from exception
        if error.fatal():
            raise FatalKafkaError(error.str()) from exception
        raise
