"""Makes the topics that kcga's components talk through, where they do not exist."""

from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from cli.errors import KcgaError
from controller.kafka import TopicNames

REQUEST_TIMEOUT_S = 15.0
AN_HOUR_MS = 3_600_000


def ensure_topics(
    bootstrap_servers: str, client_config: Mapping[str, str], names: TopicNames, max_consumers: int
) -> None:
    """Creates the three topics as needed; the metadata topic has a partition for the controller and each consumer.

    Raises:
        KcgaError: no broker answers, or one refuses.
    """
    admin = AdminClient({**client_config, "bootstrap.servers": bootstrap_servers})
    existing = _partitions(admin, bootstrap_servers)
    wanted = {names.write_speed: 1, names.metadata: max_consumers + 1, names.decisions: 1}
    retention = {names.write_speed: AN_HOUR_MS, names.metadata: AN_HOUR_MS, names.decisions: 30 * 24 * AN_HOUR_MS}
    missing = [
        NewTopic(name, num_partitions=count, config={"retention.ms": str(retention[name])})
        for name, count in wanted.items()
        if name not in existing
    ]
    if missing:
        for name, created in admin.create_topics(missing, operation_timeout=REQUEST_TIMEOUT_S).items():
            try:
                created.result(REQUEST_TIMEOUT_S)
            except KafkaException as error:
                # Another component made it in the meantime.
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise KcgaError(f"the topic {name} cannot be created: {error.args[0].str()}") from error
    if existing.get(names.metadata, wanted[names.metadata]) < wanted[names.metadata]:
        grown = admin.create_partitions([NewPartitions(names.metadata, wanted[names.metadata])])
        try:
            grown[names.metadata].result(REQUEST_TIMEOUT_S)
        except KafkaException as error:
            raise KcgaError(
                f"{names.metadata} has {existing[names.metadata]} partitions; max_consumers = {max_consumers} needs "
                f"{wanted[names.metadata]}, and they cannot be added: {error.args[0].str()}"
            ) from error


def _partitions(admin: AdminClient, bootstrap_servers: str) -> dict[str, int]:
    """How many partitions each topic has."""
    try:
        listed = admin.list_topics(timeout=REQUEST_TIMEOUT_S)
    except KafkaException as error:
        raise KcgaError(
            f"no Kafka broker answers at {bootstrap_servers} ({error.args[0].str()}): "
            "is it running, and is kafka.bootstrap_servers right?"
        ) from error
    return {name: len(topic.partitions) for name, topic in listed.topics.items()}
