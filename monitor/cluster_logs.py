"""What brokers say of their topics and logs. Every call blocks until the answer or the time-out, from any thread.

Most of it comes by kafka-python, since librdkafka has no DescribeLogDirs, and its administration client can bring the
whole process down when a broker dies while it is asked; the commits, and why nobody answers, by librdkafka.
"""

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import confluent_kafka
import kafka
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec
from kafka.errors import (
    IncompatibleBrokerVersion,
    NoError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafka.protocol.consumer import FetchRequest

from brokers.clients import QUIET
from brokers.errors import in_one_line, reason
from brokers.tokens import Tokens
from domain.partitions import OffsetRange, TopicPartition
from monitor.connection import ConnectionSettingsError, kafka_python_arguments
from monitor.group_commits import GroupCommits
from monitor.measure.interest import Topic
from monitor.measure.samples import SAMPLE_BYTES

T = TypeVar("T")

_NO_LEADER = -1
_CLEANUP_POLICY = "cleanup.policy"
_METADATA_MAX_AGE_MS = 5_000
"""How soon a broker that was added is known by its address."""
_RECONNECT_BACKOFF_MAX_MS = 1_000
"""A broker that is back is noticed within this time and the next measurement."""
_FAILURES_BEFORE_BOOTSTRAP = 3
"""Failed descriptions of the topics in a row after which all known addresses count as stale: in a cluster that was
moved, only the bootstrap servers' name leads to the new ones."""
_FETCH_BY_NAME = 12
"""The last version of the request that names topics, which Kafka 2.7 and newer take; older ones have one before it."""
_LARGER = 8
"""A batch that is larger than a sample is asked for with so many times as much, and so on."""
_LARGEST_BATCH = 100_000_000
"""In bytes: larger than brokers take any."""


class BrokerAwayError(Exception):
    """A broker, or the whole cluster, did not answer or refused to; says why in one line."""


class SizesDeniedError(BrokerAwayError):
    """A broker shows no log directory at all, which is what it answers to a user who may not ask, without any error; or
    it does not know the question."""


class Fetched(NamedTuple):
    """Records as the broker keeps them, in whole batches but for the last."""

    records: Mapping[TopicPartition, bytes]
    refused: frozenset[TopicPartition]
    """Those that the user may not read."""


class ClusterLogs:
    """The topics of a cluster, and the sizes and offsets of its logs."""

    def __init__(
        self, bootstrap_servers: str, client_config: Mapping[str, str], request_timeout_s: float = 5.0
    ) -> None:
        """Connects to nothing yet.

        Args:
            bootstrap_servers: `host:port`, separated by commas.
            client_config: how to connect, in librdkafka's names.
            request_timeout_s: how long a broker may take to answer.

        Raises:
            ConnectionSettingsError: `client_config` is not understood.
        """
        self._request_timeout_s = request_timeout_s
        self._arguments = kafka_python_arguments(bootstrap_servers, client_config) | {
            "request_timeout_ms": round(request_timeout_s * 1000),
            "bootstrap_timeout_ms": round(request_timeout_s * 1000),
            "reconnect_backoff_max_ms": _RECONNECT_BACKOFF_MAX_MS,
            "metadata_max_age_ms": _METADATA_MAX_AGE_MS,
        }
        self._tokens: Tokens | None = self._arguments.get("sasl_oauth_token_provider")
        # Both libraries log each failed attempt; kcga logs once when a broker goes and once when it is back.
        logging.getLogger("kafka").setLevel(logging.CRITICAL)
        self._commits_config = {**QUIET, **client_config, "bootstrap.servers": bootstrap_servers}
        self._commits: dict[str, GroupCommits] = {}
        """By the group."""
        config: dict[str, Any] = {**self._commits_config, "error_cb": self._heard}
        try:
            self._librdkafka = AdminClient(config)
        except KafkaException as error:
            raise ConnectionSettingsError(f"the Kafka client refuses its properties: {in_one_line(error)}") from error
        self._admin: KafkaAdminClient | None = None
        self._admin_lock = threading.Lock()
        self._closed = False
        self._failed_descriptions = 0
        self._complaint = ""

    def topics(self, names: Collection[str] | None = None) -> dict[str, Topic]:
        """The topics of these names, or all; those that do not exist, or may not be described, are left out.

        Their cleanup policy is not looked up: see `compacted`.

        Raises:
            BrokerAwayError: no broker answered.
        """
        return {name: topic for name, topic in self.existing(names).items() if topic is not None}

    def existing(self, names: Collection[str] | None) -> dict[str, Topic | None]:
        """The topics of these names, or all; None where there is none, and left out where the cluster does not say.

        Raises:
            BrokerAwayError: no broker answered.
        """
        self._librdkafka.poll(0)  # what it has to complain about piles up otherwise
        try:
            described = self.ask(lambda admin: admin.describe_topics(None if names is None else sorted(names)))
        except BrokerAwayError:
            self._failed_descriptions += 1
            if self._failed_descriptions % _FAILURES_BEFORE_BOOTSTRAP == 0:
                self._disconnect()
            raise
        self._failed_descriptions = 0
        self._complaint = ""
        return {
            topic["name"]: Topic(
                name=topic["name"],
                topic_id=str(topic["topic_id"]),
                leaders={
                    partition["partition_index"]: partition["leader_id"]
                    if partition["leader_id"] != _NO_LEADER
                    else None
                    for partition in topic["partitions"]
                },
                internal=topic["is_internal"],
            )
            if for_code(topic["error_code"]) is NoError
            else None
            for topic in described
            if for_code(topic["error_code"]) in (NoError, UnknownTopicOrPartitionError)
        }

    def sizes(self, broker: int, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The bytes that `broker`'s replica of each partition holds; those that it has no replica of are left out.

        Raises:
            SizesDeniedError: it may not be asked, or cannot.
            BrokerAwayError: it did not answer, or can read none of its log directories.
        """
        asked: dict[str, list[int]] = {}
        for partition in sorted(partitions):
            asked.setdefault(partition.topic, []).append(partition.partition)
        try:
            return stored_bytes(self.ask(lambda admin: admin.describe_log_dirs(asked, brokers=[broker])))
        except BrokerAwayError as error:
            if isinstance(error.__cause__, IncompatibleBrokerVersion):
                raise SizesDeniedError("it does not know the request DescribeLogDirs") from error
            raise

    def fetch(self, broker: int, starts: Mapping[TopicPartition, int]) -> Fetched:
        """A sample of each partition that `broker` leads, from the batch on that holds the given offset: some
        `SAMPLE_BYTES`, or the batch where that is larger. Partitions that hold nothing there, or that it does not tell
        of, are left out.

        No group is named, nothing is committed, and nothing is held open for it at the broker.

        Raises:
            BrokerAwayError: it did not answer.
        """
        records: dict[TopicPartition, bytes] = {}
        refused: set[TopicPartition] = set()
        wanted, most_bytes = dict(starts), SAMPLE_BYTES
        while wanted and most_bytes < _LARGEST_BATCH:
            asked, most = wanted, most_bytes
            answer = self.ask(lambda admin: admin._manager.run(_fetch, admin, broker, asked, most))  # noqa: B023
            wanted, most_bytes = {}, _LARGER * most_bytes
            for topic in answer.responses:
                for told in topic.partitions:
                    partition, error = TopicPartition(topic.topic, told.partition_index), for_code(told.error_code)
                    if error is TopicAuthorizationFailedError:
                        refused.add(partition)
                    elif error is NoError and told.records:
                        records[partition] = told.records
                    elif error is NoError and asked[partition] < told.high_watermark:
                        wanted[partition] = asked[partition]  # its first batch is larger
        return Fetched(records, frozenset(refused))

    def offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetRange]:
        """Where the log of each partition starts and ends; all of them, or none.

        librdkafka goes on asking the old leader of a partition for minutes, so this is asked by kafka-python, too.

        Raises:
            BrokerAwayError: a leader did not answer, or leads one of them no more.
        """
        starts = self._offsets(partitions, OffsetSpec.EARLIEST)
        ends = self._offsets(partitions, OffsetSpec.LATEST)
        # Asked after the ends: what is written between the two questions is held up by nobody.
        readable = self._offsets(partitions, OffsetSpec.LATEST, "read_committed")
        held_up = {partition: offset for partition, offset in readable.items() if offset < ends[partition]}
        return {
            partition: OffsetRange(start, ends[partition], held_up.get(partition))
            for partition, start in starts.items()
        }

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int | None]:
        """The offset that a consumer group goes on at in each partition; None where it has committed nothing.

        Partitions that the group's coordinator does not tell of are left out.

        Raises:
            BrokerAwayError: the coordinator did not answer, or refused to.
        """
        try:
            if group not in self._commits:
                self._commits[group] = GroupCommits(self._commits_config, group)
            return self._commits[group].offsets(partitions, self._request_timeout_s)
        except KafkaException as error:
            raise BrokerAwayError(in_one_line(error)) from error

    def compacted(self, topics: Collection[str]) -> dict[str, bool]:
        """Whether the cleanup policy of each topic includes compaction; those that did not tell are left out."""
        if not topics:
            return {}
        asked = [ConfigResource(ConfigResourceType.TOPIC, topic, [_CLEANUP_POLICY]) for topic in sorted(topics)]
        try:
            answers = self.ask(lambda admin: admin.describe_configs(asked, config_filter="all"))
        except BrokerAwayError:
            return {}
        return {
            topic: "compact" in settings[_CLEANUP_POLICY]["value"]
            for topic, settings in answers.get(ConfigResourceType.TOPIC.name.lower(), {}).items()
            if _CLEANUP_POLICY in settings
        }

    def close(self) -> None:
        """Ends the connections; whoever waits for an answer gets a BrokerAwayError."""
        self._closed = True
        self._disconnect()

    def _heard(self, error: confluent_kafka.KafkaError) -> None:
        if error.code() != confluent_kafka.KafkaError._ALL_BROKERS_DOWN:  # says less than those that it follows
            self._complaint = reason(error)

    def _offsets(
        self, partitions: Collection[TopicPartition], which: OffsetSpec, isolation: str = "read_uncommitted"
    ) -> dict[TopicPartition, int]:
        asked = {kafka.TopicPartition(partition.topic, partition.partition): which for partition in sorted(partitions)}
        if not asked:
            return {}
        return {
            TopicPartition(partition.topic, partition.partition): found.offset
            for partition, found in self.ask(lambda admin: admin.list_partition_offsets(asked, isolation)).items()
        }

    def ask(self, question: Callable[[Any], T]) -> T:
        """The answer to whatever is asked by kafka-python's administration client.

        Raises:
            BrokerAwayError: there is none.
        """
        try:
            return question(self._connected())
        except BrokerAwayError:
            raise
        except Exception as error:  # kafka-python lets those of sockets, TLS and its event loop through as they are
            raise BrokerAwayError(self._explained(error)) from error

    def _connected(self) -> KafkaAdminClient:
        if self._tokens is not None:
            self._tokens.renew()
        with self._admin_lock:
            if self._closed:
                raise BrokerAwayError("the connection was closed")
            if self._admin is None:
                self._require_reachable()
                self._admin = _bootstrapped(self._arguments)
            return self._admin

    def _require_reachable(self) -> None:
        """kafka-python says of a wrong password or certificate that time ran out, and leaks the sockets of attempts
        that were refused: librdkafka goes first, and tells."""
        try:
            self._librdkafka.list_topics(timeout=self._request_timeout_s)
        except KafkaException as error:
            raise BrokerAwayError(self._explained(error)) from error

    def _explained(self, error: Exception) -> str:
        """What happened, and what librdkafka, whose connection is another, has heard of why."""
        self._librdkafka.poll(0)
        said = in_one_line(error)
        return f"{self._complaint} ({said})" if self._complaint else said

    def _disconnect(self) -> None:
        with self._admin_lock:
            admin, self._admin = self._admin, None
        if admin is not None:
            admin.close()


async def _fetch(admin: Any, broker: int, starts: Mapping[TopicPartition, int], most_bytes: int) -> Any:
    by_topic: dict[str, list[Any]] = {}
    for partition, offset in sorted(starts.items()):
        asked = FetchRequest.FetchTopic.FetchPartition(
            partition=partition.partition, fetch_offset=offset, partition_max_bytes=most_bytes
        )
        by_topic.setdefault(partition.topic, []).append(asked)
    topics = [FetchRequest.FetchTopic(topic=topic, partitions=partitions) for topic, partitions in by_topic.items()]
    request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics, max_version=_FETCH_BY_NAME)
    return await admin._manager.send(request, node_id=broker)


def stored_bytes(answers: Iterable[Mapping[str, Any]]) -> dict[TopicPartition, int]:
    """What a broker's answers to DescribeLogDirs say that its replicas hold, in bytes.

    Raises:
        SizesDeniedError: it shows no log directory.
        BrokerAwayError: it can read none of them.
    """
    directories = [directory for answer in answers for directory in answer["log_dirs"]]
    if not directories:
        raise SizesDeniedError(
            "it shows no log directories: the user in kafka.client needs the operation Describe on the resource Cluster"
        )
    faults = {
        directory["log_dir"]: for_code(directory["error_code"])
        for directory in directories
        if for_code(directory["error_code"]) is not NoError
    }
    if len(faults) == len(directories):
        said = ", ".join(f"{folder}: {fault.__name__}" for folder, fault in sorted(faults.items()))
        raise BrokerAwayError(f"it cannot read its own log directories ({said}): its log says why")
    return {
        TopicPartition(topic["name"], replica["partition_index"]): replica["partition_size"]
        for directory in directories
        if directory["log_dir"] not in faults
        for topic in directory["topics"]
        for replica in topic["partitions"]
        if not replica["is_future_key"]  # a copy on its way to another directory
    }


def _bootstrapped(arguments: Mapping[str, Any]) -> KafkaAdminClient:
    # The constructor starts a thread before it bootstraps, and leaves it behind where that fails.
    admin = KafkaAdminClient.__new__(KafkaAdminClient)
    try:
        admin.__init__(**arguments)
    except BaseException:
        admin._closed = False
        admin.close()
        raise
    return admin
