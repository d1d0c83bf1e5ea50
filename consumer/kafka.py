"""How a consumer's Kafka clients are set up."""

from collections.abc import Mapping

from confluent_kafka import TopicPartition as Position

from brokers.clients import NO_COMMITS, PATIENCE, QUIET
from brokers.errors import log_error
from consumer.decide.reached import Reached
from domain.assignment import ConsumerId
from domain.partitions import TopicPartition

_SMALLEST_QUEUE_BYTES = 1_048_576
_OF_A_PARTITION_BYTES = 1_048_576
"""Of one answer of the brokers at most, as by default."""
_BACKLOGS = 16
"""So many partitions with a backlog share an answer at least. With four, of twelve that were behind, whoever came after
them waited for 18 to 20 MB with a queue of 4 MB, and with sixteen for 3 to 5 MB, at the same throughput."""
_STATISTICS_EVERY_MS = 10_000
_UNKNOWN = -1
"""The epoch of a leader that is not known."""


def common_config(bootstrap_servers: str, consumer: ConsumerId, client_config: Mapping[str, str]) -> dict[str, object]:
    """What all clients of a consumer share."""
    return {
        "client.id": f"kcga-consumer-{consumer}",
        **PATIENCE,
        **QUIET,
        **client_config,
        "bootstrap.servers": bootstrap_servers,
        "error_cb": log_error,
    }


def reading_config(common: Mapping[str, object], group: str) -> dict[str, object]:
    """What the readers share: commits are made by hand, and where to read is always told: from an offset that the log
    does not hold nothing is read."""
    return {
        **common,
        **NO_COMMITS,
        "group.id": group,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "allow.auto.create.topics": False,
    }


def reporting_config(common: Mapping[str, object], lease_s: float) -> dict[str, object]:
    """What the sender of reports adds: one arrives as long as its sender may go on, since what a cycle has read is told
    once. The lease runs from an earlier report, and is over by the time that one is given up."""
    return {"message.timeout.ms": round(1000 * lease_s), **common}


def fetching_config(common: Mapping[str, object], group: str, batch_bytes: int) -> dict[str, object]:
    """What the reader of data adds: while a batch is written, the client fetches the next one, and no more than that.

    The small queue bounds the memory, and keeps the records of one partition from waiting behind the backlog of
    another. So does the share that a partition has of an answer: after its queue was full the client asks for all of
    them in the same order, and who comes first could fill every answer. A full queue is looked at again after 10 ms;
    the client's own 1 s would leave the consumer hungry.
    """
    queue_bytes = max(batch_bytes, _SMALLEST_QUEUE_BYTES)
    return reading_config(
        {
            "queued.max.messages.kbytes": queue_bytes // 1024,
            "fetch.max.bytes": queue_bytes,
            "fetch.message.max.bytes": min(_OF_A_PARTITION_BYTES, queue_bytes // _BACKLOGS),
            "fetch.queue.backoff.ms": 10,
            "statistics.interval.ms": _STATISTICS_EVERY_MS,
            **common,
        },
        group,
    )


def client_position(partition: TopicPartition, reached: Reached, note: str = "") -> Position:
    """As the client is told it."""
    epoch = _UNKNOWN if reached.epoch is None else reached.epoch
    return Position(partition.topic, partition.partition, reached.offset, note, epoch)
