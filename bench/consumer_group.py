"""Consumers that are measured: real processes, told what to read as the controller would tell them."""

import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position

from app.child import Child
from app.components import consumer_command
from app.topics import Cluster
from domain.messages import Action, ConsumerCommand, ConsumerReport, ConsumerState, PartitionRef, decode_to_controller
from domain.partitions import TopicPartition

PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class WrittenCycle:
    """A cycle of a consumer, by its report."""

    bytes: int
    records: int
    reported_at: float
    """Seconds since the epoch."""
    seconds: float
    """Since the report of the cycle before; of the first one, since the consumer was told to read."""

    @property
    def bytes_per_s(self) -> float:
        return self.bytes / self.seconds


@dataclass(slots=True)
class _Consumer:
    child: Child
    started_at: float
    ready: ConsumerReport | None = None
    read_from: float = 0.0
    cycles: list[WrittenCycle] = field(default_factory=list)


class MeasuredGroup:
    """A group of consumers, and the bench in the controller's part. A context, at whose end none is left.

    Args:
        bootstrap_servers: of a broker.
        name: of the group, and the first part of its topics' names.
        folder: takes settings and logs.
        consumer_settings: the section `consumer` of the settings.
        cores: which the consumers may use; all if none are named.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        name: str,
        folder: Path,
        consumer_settings: Mapping[str, object],
        cores: Collection[int] = (),
    ) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._cores = cores
        self._metadata = f"{name}.metadata"
        self._settings = folder / "settings.toml"
        self._settings.write_text(_settings(bootstrap_servers, name, self._metadata, consumer_settings))
        self._bootstrap_servers = bootstrap_servers
        self._consumers: dict[int, _Consumer] = {}
        self._stack = ExitStack()
        self._sequence = 0
        Cluster(bootstrap_servers).create({self._metadata: 9})
        self._producer = Producer({"bootstrap.servers": bootstrap_servers})
        self._reports = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": f"{name}.bench"})
        self._reports.assign([Position(self._metadata, 0, 0)])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        self._reports.close()
        self._producer.close()

    def start(self, number: int) -> float:
        """Starts consumer N and waits until it is ready; how long that took, in seconds."""
        child = Child(f"consumer {number}", consumer_command(number, self._settings), self._folder / f"{number}.log")
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, self._cores or before)  # the child inherits it
        try:
            consumer = self._consumers[number] = _Consumer(child, time.time())
            self._stack.enter_context(child)
        finally:
            os.sched_setaffinity(0, before)
        self._listen_until(lambda: consumer.ready is not None)
        return time.time() - consumer.started_at

    def read(self, number: int, partitions: Iterable[TopicPartition]) -> None:
        """Tells consumer N to read these partitions too."""
        consumer = self._consumers[number]
        assert consumer.ready is not None
        self._sequence += 1
        command = ConsumerCommand(
            consumer=number,
            incarnation=consumer.ready.incarnation,
            epoch=1,
            plan=1,
            sequence=self._sequence,
            action=Action.START,
            partitions=tuple(map(PartitionRef.of, sorted(partitions))),
        )
        consumer.read_from = time.time()
        self._producer.produce(self._metadata, command.encode(), partition=number)
        self._producer.flush(PATIENCE_S)

    def cycles(self, number: int) -> Sequence[WrittenCycle]:
        """What consumer N has reported so far."""
        return self._consumers[number].cycles

    def process(self, number: int) -> psutil.Process:
        return psutil.Process(self._consumers[number].child.pid)

    def seconds_to_first_cycle(self, number: int) -> float:
        """From the start of consumer N until its first batch was written and committed."""
        consumer = self._consumers[number]
        self._listen_until(lambda: bool(consumer.cycles))
        return consumer.cycles[0].reported_at - consumer.started_at

    def listen_until_read(self, size_bytes: int, limit_s: float) -> None:
        """Takes in reports until all consumers together have read so much, or for so long."""
        until = time.monotonic() + limit_s
        while self.bytes_read < size_bytes and time.monotonic() < until:
            self._receive()

    def listen(self, seconds: float) -> None:
        """Takes in reports for so long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._receive()

    @property
    def bytes_read(self) -> int:
        """By all consumers, as far as they have reported."""
        return sum(cycle.bytes for consumer in self._consumers.values() for cycle in consumer.cycles)

    def _listen_until(self, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > until:
                raise SystemExit(f"a consumer does not answer; its log is in {self._folder}")
            self._receive()

    def _receive(self) -> None:
        for record in self._reports.consume(100, 0.1):
            message = decode_to_controller(record.value())
            if not isinstance(message, ConsumerReport):
                continue
            consumer = self._consumers[message.consumer]
            if message.state is ConsumerState.READY and consumer.ready is None:
                consumer.ready = message
            if message.cycle is not None:
                before = consumer.cycles[-1].reported_at if consumer.cycles else consumer.read_from
                consumer.cycles.append(
                    WrittenCycle(message.cycle.bytes, message.cycle.records, message.sent_at, message.sent_at - before)
                )


def _settings(bootstrap_servers: str, name: str, metadata_topic: str, consumer_settings: Mapping[str, object]) -> str:
    """The file's content: JSON's texts and numbers are TOML's too."""
    lines = ["[kafka]", f"bootstrap_servers = {json.dumps(bootstrap_servers)}", f"group = {json.dumps(name)}"]
    lines += ["[topics]", f"metadata = {json.dumps(metadata_topic)}", "[monitor]", 'topics = ["^.*"]', "[consumer]"]
    lines += [f"{setting} = {json.dumps(value)}" for setting, value in consumer_settings.items()]
    return "\n".join(lines) + "\n"
