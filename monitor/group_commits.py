"""How far a consumer group has committed: one question to its coordinator, whoever leads the partitions."""

from collections.abc import Iterable

from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient

from domain.partitions import TopicPartition


def committed_offsets(
    admin: AdminClient, group: str, partitions: Iterable[TopicPartition], timeout_s: float
) -> dict[TopicPartition, int | None]:
    """The offset that the group goes on at in each partition; None where it has committed nothing.

    Partitions that the coordinator does not tell of (it may not, or they are gone) are left out.

    Raises:
        KafkaException: the coordinator does not answer, or may not be asked.
    """
    asked = [Position(partition.topic, partition.partition) for partition in sorted(partitions)]
    if not asked:
        return {}
    answers = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group, asked)], request_timeout=timeout_s)
    result: ConsumerGroupTopicPartitions = answers[group].result()
    return {
        TopicPartition(position.topic, position.partition): position.offset if position.offset >= 0 else None
        for position in result.topic_partitions or ()
        if position.error is None
    }
