"""Reads what the monitor before this one told last."""

from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from brokers.clients import NO_COMMITS, QUIET
from brokers.errors import in_one_line
from brokers.reading import bounds, records
from domain.messages import MessageError, WriteSpeedReport
from domain.speeds import WriteSpeeds
from monitor.cluster_logs import BrokerAwayError

_NO_TOPIC = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})


class NotAllowedError(Exception):
    """The monitor's user may not read the topic."""


def last_report(
    topic: str, bootstrap_servers: str, client_config: Mapping[str, str], timeout_s: float
) -> WriteSpeeds | None:
    """The newest report on the topic; None where there is none, or none that can be understood.

    Raises:
        BrokerAwayError: it could not be read within `timeout_s`.
        NotAllowedError: it may not be read.
    """
    config = {
        **QUIET,
        **client_config,
        "bootstrap.servers": bootstrap_servers,
        "group.id": "kcga.monitor",  # needed by the client, and never used: nothing is subscribed to or committed
        **NO_COMMITS,
    }
    consumer = Consumer(config)
    try:
        start, end = bounds(consumer, TopicPartition(topic, 0), timeout_s)
        if start >= end:
            return None
        record = next(records(consumer, TopicPartition(topic, 0, end - 1), end, timeout_s), None)
        return None if record is None else WriteSpeedReport.decode(record.value()).speeds
    except KafkaException as error:
        code = error.args[0].code()
        if code in _NO_TOPIC:
            return None
        refused = code == KafkaError.TOPIC_AUTHORIZATION_FAILED
        raise (NotAllowedError if refused else BrokerAwayError)(in_one_line(error)) from error
    except MessageError:
        return None
    finally:
        consumer.close()
