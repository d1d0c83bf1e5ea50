"""Names for the partitions of tests."""

from domain.partitions import TopicPartition


def partition(number: int) -> TopicPartition:
    """Partition `number` of the one topic that there is."""
    return TopicPartition("t", number)
