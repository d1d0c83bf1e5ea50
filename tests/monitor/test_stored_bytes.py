"""What brokers say of their log directories."""

from typing import Any

import pytest

from domain.partitions import TopicPartition
from monitor.cluster_logs import BrokerAwayError, stored_bytes

STORAGE_ERROR = 56
"""Kafka's code where the broker cannot read the directory: a disk that has failed, a mount that is gone."""


def directory(folder: str, error_code: int = 0, *replicas: tuple[int, int, bool]) -> dict[str, Any]:
    partitions = [
        {"partition_index": number, "partition_size": size, "is_future_key": future}
        for number, size, future in replicas
    ]
    return {"log_dir": folder, "error_code": error_code, "topics": [{"name": "orders", "partitions": partitions}]}


def test_sizes_are_those_of_replicas_and_not_of_copies_under_way() -> None:
    answers = [{"log_dirs": [directory("/a", 0, (0, 10, False)), directory("/b", 0, (0, 4, True), (1, 20, False))]}]
    assert stored_bytes(answers) == {TopicPartition("orders", 0): 10, TopicPartition("orders", 1): 20}


def test_a_directory_that_cannot_be_read_costs_what_it_holds() -> None:
    answers = [{"log_dirs": [directory("/a", STORAGE_ERROR), directory("/b", 0, (1, 20, False))]}]
    assert stored_bytes(answers) == {TopicPartition("orders", 1): 20}


def test_a_broker_that_can_read_none_is_named_with_its_directories() -> None:
    """Its partitions were without a speed for ever, and nothing said why."""
    answers = [{"log_dirs": [directory("/a", STORAGE_ERROR), directory("/b", STORAGE_ERROR)]}]
    with pytest.raises(BrokerAwayError, match=r"cannot read its own log directories \(/a: KafkaStorageError, /b: "):
        stored_bytes(answers)


def test_a_broker_that_shows_none_is_one_that_must_not_be_asked() -> None:
    with pytest.raises(BrokerAwayError, match="Describe on the resource Cluster"):
        stored_bytes([{"log_dirs": []}])
