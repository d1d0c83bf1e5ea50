"""Runs one component in this process until it is asked to end: what `kcga monitor|controller|consumer` do."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from confluent_kafka import KafkaException

from cli.errors import KcgaError
from cli.settings import Settings, load
from cli.topics import ensure_topics


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """An event that SIGTERM and SIGINT (Ctrl-C) set."""
    stop = threading.Event()

    def ask(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    previous = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def run_monitor(file: Path) -> None:
    from monitor.runner import Monitor

    settings = load(file)
    _ensure_topics(settings)
    with stop_on_signals() as stop:
        Monitor(
            settings.monitor,
            settings.kafka.bootstrap_servers,
            dict(settings.kafka.client),
            write_speed_topic=settings.topics.write_speed,
        ).run(stop)


def run_controller(file: Path) -> None:
    from controller.kafka import DeposedError, KafkaLink
    from controller.local_processes import LocalProcesses
    from controller.runner import run
    from solver import solve

    settings = load(file)
    _ensure_topics(settings)
    kafka = settings.kafka
    fleet = LocalProcesses(
        settings.local.folder, lambda consumer: consumer_command(consumer, file), settings.local.grace_s
    )
    link = KafkaLink(kafka.bootstrap_servers, kafka.group, kafka.client, settings.topics.names)
    try:
        with stop_on_signals() as stop:
            run(settings.controller, link, fleet, solve, stop)
    except DeposedError as error:
        raise KcgaError(str(error)) from error
    except KafkaException as error:
        raise KcgaError(f"Kafka at {kafka.bootstrap_servers} does not serve the controller: {error}") from error
    finally:
        link.close()


def run_consumer(number: int, file: Path) -> None:
    from consumer.runner import run

    settings = load(file)
    with stop_on_signals() as stop:
        run(
            consumer=number,
            group=settings.kafka.group,
            bootstrap_servers=settings.kafka.bootstrap_servers,
            client_config=dict(settings.kafka.client),
            settings=settings.consumer,
            metadata_topic=settings.topics.metadata,
            stop=stop,
        )


def command(*arguments: str) -> list[str]:
    """A kcga command in this environment."""
    return [sys.executable, "-m", "cli.main", *arguments]


def consumer_command(consumer: int, file: Path) -> list[str]:
    return command("consumer", str(consumer), "--settings", str(file.resolve()))


def _ensure_topics(settings: Settings) -> None:
    kafka = settings.kafka
    ensure_topics(kafka.bootstrap_servers, kafka.client, settings.topics.names, settings.controller.max_consumers)
