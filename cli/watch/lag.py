"""Measures how many records of each partition are written and not committed by the group yet."""

from collections.abc import Iterable

from confluent_kafka import Consumer

from consumer import log_offsets
from domain.partitions import TopicPartition
from monitor.group_commits import GroupCommits


class LagProbe:
    """Asks the brokers.

    Args:
        reader: of the cluster.
        commits: of the consumer group.
        timeout_s: of one request.
    """

    def __init__(self, reader: Consumer, commits: GroupCommits, timeout_s: float = 5.0) -> None:
        self._reader = reader
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
        ends = log_offsets.ends(self._reader, committed, self._timeout_s)
        new = [partition for partition in ends if committed[partition] is None]
        begins = log_offsets.beginnings(self._reader, new, self._timeout_s)
        from_offsets = {**{p: offset for p, offset in committed.items() if offset is not None}, **begins}
        # A commit that is newer than the end asked for before it, or older than a topic made anew, is no negative lag.
        return {p: max(0, end - from_offsets[p]) for p, end in ends.items() if p in from_offsets}
