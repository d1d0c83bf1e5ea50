"""Whether the brokers answer, have the topics, and let this principal do what the components do."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient

from app import figures
from app.access import client_config
from app.errors import KcgaError
from app.settings import Settings
from app.topics import Cluster
from brokers.clients import QUIET
from brokers.errors import in_one_line
from cli.doctor.finding import Finding
from cli.rights import CLUSTER, Component, Resource, operations_on, rights
from domain.group_view.sources import sources_sentence
from domain.partitions import TopicPartition
from domain.speeds import Source
from monitor.broker_logs import first_look, sources_of
from monitor.cluster_logs import BrokerAwayError, ClusterLogs
from monitor.connection import ConnectionSettingsError
from monitor.measure.interest import Interest, Topic, topics_of_interest
from monitor.prometheus import PrometheusAwayError

REQUEST_TIMEOUT_S = 15.0
OF_KAFKA = frozenset({"__consumer_offsets", "__transaction_state"})
"""Topics without which nothing is committed."""
CREATE = "Create"
"""What is not needed for what exists."""


def check_kafka(settings: Settings) -> Iterator[Finding]:
    kafka = settings.kafka
    try:
        config = client_config(kafka)
        cluster = Cluster(kafka.bootstrap_servers, config)
        partitions, replicas = cluster.partitions(), cluster.replicas()
    except KcgaError as error:
        yield Finding.fault(str(error), "correct kafka.bootstrap_servers and kafka.client, or start the brokers")
        return
    yield Finding(f"Kafka answers at {kafka.bootstrap_servers}, with {len(partitions):,} topics")
    admin = AdminClient({**QUIET, **config, "bootstrap.servers": kafka.bootstrap_servers})
    of_cluster = _of_cluster(admin)
    names, observes = settings.topics, settings.controller.observes
    own = set() if observes else {names.write_speed, names.metadata, names.decisions}
    if not observes:
        yield from _own_topics(settings, partitions, of_cluster)
    yield from _single_replicas(*replicas, own | OF_KAFKA)
    interest = topics_of_interest(settings.monitor.topics, {name: Topic(name, "", {}) for name in partitions}, own)
    yield from _topics_to_read(interest, partitions)
    try:
        yield from _sources(settings, own)
    except ConnectionSettingsError as error:
        yield Finding.fault(
            f"the monitor cannot connect with kafka.client: {error}", "use properties that it knows too"
        )
    yield from _rights(settings, admin, sorted(interest.topics.keys() | own & partitions.keys()), of_cluster)


def _own_topics(
    settings: Settings, partitions: dict[str, int], of_cluster: Collection[AclOperation] | None
) -> Iterator[Finding]:
    names, most = settings.topics, settings.controller.highest_consumer
    for name, needed in ((names.write_speed, 1), (names.metadata, most + 1), (names.decisions, 1)):
        existing = partitions.get(name)
        if existing is None and (of_cluster is None or AclOperation.CREATE in of_cluster):
            yield Finding(f"{name} does not exist yet: the first component that runs creates it")
        elif existing is None:
            yield Finding.fault(
                f"{name} does not exist, and may not be created", f"create it with {needed} partitions, or allow Create"
            )
        elif existing < needed:
            yield Finding.note(
                f"{name} has {existing} partitions, and max_consumers needs {needed}",
                "the controller adds them where it may (Alter on the topic)",
            )
        else:
            yield Finding(f"{name} has {figures.plural(existing, 'partition')}")


def _single_replicas(brokers: int, replicas: Mapping[str, int], topics: Iterable[str]) -> Iterator[Finding]:
    """New topics have as many replicas as the brokers' `default.replication.factor` says, which is 1 unless set."""
    single = [name for name in sorted(topics) if replicas.get(name) == 1]
    if brokers > 1 and single:
        yield Finding.note(
            f"{', '.join(single)}: a single replica, though there are {brokers} brokers; while one of them is away for "
            "longer than consumer.lease_s, all consumers may end",
            "add replicas (kafka-reassign-partitions.sh), and set default.replication.factor of the brokers",
        )


def _topics_to_read(interest: Interest, partitions: dict[str, int]) -> Iterator[Finding]:
    for asked in sorted(interest.missing):
        remedy = "create it, correct it, or allow Describe"
        yield Finding.fault(f"no topic answers to {asked!r} in monitor.topics", remedy)
    if interest.topics:
        count = sum(partitions[name] for name in interest.topics)
        yield Finding(
            f"{figures.plural(len(interest.topics), 'topic')} to read, with {figures.plural(count, 'partition')}"
        )


