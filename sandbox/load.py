"""The load generator: producers that write real records at the speeds of a profile, and count what was delivered.

`python -m sandbox.load --settings FILE` runs the demo's profile until it is asked to end, and then prints its
report as one JSON object.
"""

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from app.access import client_config
from app.errors import KcgaError
from app.interrupts import stop_on_signals
from app.logs import configure
from app.settings import load as load_settings
from brokers.clients import ON_NEW_TOPICS, QUIET
from brokers.errors import in_one_line, log_error
from domain.partitions import TopicPartition
from sandbox.load_profile import LoadProfile, demo_profile
from sandbox.records import records

_TICK_S = 0.1
_LONGEST_STEP_S = 1.0
"""Time that passes unnoticed beyond this (the machine slept, the brokers did) is not made up for in one burst."""

_KNOWN_WITHIN_S = 5.0
"""Brokers hear of a new topic one after the other."""
_CONNECT_WITHIN_S = 15.0
_FLUSH_WITHIN_S = 30.0

_PRODUCER = {
    **ON_NEW_TOPICS,
    "acks": "all",
    "enable.idempotence": True,
    "compression.type": "none",  # so that the bytes in the log are about those of the profile
    "linger.ms": 20,
    "queue.buffering.max.kbytes": 16 * 1024,
    "delivery.timeout.ms": 60_000,
    "topic.metadata.refresh.interval.ms": 10_000,
    **QUIET,
}


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What became of the records."""

    delivered: Mapping[TopicPartition, int]
    """How many the brokers acknowledged."""
    undelivered: int
    """How many failed or were not acknowledged in time: each may or may not be in the log."""
    problem: str | None
    """Why the first of them failed, or why the client could not go on."""

    def as_json(self) -> dict[str, Any]:
        """`delivered` by topic and partition, its sum as `produced`, and the rest as it is."""
        by_topic: dict[str, dict[str, int]] = {}
        for partition, count in sorted(self.delivered.items()):
            by_topic.setdefault(partition.topic, {})[str(partition.partition)] = count
        return {
            "produced": sum(self.delivered.values()),
            "undelivered": self.undelivered,
            "problem": self.problem,
            "delivered": by_topic,
        }


def run_load(
    bootstrap_servers: str,
    profile: LoadProfile,
    *,
    stop: threading.Event,
    duration_s: float | None = None,
    seed: int = 0,
    client_config: Mapping[str, str] = MappingProxyType({}),
    begins: Callable[[], None] = lambda: None,
) -> LoadReport:
    """Produces at the speeds of the profile until `stop` is set or `duration_s` seconds of the profile are done.

    Ends earlier if the client cannot go on; then the report has a `problem`. What the brokers do not take (they are too
    slow, or away) is not made up for.

    Args:
        seed: the same one makes the same records, partition by partition.
        client_config: further settings of the producer by librdkafka's names.
        begins: called when the first record is due.

    Raises:
        KcgaError: no broker answers, or a topic does not have the partitions that the profile needs.
    """
    producer = _CountingProducer(bootstrap_servers, client_config, profile, seed)
    producer.require_partitions()
    begins()
    written = dict.fromkeys(profile.partitions, 0)
    into_profile_s, last = 0.0, time.monotonic()
    try:
        while not stop.is_set() and (duration_s is None or into_profile_s < duration_s):
            for partition in profile.partitions:
                due = int(profile.courses[partition].bytes_until(into_profile_s))
                while written[partition] < due:
                    size = producer.produce_next(partition)
                    written[partition] = due if size is None else written[partition] + size
            producer.serve_callbacks()
            stop.wait(_TICK_S)
            now = time.monotonic()
            into_profile_s += min(now - last, _LONGEST_STEP_S)
            last = now
    except KafkaException as error:
        producer.give_up(error)
    return producer.close()


class _CountingProducer:
    """A producer that makes up its records itself, and knows what became of them."""

    def __init__(
        self, bootstrap_servers: str, client_config: Mapping[str, str], profile: LoadProfile, seed: int
    ) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._topics = profile.topics
        self._streams = {partition: records(partition, seed) for partition in profile.partitions}
        self._refused: dict[TopicPartition, tuple[bytes, bytes]] = {}
        self._delivered = dict.fromkeys(profile.partitions, 0)
        self._accepted = 0
        self._problem: str | None = None
        self._producer = Producer(
            {
                **_PRODUCER,
                **client_config,
                "bootstrap.servers": bootstrap_servers,
                "on_delivery": self._count,
                "error_cb": log_error,
            }
        )

    def require_partitions(self) -> None:
        deadline = time.monotonic() + _KNOWN_WITHIN_S
        while (lacking := self._lacking()) is not None:
            if time.monotonic() > deadline:
                raise KcgaError(lacking)
            time.sleep(_TICK_S)

    def _lacking(self) -> str | None:
        """What there is not of what it takes, as some broker knows."""
        try:
            existing = self._producer.list_topics(timeout=_CONNECT_WITHIN_S).topics
        except KafkaException as error:
            raise KcgaError(f"no Kafka broker answers at {self._bootstrap_servers}: {in_one_line(error)}") from error
        for topic, needed in self._topics.items():
            partitions = len(existing[topic].partitions) if topic in existing else 0
            if partitions < needed:
                has = f"it has {partitions}" if topic in existing else "there is no such topic"
                return f"the load needs {needed} partitions of the topic {topic}; at {self._bootstrap_servers} {has}"
        return None

    def produce_next(self, partition: TopicPartition) -> int | None:
        """Hands the next record over; its size in bytes, or None if the queue is full: the brokers do not keep up."""
        refused = self._refused.pop(partition, None)
        key, value = next(self._streams[partition]) if refused is None else refused
        try:
            self._producer.produce(partition.topic, value, key, partition.partition)
        except BufferError:
            self._refused[partition] = (key, value)
            return None
        self._accepted += 1
        return len(key) + len(value)

    def serve_callbacks(self) -> None:
        self._producer.poll(0)

    def give_up(self, error: KafkaException) -> None:
        self._problem = in_one_line(error)

    def close(self) -> LoadReport:
        """Waits until what was handed over is acknowledged or given up."""
        self._producer.flush(_FLUSH_WITHIN_S)
        undelivered = self._accepted - sum(self._delivered.values())
        if undelivered and self._problem is None:
            self._problem = f"not acknowledged within {_FLUSH_WITHIN_S:g} s"
        return LoadReport(self._delivered, undelivered, self._problem)

    def _count(self, error: KafkaError | None, message: "Message[bytes, bytes]") -> None:
        if error is not None:
            self._problem = self._problem or error.str()
            return
        topic, partition = message.topic(), message.partition()
        if topic is not None and partition is not None:
            self._delivered[TopicPartition(topic, partition)] += 1


def main() -> None:
    """Runs the demo's profile on the cluster of a settings file."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.load", description=run_load.__doc__)
    parser.add_argument("--settings", type=Path, required=True, help="the settings file (TOML)")
    parser.add_argument("--prefix", default="", help="of the names of the topics")
    parser.add_argument("--oversized", action="store_true", help="one partition is too fast for a consumer for a while")
    parser.add_argument("--seconds", type=float, help="end by itself after so many")
    parser.add_argument("--began", type=Path, help="a file to make when the first record is due")
    parser.add_argument("--seed", type=int, default=0, help="the same one makes the same records")
    options = parser.parse_args()
    configure("load")
    settings = load_settings(options.settings)
    began: Path | None = options.began
    with stop_on_signals() as stop:
        report = run_load(
            settings.kafka.bootstrap_servers,
            demo_profile(settings.controller.consumer_capacity, options.prefix, oversized=options.oversized),
            stop=stop,
            duration_s=options.seconds,
            seed=options.seed,
            client_config=client_config(settings.kafka),
            begins=lambda: began.touch() if began is not None else None,
        )
    json.dump(report.as_json(), sys.stdout)
    if report.problem is not None:
        raise KcgaError(f"the load generator could not go on: {report.problem}")


if __name__ == "__main__":
    try:
        main()
    except KcgaError as error:
        sys.exit(f"kcga: {error}")
