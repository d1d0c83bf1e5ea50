"""Reads one partition from an offset to an end that is known."""

import time
from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Position

NEW_LEADER = frozenset({KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE})
"""What brokers say while another of them comes to lead a partition, also of a topic that was made a moment ago."""

EACH_AS_IT_COMES = {"fetch.min.bytes": 1}
"""Of a client that waits for messages: brokers hand each on when it comes, though `kafka.client` may ask for more bytes
at a time, as suits who reads data."""
SOON_AT_THE_END = {"fetch.wait.max.ms": 20}
"""Of a client that reads partitions one after the other, each to its end: it asks for the next one only once brokers
have told it that the one before has no more, by default after 500 ms."""

_AT_ONCE = 500
_AGAIN_AFTER_S = 0.1
_LOOK_EVERY_S = 0.005
"""A partition may end with a marker of a transaction, which is passed without a record that could be waited for."""


def bounds(reader: Consumer, partition: Position, limit_s: float) -> tuple[int, int]:
    """The offsets of the first record and of the end; a partition that gets a new leader is waited for.

    Raises:
        KafkaException: no broker answers, or it refuses.
    """
    deadline = time.monotonic() + limit_s
    while True:
        try:
            return reader.get_watermark_offsets(partition, limit_s)
        except KafkaException as error:
            if error.args[0].code() not in NEW_LEADER or time.monotonic() > deadline:
                raise
            reader.list_topics(partition.topic, limit_s)  # what the client knows of it is old
            time.sleep(_AGAIN_AFTER_S)


def records(reader: Consumer, start: Position, end: int, limit_s: float) -> Iterator[Message]:
    """The records of a partition from an offset on up to another, that one excluded, in their order.

    Raises:
        KafkaException: no more of them came for `limit_s`, or the topic may not be read.
    """
    reached, deadline = start.offset, time.monotonic() + limit_s
    reader.assign([start])
    while reached < end:
        if time.monotonic() > deadline:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"{start.topic} could not be read"))
        for record in reader.consume(min(_AT_ONCE, end - reached), _LOOK_EVERY_S):
            error = record.error()
            if error is None and (record.offset() or 0) < end:
                yield record
            elif error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise KafkaException(error)
        (position,) = reader.position([start])
        # Markers of transactions take offsets and are no records: the position passes them too.
        if position.offset > reached:
            reached, deadline = position.offset, time.monotonic() + limit_s
