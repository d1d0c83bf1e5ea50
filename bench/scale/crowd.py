"""All simulated consumers and the simulated monitor, in one thread; and what they see of the controller."""

import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer
from confluent_kafka import TopicPartition as Position

from bench.machine_alone import MachineAlone
from bench.scale.gaps import Gaps
from bench.scale.process import GROUP, NAMES
from consumer.decide import actions
from controller.settings import ControllerSettings
from domain.assignment import ConsumerId
from domain.messages import ConsumerCommand, Decision, WriteSpeedReport
from domain.partitions import TopicPartition
from domain.speeds import Lag, WriteSpeeds
from domain.topics import CONTROLLER_PARTITION
from sandbox.background import Background

REPORT_EVERY_S = 1.0
"""The heartbeat of each consumer, and the interval of the monitor."""
LARGE = {"compression.type": "lz4", "message.max.bytes": 50_000_000}
"""Ten thousand speeds are one record."""


@dataclass(slots=True)
class Fake:
    """A consumer that reads nothing; whatever it asks for is done at once."""

    machine: MachineAlone
    report_at: float
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
                for partition in fake.machine.held:
                    held.setdefault(partition, []).append(number)
            return held

    def readers(self) -> list[ConsumerId]:
        """The consumers that hold a partition, in ascending order."""
        with self._lock:
            return sorted(number for number, fake in self._fakes.items() if fake.machine.held)

    def kill(self, consumer: ConsumerId) -> int:
        """The consumer dies, and the controller's fleet knows it at once; how many partitions it held."""
        with self._lock:
            fake = self._fakes.pop(consumer)
            self._pipe.send(frozenset({consumer}))
            self.gaps.begin(fake.machine.held, time.monotonic(), died=True)
            return len(fake.machine.held)

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
                now = time.monotonic()
                # Heartbeats are spread over the interval, as those of processes that began at different times are.
                beats_at = now + REPORT_EVERY_S * (1 + (number % 97) / 97)
                self._fakes[number] = Fake(MachineAlone(number, uuid.uuid4().hex, GROUP, now), beats_at)
                self._look(self._fakes[number])
            elif (fake := self._fakes.pop(number, None)) is not None:
                self._pipe.send(frozenset({number}))
                self.gaps.begin(fake.machine.held, time.monotonic(), died=True)

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
                self._look(fake, ConsumerCommand.decode(value))

    def _look(self, fake: Fake, *commands: ConsumerCommand) -> None:
        """The consumer looks around, and obeys what has come."""
        now = time.monotonic()
        for action in fake.machine.look(now, *commands):
            match action:
                case actions.StopReading(partitions=partitions):
                    self.gaps.begin(partitions, now)
                case actions.ReadFrom(positions=positions):
                    self.gaps.end(positions, now)
                case actions.Send(report=report):
                    fake.report_at = max(fake.report_at, now + REPORT_EVERY_S)
                    self._send(NAMES.metadata, report.model_copy(update={"sent_at": time.time()}).encode())
                    self.traffic.reports += 1
                case _:
                    pass

    def _report(self) -> None:
        now = time.monotonic()
        for fake in self._fakes.values():
            if fake.report_at <= now:
                self._look(fake)
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
