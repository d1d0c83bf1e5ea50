"""What the components of a group say to one another, written down as it arrives."""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as Position

from domain.messages import (
    ConsumerCommand,
    ConsumerReport,
    Cycle,
    Decision,
    WriteSpeedReport,
    decode_to_controller,
)
from domain.partitions import TopicPartition
from domain.topics import CONTROLLER_PARTITION, TopicNames
from sandbox.background import Background


@dataclass(frozen=True, slots=True)
class Told:
    """A partition's write speed, when it arrived."""

    at: float
    speed: float


@dataclass
class Transcript(Background):
    """Listens from entering the context to leaving it; the lists only ever grow.

    Args:
        bootstrap_servers: of the cluster.
        names: of the topics, which exist.
        highest_consumer: commands up to this consumer's are heard.
    """

    bootstrap_servers: str
    names: TopicNames
    highest_consumer: int
    speeds: list[tuple[float, WriteSpeedReport]] = field(default_factory=list)
    """With the moment of their arrival, in seconds since the epoch."""
    decisions: list[Decision] = field(default_factory=list)
    commands: list[ConsumerCommand] = field(default_factory=list)
    reports: list[ConsumerReport] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__("transcript")
        self._failure: Exception | None = None

    def wait_until(self, condition: Callable[[], bool], what: str, within_s: float = 90.0) -> None:
        """Returns once that is so.

        Raises:
            TimeoutError: it is not so in time.
            RuntimeError: what is said cannot be heard any more.
        """
        deadline = time.monotonic() + within_s
        while not condition():
            if self._failure is not None:
                raise RuntimeError(f"what the components say cannot be heard: {self._failure}") from self._failure
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: not within {within_s:g} s")
            time.sleep(0.05)

    def told(self, partition: TopicPartition, since: float, until: float) -> list[Told]:
        """The known speeds of a partition that arrived in this time."""
        return [
            Told(at, entry.speed)
            for at, report in list(self.speeds)
            if since <= at < until
            for entry in report.partitions
            if entry.key == partition and entry.speed is not None
        ]

    def held(self) -> set[TopicPartition]:
        """What the consumers read by their newest reports."""
        newest = {report.consumer: report for report in list(self.reports)}
        return {partition.key for report in newest.values() for partition in report.partitions}

    def cycles(self) -> list[Cycle]:
        return [report.cycle for report in list(self.reports) if report.cycle is not None]

    def _work(self) -> None:
        try:
            self._listen()
        except Exception as error:
            self._failure = error

    def _listen(self) -> None:
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap_servers, "group.id": uuid.uuid4().hex, "fetch.wait.max.ms": 10}
        )
        consumer.assign(
            [Position(topic, 0, 0) for topic in (self.names.write_speed, self.names.decisions)]
            + [Position(self.names.metadata, partition, 0) for partition in range(self.highest_consumer + 1)]
        )
        try:
            while not self._stop.is_set():
                for record in consumer.consume(500, 0.05):
                    if (error := record.error()) is not None:
                        raise KafkaException(error)
                    self._write_down(record.topic() or "", record.partition(), record.value() or b"")
        finally:
            consumer.close()

    def _write_down(self, topic: str, partition: int | None, value: bytes) -> None:
        if topic == self.names.write_speed:
            self.speeds.append((time.time(), WriteSpeedReport.decode(value)))
        elif topic == self.names.decisions:
            self.decisions.append(Decision.decode(value))
        elif partition == CONTROLLER_PARTITION:
            message = decode_to_controller(value)
            if isinstance(message, ConsumerReport):
                self.reports.append(message)
        else:
            self.commands.append(ConsumerCommand.decode(value))
