"""Reads what the consumers say, and what their group has committed, with nothing but a plain Kafka consumer.

The clients of administration are not used here: librdkafka ends the process (an assertion) where one of their requests
meets a broker that is killed.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException
from confluent_kafka import TopicPartition as Position

from brokers import log_offsets
from domain.assignment import ConsumerId
from domain.messages import ConsumerReport, ConsumerState, ControllerClaim, MessageError, decode_to_controller
from domain.partitions import TopicPartition
from domain.topics import CONTROLLER_PARTITION
from sandbox.readers import MostReaders, ReadLog, gaps_s, most_readers

REQUEST_LIMIT_S = 20.0
AT_ONCE = 1000
HOUR_S = 3600.0


def by_brokers_clock(report: ConsumerReport, arrived_at: float) -> ConsumerReport:
    """The report with its times as they are by the brokers' clock.

    The consumer's may be whole hours from it, now, and others when it read: every time is within half an hour of the
    report's arrival.
    """

    def moved(moment: float) -> float:
        return moment - HOUR_S * round((moment - arrived_at) / HOUR_S)

    cycle = report.cycle
    if cycle is not None:
        reads = tuple(
            read.model_copy(
                update={"first_read_at": moved(read.first_read_at), "last_read_at": moved(read.last_read_at)}
            )
            for read in cycle.reads
        )
        cycle = cycle.model_copy(update={"reads": reads})
    return report.model_copy(update={"sent_at": moved(report.sent_at), "cycle": cycle})


class Witness:
    """Of one run.

    Args:
        bootstrap_servers: of the cluster.
        group: whose commits are looked at.
        metadata_topic: where reports are; all of it is read.
        topics: with data, and how many partitions each has.
        silent_after_s: who has not reported for so long is not counted.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        group: str,
        metadata_topic: str,
        topics: Mapping[str, int],
        silent_after_s: float,
    ) -> None:
        self._client = {"bootstrap.servers": bootstrap_servers, "log_level": 0, "enable.auto.commit": False}
        self._group = group
        self._metadata_topic = metadata_topic
        self._connect()
        self._partitions = [TopicPartition(topic, number) for topic in topics for number in range(topics[topic])]
        self._silent_after_s = silent_after_s
        self._reads = ReadLog()
        self._newest: dict[ConsumerId, ConsumerReport] = {}
        self.reasons: set[str] = set()
        """All that reports have told: what is amiss, and what was passed over."""
        self._claim: ControllerClaim | None = None

    def _connect(self) -> None:
        self._reports = Consumer({**self._client, "group.id": "witness"})
        self._reports.assign([Position(self._metadata_topic, CONTROLLER_PARTITION, OFFSET_BEGINNING)])
        self._commits = Consumer({**self._client, "group.id": self._group})

    def connect_again(self) -> None:
        """A client that a frozen broker has led astray is not what is looked at."""
        self.close()
        self._connect()

    def close(self) -> None:
        self._reports.close()
        self._commits.close()

    @property
    def most_readers(self) -> MostReaders:
        """By all reports so far: they tell of what was written to the lake."""
        return most_readers(self._reads.stints)

    @property
    def gaps_s(self) -> list[float]:
        """Of each partition, from the last record that one reader read to the first that the next one did."""
        return gaps_s(self._reads.stints)

    @property
    def claim(self) -> ControllerClaim | None:
        """The newest of the newest controller."""
        self.listen()
        return self._claim

    def listen(self) -> None:
        """Takes in all that has come."""
        came = AT_ONCE
        while came == AT_ONCE:
            records = self._reports.consume(AT_ONCE, 0.5)
            came = len(records)
            for record in records:
                if record.error() is not None:
                    continue
                try:
                    message = decode_to_controller(record.value())
                except MessageError:
                    continue
                match message:
                    case ConsumerReport():
                        self._take(by_brokers_clock(message, record.timestamp()[1] / 1000))
                    case ControllerClaim():
                        self._claim = max(self._claim or message, message, key=lambda each: (each.epoch, each.sequence))

    def _take(self, report: ConsumerReport) -> None:
        self._reads.add(report)
        if report.reason is not None:
            self.reasons.add(report.reason)
        newest = self._newest.get(report.consumer)
        # Old ones come again.
        if newest is None or report.sent_at > newest.sent_at:
            self._newest[report.consumer] = report

    def converged(self) -> bool:
        """Whether each partition is held by one consumer, and the group has committed all of it."""
        return self.placed() and self._everything_is_committed()

    def placed(self) -> bool:
        """Whether each partition is held by one consumer."""
        held = sorted(partition for partitions in self.held().values() for partition in partitions)
        return held == sorted(self._partitions)

    def held(self) -> dict[ConsumerId, list[TopicPartition]]:
        """What each consumer holds that was heard of lately."""
        self.listen()
        return {
            consumer: [partition.key for partition in report.partitions]
            for consumer, report in self._newest.items()
            if report.state is not ConsumerState.LEAVING and time.time() - report.sent_at < self._silent_after_s
        }

    def picture(self) -> str:
        """What each consumer holds, and what is not committed: for whoever looks into a group that did not converge."""
        held = (f"{number}: {', '.join(map(str, partitions))}" for number, partitions in sorted(self.held().items()))
        try:
            behind = ", ".join(
                f"{partition} {records:,}" for partition, records in self._uncommitted().items() if records
            )
        except KafkaException as error:
            behind = f"not told, {error}"
        return f"held: {'; '.join(held) or 'nothing'}\nrecords that are not committed: {behind or 'none'}"

    def committed(self) -> int:
        """How many records the group has committed. Waits for brokers that have just begun again."""
        while True:
            try:
                return sum(max(0, at.offset) for at in self._committed())
            except KafkaException:
                time.sleep(0.5)

    def records(self) -> int:
        """In all partitions. They are written without transactions, so every offset is one."""
        beginnings = self._told(log_offsets.beginnings)
        return sum(end - beginnings[partition] for partition, end in self._told(log_offsets.ends).items())

    def _told(
        self, ask: Callable[[Consumer, Iterable[TopicPartition], float], dict[TopicPartition, int]]
    ) -> dict[TopicPartition, int]:
        """What the brokers say of every partition. Waits for those that have just begun again."""
        while True:
            with suppress(KafkaException):
                told = ask(self._commits, self._partitions, REQUEST_LIMIT_S)
                if len(told) == len(self._partitions):
                    return told
            time.sleep(0.5)

    def _committed(self) -> list[Position]:
        positions = [Position(partition.topic, partition.partition) for partition in self._partitions]
        return self._commits.committed(positions, timeout=REQUEST_LIMIT_S)

    def _everything_is_committed(self) -> bool:
        try:
            uncommitted = self._uncommitted()
        except KafkaException:
            return False
        return len(uncommitted) == len(self._partitions) and not any(uncommitted.values())

    def _uncommitted(self) -> dict[TopicPartition, int]:
        """How many records of each partition that the brokers tell of."""
        committed = {TopicPartition(at.topic, at.partition): max(0, at.offset) for at in self._committed()}
        ends = log_offsets.ends(self._commits, self._partitions, REQUEST_LIMIT_S)
        return {partition: end - committed[partition] for partition, end in ends.items()}
