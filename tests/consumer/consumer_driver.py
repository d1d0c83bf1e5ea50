"""What tests of a whole consumer need: producers, and somebody who plays the controller's part."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient

from consumer.runner import run
from consumer.threads import in_thread
from domain.messages import Action, ConsumerCommand, ConsumerReport, Order, PartitionRef, decode_to_controller
from domain.partitions import TopicPartition
from tests.consumer.consumer_program import ConsumerProgram
from tests.patience import PATIENCE_S, wait_until


class Driver:
    """Sends commands on a metadata topic, and keeps every report that comes back.

    Args:
        bootstrap_servers: of the broker.
        metadata_topic: which exists.
        group: the consumers' group.
    """

    def __init__(self, bootstrap_servers: str, metadata_topic: str, group: str) -> None:
        self.metadata_topic = metadata_topic
        self.group = group
        self.reports: list[ConsumerReport] = []
        self._config = {"bootstrap.servers": bootstrap_servers}
        self._producer = Producer({**self._config, "message.max.bytes": 10_000_000})
        self._consumer = Consumer({**self._config, "group.id": f"{group}.driver", "enable.auto.commit": False})
        self._consumer.assign([Position(metadata_topic, 0, 0)])
        self._sequence = 0

    def close(self) -> None:
        self._consumer.close()
        self._producer.close()

    def command(
        self,
        action: Action,
        partitions: Iterable[TopicPartition],
        to: ConsumerReport,
        sequence: int | None = None,
        seal: Iterable[str] = (),
    ) -> Order:
        """Sends a command to the process that reported; the next in order, unless a sequence is given."""
        if sequence is None:
            self._sequence += 1
            sequence = self._sequence
        command = ConsumerCommand(
            consumer=to.consumer,
            incarnation=to.incarnation,
            epoch=1,
            plan=1,
            sequence=sequence,
            action=action,
            partitions=tuple(map(PartitionRef.of, partitions)),
            seal=tuple(seal),
        )
        self.send(to.consumer, command.encode())
        return command.order

    def send(self, partition: int, value: bytes) -> None:
        self._producer.produce(self.metadata_topic, value, partition=partition)
        assert self._producer.flush(PATIENCE_S) == 0

    def produce(self, partition: TopicPartition, first: int, count: int, size: int = 200, timestamp: int = 0) -> None:
        """Records number `first` to `first + count - 1` of the partition, each `size` bytes, of this time (0: now)."""
        self._producer.list_topics(partition.topic)  # a partition may be newer than what the producer knows
        for number in range(first, first + count):
            self._producer.produce(
                partition.topic,
                f"{partition} {number} ".encode().ljust(size, b"."),
                partition=partition.partition,
                timestamp=timestamp,
            )
            if number % 1000 == 0:
                self._producer.poll(0)
        assert self._producer.flush(PATIENCE_S) == 0

    def produce_aborted(self, partition: TopicPartition, count: int) -> None:
        """So many records of a transaction that is aborted."""
        producer = Producer({**self._config, "transactional.id": f"{self.group}.driver"})
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        for _ in range(count):
            producer.produce(partition.topic, b"void", partition=partition.partition)
        assert producer.flush(PATIENCE_S) == 0
        producer.abort_transaction(PATIENCE_S)
        producer.close()

    def delete_before(self, partition: TopicPartition, offset: int) -> None:
        """Removes the partition's records before the offset, as retention does."""
        admin = AdminClient({**self._config})
        position = Position(partition.topic, partition.partition, offset)
        admin.delete_records([position])[position].result(PATIENCE_S)

    def wait_for(self, condition: Callable[[ConsumerReport], bool], *, seen: bool = True) -> ConsumerReport:
        """The first report that meets the condition, of those seen already (unless told otherwise) and to come."""
        checked = 0 if seen else len(self.reports)
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            for report in self.reports[checked:]:
                if condition(report):
                    return report
            checked = len(self.reports)
            self._receive()
        raise AssertionError(f"no such report; the last ones: {self.reports[-3:]}")

    def listen(self, seconds: float) -> None:
        """Takes in the reports of so long a time."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._receive()

    def start(self, partitions: Iterable[TopicPartition], to: ConsumerReport) -> ConsumerReport:
        """Starts the partitions, and waits for the acknowledgement."""
        return self.acknowledgement(to, self.command(Action.START, partitions, to))

    def stop(self, partitions: Iterable[TopicPartition], to: ConsumerReport) -> ConsumerReport:
        """Stops the partitions, and waits for the acknowledgement."""
        return self.acknowledgement(to, self.command(Action.STOP, partitions, to))

    def acknowledgement(self, of: ConsumerReport, order: Order) -> ConsumerReport:
        return self.wait_for(lambda report: report.incarnation == of.incarnation and report.applied >= order)

    def read_by(self, incarnation: str | None = None) -> int:
        """Records that were read and written, by the reports so far."""
        return sum(
            report.cycle.records
            for report in self.reports
            if report.cycle and incarnation in (None, report.incarnation)
        )

    def wait_until_read(self, count: int) -> None:
        """Waits until so many records were read and written by all consumers together."""
        if self.read_by() < count:
            self.wait_for(lambda _: self.read_by() >= count, seen=False)

    def wait_until_committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Waits until the group has committed these."""

        def are_committed() -> bool:
            self.listen(0.5)
            return self.committed(offsets) == offsets

        wait_until(are_committed, lambda: self.reports[-3:])

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets that the group has committed."""
        return {held: self._committed(held).offset for held in partitions}

    def note(self, of: TopicPartition) -> str | None:
        """What the group has committed with the offset."""
        note: str | None = self._committed(of).metadata
        return note

    def place(self, consumer: int) -> str | None:
        """The command that the consumer has persisted as the last one it carried out."""
        return self.note(TopicPartition(self.metadata_topic, consumer))

    def _committed(self, of: TopicPartition) -> Position:
        consumer = Consumer({**self._config, "group.id": self.group})
        try:
            (position,) = consumer.committed([Position(of.topic, of.partition)], timeout=PATIENCE_S)
        finally:
            consumer.close()
        return position

    def _receive(self) -> None:
        for record in self._consumer.consume(100, 0.1):
            assert record.error() is None, record.error()
            message = decode_to_controller(record.value())
            if isinstance(message, ConsumerReport):
                self.reports.append(message)


class RunningConsumer:
    """A consumer in a thread of this process."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.stop = threading.Event()
        self._ended: Future[None] = in_thread(lambda: run(**arguments, stop=self.stop))

    def leave(self) -> None:
        """Tells it to leave, and waits for its end; raises what it raised."""
        self.stop.set()
        self._ended.result(PATIENCE_S)

    def end(self, within_s: float = PATIENCE_S) -> BaseException | None:
        """Waits for an end that it comes to by itself: what it raised."""
        return self._ended.exception(within_s)


StartConsumer = Callable[..., RunningConsumer]
"""`start_consumer(number, **settings)` begins a consumer; it is told to leave at the end of the test."""
StartProcess = Callable[..., ConsumerProgram]
"""`start_process(number, fault=None, **settings)` begins one in a process of its own, which is killed at the end of the
test; of faults tells `consumer_program`."""
