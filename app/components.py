"""Runs one component in this process until it is asked to end: what `kcga monitor|controller|consumer|spark` do."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from app.access import client_config
from app.errors import KcgaError, UsageError
from app.interrupts import stop_on_signals
from app.revision import revisions_of
from app.settings import Settings, load
from app.spark_needs import with_jars
from app.topics import NOT_ALLOWED, Cluster
from brokers.errors import reason
from domain.consumer_class import ORDINARY
from domain.topics import TopicNames

if TYPE_CHECKING:
    from controller.fleet import ConsumerFleet
    from controller.runner import Audience


def run_monitor(file: Path) -> None:
    from app.telemetry import monitor as telemetry
    from monitor.connection import ConnectionSettingsError
    from monitor.measure.interest import is_expression
    from monitor.runner import Monitor

    settings = load(file)
    _cluster(settings).require(topic for topic in settings.monitor.topics if not is_expression(topic))
    topics = settings.topics
    try:
        monitor = Monitor(
            settings.monitor,
            settings.kafka.bootstrap_servers,
            client_config(settings.kafka),
            write_speed_topic=topics.write_speed,
            own_topics=frozenset({topics.write_speed, topics.metadata, topics.decisions}),
            group=settings.kafka.group,
        )
        with telemetry.observed(settings) as observe, stop_on_signals() as stop:
            monitor.run(stop, observe)
    except ConnectionSettingsError as error:
        raise UsageError(f"kafka.client in {file}: {error}") from error


def run_controller(file: Path) -> None:
    from app.telemetry import controller as telemetry

    settings = load(file)
    if settings.controller.observes:
        from app.observe import run_observer

        run_observer(settings)
        return
    with telemetry.observed(settings) as audience, stop_on_signals() as stop:
        control(settings, file, stop, audience)


def control(
    settings: Settings,
    file: Path,
    stop: threading.Event,
    audience: "Audience",
    limited: Callable[["ConsumerFleet"], "ConsumerFleet"] = lambda fleet: fleet,
) -> None:
    """Controls one group until `stop` is set.

    Args:
        settings: of the group.
        file: that they are from.
        stop: is set when another one takes the group's Lease, too.
        audience: is told of all that the controller does.
        limited: the fleet as the controller is to have it.

    Raises:
        UsageError: it is only to observe.
        KcgaError: the cluster cannot be used, or another controller of the group has begun.
    """
    if settings.controller.observes:
        raise UsageError(f"{file}: a controller of mode observe controls nothing")
    import solver
    from controller.kafka import DeposedError, KafkaLink
    from controller.runner import run

    # A search that loads what it needs has less time for the plan: it is there before the first one. No daemon, for a
    # process that ends while native code is loaded crashes.
    threading.Thread(target=solver.load, name="kcga-solver-load").start()
    cluster = _cluster(settings)
    require_no_topics_before(settings, cluster)
    kafka = settings.kafka
    with _fleet(settings, file, stop, audience.stands_by) as fleet:
        if fleet is None:
            return
        link = KafkaLink(kafka.bootstrap_servers, kafka.group, client_config(kafka), settings.topics.names)
        try:
            run(settings.of_controller, link, limited(fleet), solver.solve, stop, audience=audience)
        except DeposedError as error:
            raise KcgaError(str(error)) from error
        except KafkaException as error:
            why = reason(error.args[0])
            raise KcgaError(f"Kafka at {kafka.bootstrap_servers} does not serve the controller: {why}") from error
        finally:
            link.close()


def require_no_topics_before(settings: Settings, cluster: Cluster) -> None:
    """Sees to it that a group goes on where it was: before 0.2 its topics did not carry it unless settings named them.

    Raises:
        UsageError: the group has spoken on the topics that it had then, and no controller has claimed it on those of
            now.
        KcgaError: it is not known whether that is so.
    """
    from controller.kafka import KafkaLink

    kafka, own, before = settings.kafka, settings.topics, TopicNames()
    if own.metadata == before.metadata or "metadata" in own.model_fields_set:
        return
    if before.metadata not in cluster.partitions():
        return

    def link(names: TopicNames) -> closing[KafkaLink]:
        return closing(KafkaLink(kafka.bootstrap_servers, kafka.group, client_config(kafka), names))

    try:
        with link(own.names) as now, link(before) as then:
            goes_on_there = not now.has_been_claimed() and then.has_been_used()
    except KafkaException as error:
        if error.args[0].code() in NOT_ALLOWED:  # who may not read a topic has not used it
            return
        raise KcgaError(
            f"Kafka at {kafka.bootstrap_servers} does not tell whether the group {kafka.group!r} was on "
            f"{before.metadata}: {reason(error.args[0])}; a controller begins once that is known, or [topics] has "
            f"metadata = {own.metadata!r} or {before.metadata!r}"
        ) from error
    if goes_on_there:
        raise UsageError(
            f"the group {kafka.group!r} was on {before.metadata}, and no controller of it yet on {own.metadata}: "
            f"topics carry the group since 0.2. To go on where it was, set [topics] write_speed = "
            f"{before.write_speed!r}, metadata = {before.metadata!r}, decisions = {before.decisions!r}; or, where no "
            f"monitor, controller and consumer of it runs any more, metadata = {own.metadata!r}"
        )


@contextmanager
def _fleet(
    settings: Settings, file: Path, stop: threading.Event, stands_by: Callable[[], None]
) -> Iterator["ConsumerFleet | None"]:
    """Where the consumers are, once this controller may begin; None where it is asked to end before."""
    if settings.fleet == "kubernetes":
        from app.kubernetes import on_kubernetes

        with on_kubernetes(settings, file, stop, stands_by) as deployments:
            yield deployments
    else:
        from controller.local_processes import LocalProcesses

        local = settings.local
        of_consumers = local.consumer_settings or file
        yield LocalProcesses(
            local.folder,
            lambda consumer, class_name: consumer_command(consumer, of_consumers, class_name),
            local.grace_s,
            lambda: revisions_of(of_consumers),
        )


def run_consumer(number: int, file: Path, class_name: str = ORDINARY) -> None:
    from app import memory
    from app.telemetry import consumer as telemetry
    from consumer.runner import ConsumerError, run

    settings = with_jars(load(file))
    memory.keep_little()
    try:
        with telemetry.observed(settings, number) as observe, stop_on_signals() as stop:
            run(
                consumer=number,
                group=settings.kafka.group,
                bootstrap_servers=settings.kafka.bootstrap_servers,
                client_config=client_config(settings.kafka),
                settings=settings.consumer.of_class(class_name),
                metadata_topic=settings.topics.metadata,
                stop=stop,
                observe=observe,
            )
    except ConsumerError as error:
        raise KcgaError(f"consumer {number} ends: {error}") from error


def run_spark(file: Path) -> None:
    from app.child import POLL_S, Child
    from app.java import find_java
    from app.spark_needs import needs
    from app.spark_server import SparkServer

    settings = load(file)
    own, needed = settings.spark, needs(settings.consumer.schemes)
    with TemporaryDirectory(prefix="kcga-spark-") as folder, stop_on_signals() as stop:
        server = SparkServer(
            folder=Path(folder),
            host=own.host,
            port=own.port,
            java=find_java(),
            jars=needed.delta,
            of_stores=needed.of_stores,
            heap_mb=own.heap_mb,
            master=own.master,
            address=own.address,
            conf={**needed.conf, **own.conf},
            long_running=True,
        )
        command, shown = server.prepare(), Path("/dev/stderr")
        with Child("Spark", command, shown, folder=Path(folder), environment=server.environment) as spark:
            while spark.running and not stop.wait(POLL_S):
                pass
        if not stop.is_set():
            raise KcgaError(f"Spark {spark.ending}")


def command(*arguments: str) -> list[str]:
    """A kcga command in this environment."""
    return [sys.executable, "-m", "cli.main", *arguments]


def consumer_command(consumer: int, file: Path, class_name: str = ORDINARY) -> list[str]:
    of_class = ["--class", class_name] if class_name != ORDINARY else []
    return command("consumer", str(consumer), "--settings", str(file.resolve()), *of_class)


def _cluster(settings: Settings) -> Cluster:
    """The cluster, with the topics that the components talk through."""
    cluster = Cluster(settings.kafka.bootstrap_servers, client_config(settings.kafka))
    cluster.ensure_internal_topics(settings.topics.names, settings.controller.highest_consumer)
    return cluster
