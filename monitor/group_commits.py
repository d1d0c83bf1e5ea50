"""How far a consumer group has committed: one question to its coordinator, whoever leads the partitions.

It is asked by a consumer that never joins. The administration client has a call for it too, but that brings the whole
process down when the coordinator dies while it is asked (librdkafka 2.16: `Assertion eonce->refcnt > 0 failed`).
"""

from collections.abc import Iterable, Mapping

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Position

from brokers.clients import NO_COMMITS
from domain.partitions import TopicPartition


class GroupCommits:
    """Reads the commits of a group, and takes no part in it.

    Args:
        config: of the client, by librdkafka's names.
        group: the consumer group.

    Raises:
        KafkaException: the client refuses its settings.
    """

    def __init__(self, config: Mapping[str, object], group: str) -> None:
        self._reader = Consumer({**config, **NO_COMMITS, "group.id": group})

    def offsets(self, partitions: Iterable[TopicPartition], timeout_s: float) -> dict[TopicPartition, int | None]:
        """The offset that the group goes on at in each partition; None where it has committed nothing.

        Partitions that the coordinator does not tell of (it may not, or they are gone) are left out.

        Raises:
            KafkaException: the coordinator does not answer, or may not be asked.
        """
        asked = [Position(partition.topic, partition.partition) for partition in sorted(partitions)]
        answer = self._reader.committed(asked, timeout=timeout_s) if asked else []
        return {
            TopicPartition(position.topic, position.partition): position.offset if position.offset >= 0 else None
            for position in answer
            if position.error is None
        }

    def close(self) -> None:
        self._reader.close()
