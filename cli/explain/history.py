"""Finds a decision on `controller.decisions`, from its end backwards: the topic may hold a month of them."""

import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Position

from cli.errors import KcgaError
from cli.settings import Settings
from cli.topics import Cluster
from domain.messages import Decision, MessageError

CHUNK = 50
"""How many offsets are read at first; twice as many each further time."""
REQUEST_TIMEOUT_S = 10.0


def find_decision(settings: Settings, number: int | None = None, epoch: int | None = None) -> Decision:
    """The decision of that number that the controller of that epoch made; the newest where they are None.

    Raises:
        KcgaError: the cluster does not answer, or there is no such decision.
    """
    kafka, topic = settings.kafka, settings.topics.decisions
    with _decisions(settings) as newest_first:
        found = pick(newest_first, number, epoch)
    if found is None:
        which = "no decision" if number is None else f"no decision {number}"
        of = "" if epoch is None else f" of epoch {epoch}"
        hint = "; of an earlier controller? name its --epoch" if number is not None and epoch is None else ""
        raise KcgaError(f"there is {which}{of} on {topic} at {kafka.bootstrap_servers}{hint}")
    return found


def newest_decisions(settings: Settings, most: int) -> list[Decision]:
    """The newest decisions, the newest first; at most so many.

    Raises:
        KcgaError: the cluster does not answer.
    """
    with _decisions(settings) as newest_first:
        return list(islice(newest_first, most))


@contextmanager
def _decisions(settings: Settings) -> Iterator[Iterator[Decision]]:
    """All decisions, the newest first, read as far as they are looked at; none where the topic does not exist.

    Raises:
        KcgaError: the cluster does not answer.
    """
    kafka, topic = settings.kafka, settings.topics.decisions
    if topic not in Cluster(kafka.bootstrap_servers, kafka.client).partitions():
        yield iter(())
        return
    consumer = Consumer(
        {
            "fetch.wait.max.ms": 50,
            "log_level": 0,  # what goes wrong is said in one line, by the error
            **kafka.client,
            "bootstrap.servers": kafka.bootstrap_servers,
            "client.id": "kcga-explain",
            "group.id": f"kcga-explain-{uuid.uuid4().hex}",
            "enable.auto.commit": False,
        }
    )
    try:
        yield _newest_first(consumer, topic)
    except KafkaException as error:
        raise KcgaError(f"{topic} at {kafka.bootstrap_servers} cannot be read: {error.args[0].str()}") from error
    finally:
        consumer.close()


def pick(newest_first: Iterable[Decision], number: int | None, epoch: int | None) -> Decision | None:
    """The decision that `find_decision` is to find, looking no further than needed.

    Args:
        newest_first: the decisions in descending order of epoch and number; one may come twice.
        number: of the decision; None for the highest.
        epoch: of its controller; None for the highest.
    """
    for decision in newest_first:
        if epoch is None:
            epoch = decision.epoch
        if decision.epoch > epoch:
            continue
        if decision.epoch < epoch or (number is not None and decision.number < number):
            return None
        if number is None or decision.number == number:
            return decision
    return None


def _newest_first(consumer: Consumer, topic: str) -> Iterator[Decision]:
    low, high = consumer.get_watermark_offsets(Position(topic, 0), REQUEST_TIMEOUT_S)
    size = CHUNK
    while low < high:
        begin = max(low, high - size)
        yield from reversed(_between(consumer, topic, begin, high))
        high, size = begin, 2 * size


def _between(consumer: Consumer, topic: str, begin: int, end: int) -> list[Decision]:
    """The decisions at these offsets, the last one excluded; what is none is left aside."""
    consumer.assign([Position(topic, 0, begin)])
    decisions: list[Decision] = []
    reached, deadline = begin, time.monotonic() + REQUEST_TIMEOUT_S
    while reached < end:
        if time.monotonic() > deadline:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no answer within {REQUEST_TIMEOUT_S:g} s"))
        for record in consumer.consume(end - begin, 0.1):
            if record.error() is not None or (record.offset() or 0) >= end:
                continue
            try:
                decisions.append(Decision.decode(record.value()))
            except MessageError:
                continue
        # Markers of transactions take offsets and are no records: the position passes them too.
        reached = max(reached, *(position.offset for position in consumer.position([Position(topic, 0)])))
    return decisions
