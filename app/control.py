"""What an operator asks of the controller: to pause, to go on, to make a plan, to try a mended table."""

import time
from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from app.access import client_config
from app.errors import KcgaError
from app.refusals import of_settings
from app.settings import Settings
from app.topics import Cluster
from brokers.clients import QUIET
from brokers.errors import reason
from domain.messages import ControlAction, ControlRequest
from domain.printable import printable
from domain.topics import CONTROLLER_PARTITION

REQUEST_TIMEOUT_S = 15.0


def require_parked(topic: str, parked_or_on_trial: Iterable[str]) -> None:
    """Only such a topic can be asked to be tried at once; who asks while it is on trial has its pauses begin anew.

    Raises:
        KcgaError: it is neither parked nor on trial.
    """
    names = list(parked_or_on_trial)
    if topic not in names:
        there_are = f"it must be one of {', '.join(names)}" if names else "no topic is"
        raise KcgaError(f"{printable(topic)} is not parked: {there_are}")


def ask(settings: Settings, action: ControlAction, of_topic: str | None = None) -> str:
    """Sends the request; returns what is to be said of it. The controller acts on it within a second.

    Raises:
        KcgaError: the cluster does not take it, or no controller that manages has ever run with these settings.
    """
    kafka, topic = settings.kafka, settings.topics.metadata
    if settings.controller.observes:
        raise KcgaError(f"the controller of {kafka.group} only observes (controller.mode): it takes no requests")
    config = client_config(kafka)
    if topic not in Cluster(kafka.bootstrap_servers, config).partitions():
        raise KcgaError(
            f"there is no topic {topic} at {kafka.bootstrap_servers}: no controller has run with these settings"
        )
    failure: list[KafkaError] = []

    def delivered(error: KafkaError | None, _record: Message) -> None:
        if error is not None:
            failure.append(error)

    with of_settings():
        producer = Producer({**QUIET, **config, "bootstrap.servers": kafka.bootstrap_servers})
    request = ControlRequest(group=kafka.group, action=action, topic=of_topic, sent_at=time.time())
    try:
        producer.produce(topic, request.encode(), partition=CONTROLLER_PARTITION, on_delivery=delivered)
        waiting = producer.flush(REQUEST_TIMEOUT_S)
    except (KafkaException, BufferError) as error:
        raise KcgaError(f"{topic} at {kafka.bootstrap_servers} takes no request: {error}") from error
    if failure or waiting:
        why = reason(failure[0]) if failure else f"no answer within {REQUEST_TIMEOUT_S:g} s"
        raise KcgaError(f"{topic} at {kafka.bootstrap_servers} takes no request: {why}")
    what = action.value if of_topic is None else f"{action.value} {of_topic}"
    return f"the controller of {kafka.group} was asked to {what}"
