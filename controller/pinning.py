"""How an operator names a partition in the settings."""

import re

from domain.partitions import TopicPartition

_NAME = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})[-/](?P<partition>[0-9]{1,9})")


def parse_partition(name: str) -> TopicPartition:
    """The partition that is named `orders-3`, as Kafka's own tools and logs write it, or `orders/3`.

    Raises:
        ValueError: `name` is neither.
    """
    named = _NAME.fullmatch(name)
    if named is None:
        raise ValueError(f"{name!r} names no partition: it must be a topic and a number, such as orders-3")
    return TopicPartition(named["topic"], int(named["partition"]))
