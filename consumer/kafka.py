"""How a consumer's Kafka clients are set up, and what their errors mean."""

from collections.abc import Mapping

import structlog
from confluent_kafka import KafkaError, KafkaException

from domain.assignment import ConsumerId

REQUEST_LIMIT_S = 10.0
"""A request to the brokers that takes longer has failed."""

_SMALLEST_QUEUE_BYTES = 1_048_576
_STATISTICS_EVERY_MS = 10_000

log = structlog.get_logger(__name__)


class FatalKafkaError(RuntimeError):
    """The client can do nothing more: only a new process can go on."""


def common_config(bootstrap_servers: str, consumer: ConsumerId, client_config: Mapping[str, str]) -> dict[str, object]:
    """What all clients of a consumer share.

    A broker that hangs is noticed in 10 s rather than in the client's 60.
    """
    return {
        "client.id": f"kcga-consumer-{consumer}",
        "socket.timeout.ms": int(REQUEST_LIMIT_S * 1000),
        "topic.metadata.refresh.interval.ms": 10_000,
        "log_level": 3,
        **client_config,
        "bootstrap.servers": bootstrap_servers,
        "error_cb": _log_error,
    }


def reading_config(common: Mapping[str, object], group: str) -> dict[str, object]:
    """What the readers share: commits are made by hand, and where to read is always told: from an offset that the log
    does not hold nothing is read."""
    return {
        **common,
        "group.id": group,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "allow.auto.create.topics": False,
    }


def fetching_config(common: Mapping[str, object], group: str, batch_bytes: int) -> dict[str, object]:
    """What the reader of data adds: while a batch is written, the client fetches the next one, and no more than that.

    The small queue bounds the memory, and keeps the records of one partition from waiting behind the backlog of
    another. A full queue is looked at again after 10 ms; the client's own 1 s would leave the consumer hungry.
    """
    queue_bytes = max(batch_bytes, _SMALLEST_QUEUE_BYTES)
    return reading_config(
        {
            "queued.max.messages.kbytes": queue_bytes // 1024,
            "fetch.max.bytes": queue_bytes,
            "fetch.queue.backoff.ms": 10,
            "statistics.interval.ms": _STATISTICS_EVERY_MS,
            **common,
        },
        group,
    )


def brief(exception: KafkaException) -> str:
    """What the exception says, in one line."""
    reason = exception.args[0]
    return reason.str() if isinstance(reason, KafkaError) else str(exception)


def _log_error(error: KafkaError) -> None:
    log.warning("kafka client", error=error.str(), code=error.name())
