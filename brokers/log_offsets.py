"""Where the logs of partitions begin and end: one question to each broker that leads any of them.

It is asked by a consumer, whose look-up of times takes two that stand for the beginning and the end. The administration
client has a call for it too, but its requests can bring the whole process down when a broker dies while it is asked
(librdkafka 2.16: `Assertion eonce->refcnt > 0 failed`).
"""

import time
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaException
from confluent_kafka import TopicPartition as Position

from brokers.reading import NEW_LEADER
from domain.partitions import OffsetRange, TopicPartition

_FIRST_SHARE = 0.3
"""Of the time, for the brokers that are known to lead."""
_LEAST_S = 0.1


def beginnings(reader: Consumer, partitions: Iterable[TopicPartition], timeout_s: float) -> dict[TopicPartition, int]:
    """The offset of the first record that each log holds, or of the next one where it holds none.

    Partitions that the brokers do not tell of (they are gone, they have no leader) are left out.

    Raises:
        KafkaException: no broker answers.
    """
    return _offsets(reader, partitions, OFFSET_BEGINNING, timeout_s)


def ends(reader: Consumer, partitions: Iterable[TopicPartition], timeout_s: float) -> dict[TopicPartition, int]:
    """The offset up to which each log can be read: by a reader of what is committed, up to that.

    Partitions that the brokers do not tell of (they are gone, they have no leader) are left out.

    Raises:
        KafkaException: no broker answers.
    """
    return _offsets(reader, partitions, OFFSET_END, timeout_s)


def ranges(
    reader: Consumer, partitions: Iterable[TopicPartition], timeout_s: float
) -> dict[TopicPartition, OffsetRange]:
    """What each log holds; its beginning and its end may take so long each.

    Raises:
        KafkaException: no broker answers.
    """
    starts = beginnings(reader, partitions, timeout_s)
    return {
        partition: OffsetRange(starts[partition], end) for partition, end in ends(reader, starts, timeout_s).items()
    }


def _offsets(
    reader: Consumer, partitions: Iterable[TopicPartition], which: int, timeout_s: float
) -> dict[TopicPartition, int]:
    asked = [Position(partition.topic, partition.partition, which) for partition in partitions]
    if not asked:
        return {}
    deadline = time.monotonic() + timeout_s
    with suppress(KafkaException):
        told = reader.offsets_for_times(asked, _FIRST_SHARE * timeout_s)
        if all(position.error is None for position in told):
            return _by_partition(told)
    # The client goes on asking a broker that hangs, whoever leads the partitions by now, until it looks for that anew.
    # And it tells of none as long as one of them has no leader, or one that does not answer.
    topics = reader.list_topics(timeout=max(_LEAST_S, deadline - time.monotonic())).topics
    led: defaultdict[int, list[Position]] = defaultdict(list)
    for position in asked:
        known = topics[position.topic].partitions.get(position.partition) if position.topic in topics else None
        if known is not None and known.leader >= 0:
            led[known.leader].append(position)
    left_s = max(_LEAST_S, deadline - time.monotonic())
    with ThreadPoolExecutor(max(len(led), 1)) as threads:
        answers = [threads.submit(reader.offsets_for_times, of_leader, left_s) for of_leader in led.values()]
    errors = [error for answer in answers if (error := answer.exception())]
    if led and len(errors) == len(answers) and not any(map(_answers, errors)):
        raise errors[0]
    return _by_partition(position for answer in answers if not answer.exception() for position in answer.result())


def _answers(error: BaseException) -> bool:
    """Whether a broker says that it does not lead what it is asked about, as of a new partition for a moment."""
    return isinstance(error, KafkaException) and error.args[0].code() in NEW_LEADER


def _by_partition(told: Iterable[Position]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(position.topic, position.partition): position.offset
        for position in told
        if position.error is None
    }
