"""Groups that are not kcga's: real consumers of librdkafka and of Java, under a load that goes on."""

import json
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient

from app.jars import KAFKA, obtain
from app.java import OLDEST, Java
from brokers.reading import bounds, records
from tests.conftest import installed
from tests.patience import PATIENCE_S, wait_until
from tests.tools import JAVAC

SOURCE = Path(__file__).parent / "JavaGroup.java"
PAUSE_S = 0.1
COMMIT_EVERY_MS = 500
QUIET = {"log_level": 0}
"""Brokers that are away are away on purpose."""
SLOW_IS_NOT_GONE = {"session.timeout.ms": 300_000}
"""A machine with other work does not make the group rebalance."""
OFFSETS = "__consumer_offsets"
OF_A_GROUP, OF_A_GROUP_BY_KIP_848 = 2, 3
"""The kinds of keys that records of groups have in that topic."""


class RdkafkaGroup:
    """Members of librdkafka, each in a thread.

    Args:
        settings: of the members, by librdkafka's names, those of the connection included.
        group: its name.
        topic: what they read.
    """

    def __init__(self, settings: Mapping[str, str], group: str, topic: str) -> None:
        self._settings: dict[str, Any] = {
            **settings,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": COMMIT_EVERY_MS,
            "statistics.interval.ms": 200,
            **QUIET,
            **({} if settings.get("group.protocol") == "consumer" else SLOW_IS_NOT_GONE),
        }
        self._topic = topic
        self._members: list[tuple[threading.Event, threading.Thread]] = []
        self.assigned: dict[int, int] = {}
        """How many partitions each member has, as it knows."""

    def join(self) -> None:
        """One more."""
        number, leaves = len(self._members), threading.Event()
        member = threading.Thread(target=self._read, args=(number, leaves), daemon=True)
        self._members.append((leaves, member))
        member.start()

    def leave(self) -> None:
        """The newest does."""
        leaves, member = self._members.pop()
        leaves.set()
        member.join()

    def _read(self, number: int, leaves: threading.Event) -> None:
        def told(statistics: str) -> None:
            of_group = json.loads(statistics).get("cgrp", {})
            self.assigned[number] = of_group.get("assignment_size", 0)

        settings = {**self._settings, "client.id": f"app-{number}", "stats_cb": told}
        consumer = Consumer(settings)
        consumer.subscribe([self._topic])
        while not leaves.is_set():
            consumer.consume(500, PAUSE_S)
        consumer.close()

    def __enter__(self) -> "RdkafkaGroup":
        return self

    def __exit__(self, *_: object) -> None:
        for leaves, _thread in self._members:
            leaves.set()
        for _leaves, thread in self._members:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "a member of librdkafka does not end without its brokers"


@contextmanager
def java_group(
    java: Java, servers: str, group: str, topic: str, protocol: str, members: int, folder: Path
) -> Iterator[None]:
    """Members of Kafka's own client, all in one process, whose log and classes come into the folder."""
    path = ":".join(map(str, [folder, *obtain(KAFKA)]))
    # The compiler may be newer than Java.
    compiling: list[str | Path] = [installed(JAVAC), "--release", str(OLDEST), "-cp", path, "-d", folder, SOURCE]
    subprocess.run(compiling, check=True)
    command: list[str | Path] = [java.executable, "-Xmx256m", "-XX:+UseSerialGC", "-cp", path, SOURCE.stem]
    with (folder / "java.log").open("w") as out:
        process = subprocess.Popen(
            [*command, servers, group, topic, protocol, str(members)], stdin=subprocess.PIPE, stdout=out, stderr=out
        )
    try:
        yield
    finally:
        process.communicate(timeout=PATIENCE_S)


@contextmanager
def producing(settings: Mapping[str, str], topic: str, bytes_per_s: Mapping[int, int]) -> Iterator[None]:
    """So much is written to each partition of the topic, in small records, all the while, though turns come late."""
    over = threading.Event()

    def produce() -> None:
        producer = Producer({**settings, **QUIET})
        last = time.monotonic()
        while not over.wait(PAUSE_S):
            last, passed_s = (now := time.monotonic()), min(now - last, 1.0)
            for partition, speed in bytes_per_s.items():
                producer.produce(topic, b"x" * max(1, round(speed * passed_s)), partition=partition)
            producer.poll(0)
        producer.flush(PATIENCE_S)

    writer = threading.Thread(target=produce)
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join()


def until(looks: Iterator[Any], condition: Callable[[Any], bool], most: int = 3_000) -> Any:
    """The first look of which that holds; there are several a second."""
    for _, look in zip(range(most), looks, strict=False):
        if condition(look):
            return look
    raise AssertionError("it has not come to that")


def wait_for_group(settings: Mapping[str, str], group: str, members: int = 1) -> None:
    """Until so many have joined."""
    admin = AdminClient({**settings})

    def have_joined() -> bool:
        with suppress(KafkaException):  # who coordinates the group may be decided just now, for as long as it takes
            told = admin.describe_consumer_groups([group], request_timeout=PATIENCE_S)[group]
            return len(told.result().members) >= members
        return False

    wait_until(have_joined, lambda: "nobody joins", every_s=0.2)


def generation(settings: Mapping[str, str], group: str) -> int:
    """The group's generation, or its epoch by KIP-848, as its coordinator has written it down."""
    reader = Consumer({**settings, "group.id": group, "enable.auto.commit": False})
    with closing(reader):
        told = [
            value
            for partition in reader.list_topics(OFFSETS, PATIENCE_S).topics[OFFSETS].partitions
            for record in _all_of(reader, partition)
            if (value := _generation_in(record, group)) is not None
        ]
    return max(told)


def _all_of(reader: Consumer, partition: int) -> Iterator[Message]:
    start, end = bounds(reader, Position(OFFSETS, partition), PATIENCE_S)
    return records(reader, Position(OFFSETS, partition, start), end, PATIENCE_S)


def _generation_in(record: Message, group: str) -> int | None:
    """None where the record is not of the group itself, but of its offsets, of a member or of another group."""
    key, value = record.key(), record.value()
    if key is None or value is None or key[4:].decode(errors="replace") != group:
        return None
    (kind,) = struct.unpack_from(">h", key)
    if kind == OF_A_GROUP:
        (length,) = struct.unpack_from(">h", value, 2)  # of the name of the protocol's type
        (generation,) = struct.unpack_from(">i", value, 4 + length)
    elif kind == OF_A_GROUP_BY_KIP_848:
        (generation,) = struct.unpack_from(">i", value, 2)
    else:
        return None
    return int(generation)
