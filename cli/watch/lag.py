"""Measures how many records of each partition are written and not committed by the group yet."""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient, OffsetSpec

from domain.partitions import TopicPartition
from monitor.group_commits import GroupCommits

LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]


class LagProbe:
    """Asks the brokers.

    Args:
        admin: of the cluster.
        commits: of the consumer group.
        timeout_s: of one request.
    """

    def __init__(self, admin: AdminClient, commits: GroupCommits, timeout_s: float = 5.0) -> None:
        self._admin = admin
        self._commits = commits
        self._timeout_s = timeout_s

    def measure(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """End offset minus committed offset, in records; minus the beginning where nothing is committed yet.

        A partition that the brokers do not answer for (it was deleted, it has no leader) is left out.

        Raises:
            KafkaException: the brokers do not answer at all.
        """
        wanted = sorted(partitions)
        if not wanted:
            return {}
        committed = self._commits.offsets(wanted, self._timeout_s)
        ends = self._offsets(committed, LATEST)
        begins = self._offsets([partition for partition in ends if committed[partition] is None], EARLIEST)
        from_offsets = {**{p: offset for p, offset in committed.items() if offset is not None}, **begins}
        # A commit that is newer than the end asked for before it, or older than a topic made anew, is no negative lag.
        return {p: max(0, end - from_offsets[p]) for p, end in ends.items() if p in from_offsets}

    def _offsets(self, partitions: Iterable[TopicPartition], which: OffsetSpec) -> dict[TopicPartition, int]:
        request = {Position(p.topic, p.partition): which for p in partitions}
        if not request:
            return {}
        answers: Mapping[Position, Future[Any]] = self._admin.list_offsets(request, request_timeout=self._timeout_s)
        offsets = {}
        for position, answer in answers.items():
            try:
                offsets[TopicPartition(position.topic, position.partition)] = answer.result().offset
            except KafkaException:
                continue
        return offsets