def _sources(settings: Settings, own: Collection[str]) -> Iterator[Finding]:
    """What the monitor would be told of write speeds."""
    kafka, source = settings.kafka, settings.monitor.source
    cluster = ClusterLogs(kafka.bootstrap_servers, client_config(kafka), settings.monitor.request_timeout_s)
    try:
        interest = topics_of_interest(settings.monitor.topics, cluster.topics(), own)
        told = list(first_look(cluster, interest.led, settings.monitor))
    except PrometheusAwayError as error:
        yield Finding.fault(f"write speeds cannot be measured: {error}", "correct the settings monitor.prometheus_*")
        return
    except BrokerAwayError as error:
        yield Finding.fault(
            f"write speeds cannot be measured: {error}",
            'allow it (kcga acls prints the rights), or set monitor.source = "auto"',
        )
        return
    finally:
        cluster.close()
    sources = sources_of(told)
    if (said := sources_sentence(sources)) is None:
        yield from (Finding(f"write speeds are measured by {each.source}") for each in sources)
    elif source in (Source.OFFSETS, Source.PROMETHEUS):
        yield Finding(said)
    else:
        yield Finding.note(said, "allow it for exact ones, or leave it")
    if untold := sorted(frozenset[TopicPartition]().union(*(each.untold for each in told))):
        yield Finding.fault(
            f"Prometheus knows nothing of {figures.plural(len(untold), 'partition')}, the first is {untold[0]}",
            "correct monitor.prometheus_query or monitor.prometheus_labels, or have those brokers scraped",
        )
    for topic in sorted(frozenset[str]().union(*(each.unreadable for each in told))):
        yield Finding.fault(
            f"not allowed: Read on the topic {topic}, to learn how large its records are",
            "add the ACL (kcga acls prints it)",
        )


def _of_cluster(admin: AdminClient) -> Collection[AclOperation] | None:
    """What may be done to the cluster; None where the brokers do not tell."""
    try:
        described = admin.describe_cluster(
            include_authorized_operations=True, request_timeout=REQUEST_TIMEOUT_S
        ).result()
    except KafkaException:
        return None
    operations: Collection[AclOperation] | None = described.authorized_operations
    return operations


def _rights(
    settings: Settings, admin: AdminClient, topics: Iterable[str], of_cluster: Collection[AclOperation] | None
) -> Iterator[Finding]:
    """What this principal may not do of all that the components do; of transactional ids the brokers tell nothing.

    Args:
        settings: they say what the components do, and to which groups.
        admin: of the cluster.
        topics: which exist, of those that the components use.
        of_cluster: what may be done to the cluster; None where that is not known.
    """
    described: dict[str, Future[Any]] = admin.describe_topics(
        TopicCollection(list(topics)), include_authorized_operations=True, request_timeout=REQUEST_TIMEOUT_S
    )
    granted = rights(settings)
    if settings.controller.observes:  # then no other component runs
        granted = tuple(right for right in granted if right.component is Component.CONTROLLER)
    groups = {right.name for right in granted if right.resource is Resource.GROUP}
    described_groups: dict[str, Future[Any]] = admin.describe_consumer_groups(
        sorted(groups), include_authorized_operations=True, request_timeout=REQUEST_TIMEOUT_S
    )
    needed = operations_on(granted, Resource.CLUSTER, CLUSTER) if settings.monitor.source != "auto" else ()
    lacking = _lacking(of_cluster, needed, "the cluster")
    for resource, answers in ((Resource.TOPIC, described), (Resource.GROUP, described_groups)):
        for name, answer in answers.items():
            wanted, where = operations_on(granted, resource, name) - {CREATE}, f"the {resource} {name}"
            try:
                lacking += _lacking(answer.result(REQUEST_TIMEOUT_S).authorized_operations, wanted, where)
            except KafkaException as error:
                lacking.append(f"Describe on {where} ({in_one_line(error)})")
    for each in lacking:
        yield Finding.fault(
            f"not allowed: {each}", "add the ACL (kcga acls prints it), or use another principal in kafka.client"
        )
    if not lacking:
        yield Finding("the brokers allow what the components do with topics and groups")


def _lacking(allowed: Collection[AclOperation] | None, wanted: Iterable[str], where: str) -> list[str]:
    """The operations that are not allowed; none where that is not known."""
    if allowed is None:
        return []
    names = {operation.name.replace("_", "").lower() for operation in allowed}
    return [f"{operation} on {where}" for operation in sorted(wanted) if operation.lower() not in names]
