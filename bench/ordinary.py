"""An ordinary consumer, as users of Kafka have it today: Kafka's group decides what it reads, kcga's writer writes it.

`python -m bench.ordinary N --settings FILE` runs until it is asked to end. It gathers as kcga's consumer does
(BATCH_BYTES, WAIT_TIME_SECS), appends to the same kind of table, and commits after that. Who dies or is moved between
the two has its records written again: this is at least once.
"""

import argparse
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import structlog
from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as Position

from app.interrupts import stop_on_signals
from app.logs import configure
from app.settings import Settings, load
from app.spark_needs import with_jars
from consumer.decide.batch import Batch, Record
from consumer.decide.cycle import FetchPhase
from consumer.kafka import fetching_config
from consumer.lake import Lake
from consumer.table import rows
from domain.partitions import TopicPartition

ASSIGNOR = "cooperative-sticky"

log = structlog.get_logger()


class OrdinaryConsumer:
    """A member of Kafka's group.

    Args:
        number: its client is named after it.
        settings: of a kcga group: cluster, group, topics and lake are taken from it.
    """

    def __init__(self, number: int, settings: Settings) -> None:
        self._phase = FetchPhase(settings.consumer.batch_bytes, settings.consumer.wait_time_secs)
        common = {"bootstrap.servers": settings.kafka.bootstrap_servers, "client.id": f"ordinary-{number}"}
        config = fetching_config(common, settings.kafka.group, settings.consumer.batch_bytes)
        begins = {"auto.offset.reset": "earliest", "partition.assignment.strategy": ASSIGNOR}
        self._consumer = Consumer({**config, **begins})
        self._topics = list(settings.monitor.topics)
        spark = settings.consumer
        self._lake = Lake(spark.sparks, spark.lake_root, f"ordinary/{number}/{uuid.uuid4().hex}", spark.places)
        self._version = 0

    def run(self, settings: Settings) -> None:
        """Reads and writes until the process is asked to end."""
        self._lake.connect()
        self._consumer.subscribe(self._topics, on_assign=_assigned, on_revoke=_revoked)
        log.info("begins", group=settings.kafka.group)
        with stop_on_signals() as stop:
            while not stop.is_set():
                batch = self._gather()
                if batch.records:
                    self._write(batch)
        self._consumer.close()
        self._lake.close()

    def _gather(self) -> Batch:
        batch, largest = Batch(), 0
        began = time.monotonic()
        while (ask := self._phase.next_ask(batch.bytes, time.monotonic() - began, largest, writing=False)) is not None:
            first_at = time.time()
            records = [_record(message) for message in self._consumer.consume(ask.records, ask.wait_s)]
            read = [record for record in records if record is not None]
            batch.add(read, first_at, time.time())
            largest = max(largest, *(record.bytes for record in read), 0)
        return batch

    def _write(self, batch: Batch) -> None:
        self._version += 1
        today = datetime.now(UTC).date()
        for topic, records in batch.by_topic.items():
            self._lake.append(topic, self._version, rows(records, today))
        offsets = [Position(p.topic, p.partition, reached.offset) for p, reached in batch.positions.items()]
        self._consumer.commit(offsets=offsets, asynchronous=False)


def _assigned(_consumer: Consumer, partitions: Sequence[Position]) -> None:
    log.info("assigned", partitions=_names(partitions))


def _revoked(_consumer: Consumer, partitions: Sequence[Position]) -> None:
    log.info("revoked", partitions=_names(partitions))


def _names(partitions: Sequence[Position]) -> list[str]:
    return [str(TopicPartition(position.topic, position.partition)) for position in partitions]


def _record(message: Message) -> Record | None:
    """None for an error, which the client mends by itself."""
    error = message.error()
    if error is not None:
        log.warning("a kafka client reports an error", error=error.str())
        return None
    _, timestamp_ms = message.timestamp()
    partition = TopicPartition(message.topic() or "", message.partition() or 0)
    return Record(partition, message.offset() or 0, timestamp_ms, message.key(), message.value(), ())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.ordinary", description="An ordinary consumer.")
    parser.add_argument("number", type=int)
    parser.add_argument("--settings", type=Path, required=True)
    options = parser.parse_args()
    configure(f"ordinary {options.number}")
    settings = with_jars(load(options.settings))
    OrdinaryConsumer(options.number, settings).run(settings)


if __name__ == "__main__":
    main()
