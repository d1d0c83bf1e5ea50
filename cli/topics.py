"""The topics on a cluster: those that kcga's components talk through are made, those that are read must exist."""

from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from cli.errors import KcgaError
from cli.refusals import of_settings, reason
from domain.topics import TopicNames

REQUEST_TIMEOUT_S = 15.0
AN_HOUR_MS = 3_600_000
RETRY_EVERY_MS = 5_000


class Cluster:
    """A Kafka cluster that answers.

    Raises:
        UsageError: the client's settings are wrong.
        KcgaError: no broker answers.
    """

    def __init__(self, bootstrap_servers: str, client_config: Mapping[str, str] | None = None) -> None:
        self._bootstrap_servers = bootstrap_servers
        # What librdkafka has to say about brokers that are away is said in one line, by the error.
        self._complaints: list[KafkaError] = []
        quiet: dict[str, Any] = {
            "log_level": 0,
            "reconnect.backoff.max.ms": RETRY_EVERY_MS,
            "error_cb": self._complaints.append,
        }
        with of_settings():
            self._admin = AdminClient({**quiet, **(client_config or {}), "bootstrap.servers": bootstrap_servers})
        self.partitions()

    def partitions(self) -> dict[str, int]:
        """How many partitions each topic has."""
        try:
            listed = self._admin.list_topics(timeout=REQUEST_TIMEOUT_S)
        except KafkaException as error:
            self._admin.poll(0)  # only then does the client tell what it has to complain of
            why = reason(error.args[0], self._complaints)
            raise KcgaError(
                f"no Kafka broker answers at {self._bootstrap_servers} within {REQUEST_TIMEOUT_S:g} s: {why}; is it "
                "running, and are address and security settings right?"
            ) from error
        self._complaints.clear()
        return {name: len(topic.partitions) for name, topic in listed.topics.items()}

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

    def create(self, topics: Mapping[str, int], *, retention_ms: Mapping[str, int] | None = None) -> None:
        """Creates the topics that do not exist, with so many partitions each.

        Raises:
            KcgaError: one is refused.
        """
        retention = retention_ms or {}
        existing = self.partitions()
        missing = [
            NewTopic(
                name,
                num_partitions=count,
                config={"retention.ms": str(retention[name])} if name in retention else {},
            )
            for name, count in topics.items()
            if name not in existing
        ]
        if not missing:
            return
        for name, created in self._admin.create_topics(missing, operation_timeout=REQUEST_TIMEOUT_S).items():
            try:
                created.result(REQUEST_TIMEOUT_S)
            except KafkaException as error:
                # Another component may have made it in the meantime.
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise KcgaError(f"the topic {name} cannot be created: {reason(error.args[0])}") from error

    def delete(self, prefix: str) -> None:
        """Deletes all topics whose names begin so, as far as the cluster allows."""
        names = [name for name in self.partitions() if name.startswith(prefix)]
        for deleted in self._admin.delete_topics(names).values() if names else ():
            deleted.exception(REQUEST_TIMEOUT_S)

    def ensure_internal_topics(self, names: TopicNames, highest_consumer: int) -> None:
        """Makes the three topics as needed; the metadata topic has a partition for the controller and each consumer.

        Raises:
            KcgaError: one is refused.
        """
        wanted = {names.write_speed: 1, names.metadata: highest_consumer + 1, names.decisions: 1}
        self.create(
            wanted,
            retention_ms={
                names.write_speed: AN_HOUR_MS,
                names.metadata: AN_HOUR_MS,
                names.decisions: 30 * 24 * AN_HOUR_MS,
            },
        )
        existing = self.partitions().get(names.metadata, highest_consumer + 1)
        if existing <= highest_consumer:
            grown = self._admin.create_partitions([NewPartitions(names.metadata, highest_consumer + 1)])
            try:
                grown[names.metadata].result(REQUEST_TIMEOUT_S)
            except KafkaException as error:
                raise KcgaError(
                    f"{names.metadata} has {existing} partitions; consumers up to {highest_consumer} need "
                    f"{highest_consumer + 1}, and they cannot be added: {reason(error.args[0])}"
                ) from error
