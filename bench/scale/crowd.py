"""All simulated consumers and the simulated monitor, in one thread; and what they see of the controller."""

import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer
from confluent_kafka import TopicPartition as Position

from bench.scale.gaps import Gaps
from bench.scale.process import NAMES
from cli.background import Background
from consumer.commands import Holding
from controller.settings import ControllerSettings
from domain.assignment import ConsumerId
from domain.messages import (
    ConsumerCommand,
    ConsumerReport,
    ConsumerState,
    Decision,
    PartitionRef,
    WriteSpeedReport,
)
from domain.partitions import TopicPartition
from domain.speeds import Lag, WriteSpeeds
from domain.topics import CONTROLLER_PARTITION

REPORT_EVERY_S = 1.0
"""The heartbeat of each consumer, and the interval of the monitor."""
LARGE = {"compression.type": "lz4", "message.max.bytes": 50_000_000}
"""Ten thousand speeds are one record."""


@dataclass(slots=True)
class Fake:
    """A consumer that reads nothing."""

    holding: Holding
    reports: int = 0
    report_at: float = 0.0
    """When the next heartbeat is due."""


@dataclass(slots=True)
class Traffic:
    """Messages, counted where they are sent and where they arrive."""

    commands: int = 0
    reports: int = 0
    speeds: int = 0
    """Reports of the monitor."""
    delivered: int = 0
    errors: list[str] = field(default_factory=list)


class Crowd(Background):
    """All simulated consumers, the simulated monitor, and who reads the decisions; works in its own thread.

    Args:
        servers: of the broker.
        settings: of the controller: how many consumers there may be.
        pipe: the other end of the controller's.
    """

    def __init__(self, servers: str, settings: ControllerSettings, pipe: Connection) -> None:
        super().__init__("crowd")
        self.traffic = Traffic()
        self.decisions: list[tuple[float, Decision]] = []
        """With when each arrived, on the monotonic clock."""
        self.gaps = Gaps()
        """How long each partition was without a reader, on the same clock."""
        self._pipe = pipe
        self._fakes: dict[ConsumerId, Fake] = {}
        self._speeds: Mapping[TopicPartition, float] = {}
        self._told_at = 0.0
        self._lock = threading.Lock()
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, **LARGE})
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "crowd",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 50,
            }
        )
        self._consumer.assign(
            [
                Position(NAMES.decisions, 0, OFFSET_BEGINNING),
                *(Position(NAMES.metadata, n, OFFSET_BEGINNING) for n in range(1, settings.highest_consumer + 1)),
            ]
        )

    def publish(self, speeds: Mapping[TopicPartition, float]) -> None:
        """From now on these are the write speeds."""
        with self._lock:
            self._speeds = speeds
            self._told_at = 0.0

    def held(self) -> dict[TopicPartition, list[ConsumerId]]:
        """Who holds each partition."""
        with self._lock:
            held: dict[TopicPartition, list[ConsumerId]] = {}
            for number, fake in self._fakes.items():
                for partition in fake.holding.stints:
                    held.setdefault(partition, []).append(number)
            return held

    def readers(self) -> list[ConsumerId]:
        """The consumers that hold a partition, in ascending order."""
        with self._lock:
            return sorted(number for number, fake in self._fakes.items() if fake.holding.stints)

    def kill(self, consumer: ConsumerId) -> int:
        """The consumer dies, and the controller's fleet knows it at once; how many partitions it held."""
        with self._lock:
            fake = self._fakes.pop(consumer)
            self._pipe.send(frozenset({consumer}))
            self.gaps.begin(fake.holding.stints, time.monotonic(), died=True)
            return len(fake.holding.stints)

    def _work(self) -> None:
        while not self._stop.is_set():
            records = self._consumer.consume(2000, 0.02)
            with self._lock:
                self._obey_the_fleet()
                for record in records:
                    self._take(record)
                self._report()
            self._producer.poll(0)
        self._producer.flush(30)
        self._consumer.close()

    def _obey_the_fleet(self) -> None:
        while self._pipe.poll():
            what, number = self._pipe.recv()
            if what == "create":
                self._fakes[number] = Fake(Holding(number, uuid.uuid4().hex))
            elif (fake := self._fakes.pop(number, None)) is not None:
                self._pipe.send(frozenset({number}))
                self.gaps.begin(fake.holding.stints, time.monotonic(), died=True)

    def _take(self, record: Message) -> None:
        value = record.value()
        if record.error() is not None or value is None:
            self.traffic.errors.append(str(record.error()))
        elif record.topic() == NAMES.decisions:
            self.decisions.append((time.monotonic(), Decision.decode(value)))
        else:
            self.traffic.commands += 1
            fake = self._fakes.get(record.partition() or 0)
            if fake is not None:
                fake.holding, change = fake.holding.apply([ConsumerCommand.decode(value)])
                fake.report_at = 0.0
                self.gaps.begin(change.stop, time.monotonic())
                self.gaps.end(change.start, time.monotonic())

    def _report(self) -> None:
        now = time.monotonic()
        for number, fake in self._fakes.items():
            if fake.report_at <= now:
                # Spread over the interval, as those of processes that began at different times are.
                fake.report_at = now + REPORT_EVERY_S * (1.0 if fake.reports else (number % 97) / 97)
                fake.reports += 1
                self._send(NAMES.metadata, _report_of(number, fake).encode())
                self.traffic.reports += 1
        if self._speeds and now >= self._told_at + REPORT_EVERY_S:
            self._told_at = now
            none = {partition: Lag(0, 0.0, None) for partition in self._speeds}
            told = WriteSpeeds(time.time(), self._speeds, lags=none)
            self._send(NAMES.write_speed, WriteSpeedReport.of(told).encode())
            self.traffic.speeds += 1

    def _send(self, topic: str, value: bytes) -> None:
        while True:
            try:
                self._producer.produce(topic, value, partition=CONTROLLER_PARTITION, on_delivery=self._delivered)
                return
            except BufferError:
                self._producer.poll(0.05)

    def _delivered(self, error: KafkaError | None, _record: Message) -> None:
        if error is None:
            self.traffic.delivered += 1
        else:
            self.traffic.errors.append(error.str())


def _report_of(number: ConsumerId, fake: Fake) -> ConsumerReport:
    holding = fake.holding
    return ConsumerReport(
        consumer=number,
        incarnation=holding.incarnation,
        sequence=fake.reports,
        sent_at=time.time(),
        state=ConsumerState.READY,
        applied_epoch=holding.applied.epoch,
        applied_sequence=holding.applied.sequence,
        partitions=tuple(PartitionRef.of(partition) for partition in holding.partitions),
    )
