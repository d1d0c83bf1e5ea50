"""Fast assignments that are good but not proven best: the paper's twelve, and what Kafka itself would do."""

from heuristics.catalogue import HEURISTICS, pack
from heuristics.kafka import KAFKA_ASSIGNORS, kafka_assign

__all__ = ["HEURISTICS", "KAFKA_ASSIGNORS", "kafka_assign", "pack"]
