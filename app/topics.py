"""The topics on a cluster: those that kcga's components talk through are made, those that are read must exist."""

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any

import structlog
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ClusterMetadata,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
)

from app.errors import KcgaError
from app.refusals import of_settings
from brokers.clients import QUIET
from brokers.errors import reason
from domain.topics import TopicNames

log = structlog.get_logger(__name__)

REQUEST_TIMEOUT_S = 15.0
LOOK_EVERY_S = 0.02
AN_HOUR_MS = 3_600_000
TEN_MINUTES_MS = 600_000
MEGABYTE = 2**20
ARRIVAL = {"message.timestamp.type": "LogAppendTime"}
OF_THE_TOPIC = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
NOT_ALLOWED = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED})
RETRY_EVERY_MS = 5_000


class Cluster:
    """A Kafka cluster that answers.

    Raises:
        UsageError: the client's settings are wrong.
        KcgaError: no broker answers.
    """

    def __init__(self, bootstrap_servers: str, client_config: Mapping[str, str] | None = None) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._client_config = dict(client_config or {})
        self._complaints: list[KafkaError] = []
        quiet: dict[str, Any] = {
            **QUIET,
            "reconnect.backoff.max.ms": RETRY_EVERY_MS,
            "error_cb": self._complaints.append,
        }
        with of_settings():
            self._admin = AdminClient({**quiet, **self._client_config, "bootstrap.servers": bootstrap_servers})
        self.partitions()

    def partitions(self) -> dict[str, int]:
        """How many partitions each topic has."""
        return {name: len(topic.partitions) for name, topic in self._listed().topics.items()}

    def replicas(self) -> tuple[int, dict[str, int]]:
        """How many brokers there are, and how many replicas the partition of each topic has that has fewest."""
        listed = self._listed()
        return len(listed.brokers), {
            name: min((len(partition.replicas) for partition in topic.partitions.values()), default=0)
            for name, topic in listed.topics.items()
        }

    def _listed(self) -> ClusterMetadata:
        try:
            listed: ClusterMetadata = self._admin.list_topics(timeout=REQUEST_TIMEOUT_S)
        except KafkaException as error:
            self._admin.poll(0)  # only then does the client tell what it has to complain of
            from brokers.oidc import fault_of  # only now: kafka-python takes a while to import

            why = fault_of(self._client_config) or reason(error.args[0], self._complaints)
            raise KcgaError(
                f"no Kafka broker answers at {self._bootstrap_servers} within {REQUEST_TIMEOUT_S:g} s: {why}; is it "
                "running, and are address and security settings right?"
            ) from error
        self._complaints.clear()
        return listed

    def require(self, topics: Iterable[str]) -> None:
        """Makes sure that the topics exist.

        Raises:
            KcgaError: one does not.
        """
        if missing := sorted(set(topics) - self.partitions().keys()):
            raise KcgaError(
                f"no such topic at {self._bootstrap_servers}: {', '.join(missing)}; create it, correct monitor.topics, "
                "or name it by a regular expression (^ first), which may match topics that come later"
            )

    def create(
        self, topics: Mapping[str, int], *, settings: Mapping[str, Mapping[str, int | str]] | None = None
    ) -> None:
        """Creates the topics that do not exist, with so many partitions each; returns once they can be used.

        Args:
            topics: how many partitions each has.
            settings: of topics, by Kafka's names.

        Raises:
            KcgaError: one is refused.
        """
        existing = self.partitions()
        missing = [
            NewTopic(name, num_partitions=count, config=_as_words((settings or {}).get(name, {})))
            for name, count in topics.items()
            if name not in existing
        ]
        if not missing:
            return
        within = {"operation_timeout": REQUEST_TIMEOUT_S, "request_timeout": REQUEST_TIMEOUT_S}
        for name, created in self._admin.create_topics(missing, **within).items():
            try:
                created.result()
            except KafkaException as error:
                # Another component may have made it in the meantime.
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise KcgaError(f"the topic {name} cannot be created: {reason(error.args[0])}") from error
        self._wait_until_told({topic.topic: topic.num_partitions for topic in missing})

    def _wait_until_told(self, made: Mapping[str, int]) -> None:
        """Brokers learn of a topic after it was made: until then each says that there is none."""
        deadline = time.monotonic() + REQUEST_TIMEOUT_S
        while True:
            told = self.partitions()
            untold = [name for name, count in made.items() if told.get(name, 0) < count]
            if not untold:
                return
            if time.monotonic() > deadline:
                log.warning("topics were made, and the brokers do not tell of them", topics=untold)
                return
            time.sleep(LOOK_EVERY_S)

    def bound(self, settings: Mapping[str, Mapping[str, int | str]]) -> None:
        """Gives topics those of the settings that they have from the broker only: what somebody set for a topic stays.

        Who may not do that leaves it to the component that may (`kcga acls`); `kcga doctor` tells what is missing.
        """
        asked = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in settings]
        lacking: list[ConfigResource] = []
        for topic, answer in self._admin.describe_configs(asked, request_timeout=REQUEST_TIMEOUT_S).items():
            if (entries := _unless_refused(topic.name, answer)) is not None:
                own = {name for name, entry in entries.items() if entry.source == OF_THE_TOPIC}
                wanted = {name: value for name, value in settings[topic.name].items() if name not in own}
                if wanted:
                    changes = [
                        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
                        for name, value in _as_words(wanted).items()
                    ]
                    lacking.append(ConfigResource(ConfigResource.Type.TOPIC, topic.name, incremental_configs=changes))
        if lacking:
            altered = self._admin.incremental_alter_configs(lacking, request_timeout=REQUEST_TIMEOUT_S)
            for topic, answer in altered.items():
                _unless_refused(topic.name, answer)

    def delete(self, prefix: str) -> None:
        """Deletes all topics whose names begin so, as far as the cluster allows."""
        names = [name for name in self.partitions() if name.startswith(prefix)]
        asked = self._admin.delete_topics(names, request_timeout=REQUEST_TIMEOUT_S) if names else {}
        for deleted in asked.values():
            deleted.exception()

    def ensure_internal_topics(self, names: TopicNames, highest_consumer: int) -> None:
        """Makes the three topics as needed; the metadata topic has a partition for the controller and each consumer.

        Raises:
            KcgaError: one is refused.
        """
        wanted = {names.write_speed: 1, names.metadata: highest_consumer + 1, names.decisions: 1}
        settings = {
            names.write_speed: _bounds(AN_HOUR_MS, segment_ms=TEN_MINUTES_MS, megabytes=128),
            names.metadata: _bounds(AN_HOUR_MS, segment_ms=TEN_MINUTES_MS, megabytes=32),
            names.decisions: _bounds(30 * 24 * AN_HOUR_MS, segment_ms=24 * AN_HOUR_MS, megabytes=1024),
        }
        present = self.partitions().keys() & wanted.keys()
        self.create(wanted, settings=settings)
        if present:
            self.bound({name: settings[name] for name in sorted(present)})
        existing = self.partitions().get(names.metadata, highest_consumer + 1)
        if existing <= highest_consumer:
            wanted_partitions = [NewPartitions(names.metadata, highest_consumer + 1)]
            grown = self._admin.create_partitions(wanted_partitions, request_timeout=REQUEST_TIMEOUT_S)
            try:
                grown[names.metadata].result()
            except KafkaException as error:
                raise KcgaError(
                    f"{names.metadata} has {existing} partitions; consumers up to {highest_consumer} need "
                    f"{highest_consumer + 1}, and they cannot be added: {reason(error.args[0])}"
                ) from error
            self._wait_until_told({names.metadata: highest_consumer + 1})


def _bounds(retention_ms: int, *, segment_ms: int, megabytes: int) -> dict[str, int | str]:
    """The settings of a topic none of whose partitions holds more than that, and a segment: by age and by size.

    Brokers delete whole segments, and never the one that they write to. So segments are small, and short. The
    time of a record is that of its arrival, by the brokers' clock: those of the senders may be any.
    """
    segment = max(megabytes // 8, 4)
    return {
        "retention.ms": retention_ms,
        "retention.bytes": megabytes * MEGABYTE,
        "segment.ms": segment_ms,
        "segment.bytes": segment * MEGABYTE,
        **ARRIVAL,
    }


def _as_words(settings: Mapping[str, int | str]) -> dict[str, str]:
    return {name: str(value) for name, value in settings.items()}


def _unless_refused(topic: str, answer: Future[Any]) -> Any:
    """What the brokers answer; None where they refuse it: the group works without bounds, only not for ever."""
    try:
        return answer.result()
    except KafkaException as error:
        if error.args[0].code() not in NOT_ALLOWED:
            log.warning("a topic cannot be given its bounds", topic=topic, reason=reason(error.args[0]))
        return None
