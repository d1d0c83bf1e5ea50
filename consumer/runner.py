"""One consumer: the four-phase cycle, from its first report to its last.

Fetch, batch by topic, write and commit, obey and acknowledge: the phases follow one another in one thread, so that
when a command is obeyed nothing that was read awaits its commit. Writes and the opening of a session go on in threads
of their own, while this one waits and keeps the heartbeat.

The order within a cycle is what keeps records: the lake first, then the commit to Kafka, then the acknowledgement.
Before a partition is read it is taken over (`consumer.takeover`), which goes on in a thread of its own while others are
read, and claimed; it is released before a stop is acknowledged. Whatever is interrupted when, the next reader begins at
the first record that is not in the lake, and nobody else writes it.
"""

import threading
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Self, TypeVar

import pyarrow as pa
import structlog
from confluent_kafka import KafkaException

from consumer.backoff import pause_s
from consumer.batch import Batch
from consumer.channel import CommandReader, Reporter
from consumer.claims import RELEASED, Committed, claim, writer
from consumer.commands import Holding
from consumer.cycle import FetchPhase
from consumer.fetcher import Fetcher
from consumer.kafka import FatalKafkaError, brief, common_config, fetching_config, reading_config
from consumer.lake import Lake, LakeError
from consumer.offsets import FencedError, GroupOffsets
from consumer.settings import ConsumerSettings
from consumer.table import rows
from consumer.takeover import take_over
from domain import topics
from domain.assignment import ConsumerId
from domain.messages import ConsumerReport, ConsumerState, Cycle, Order, PartitionRef
from domain.partitions import TopicPartition

Result = TypeVar("Result")

LOOK_EVERY_S = 0.1
"""How often a wait looks at what else there is to do."""
LAST_REPORT_LIMIT_S = 5.0
"""How long the end waits for the last report to arrive."""

log = structlog.get_logger(__name__)


class ConsumerError(RuntimeError):
    """The consumer cannot go on; a new process may. Nothing that it read and did not write was committed."""


def run(
    *,
    consumer: ConsumerId,
    group: str,
    bootstrap_servers: str,
    client_config: Mapping[str, str],
    settings: ConsumerSettings,
    metadata_topic: str = topics.METADATA,
    stop: threading.Event,
    observe: Callable[[ConsumerReport], None] = lambda _: None,
) -> None:
    """Runs consumer N until `stop` is set: it then finishes the batch in hand, says that it leaves, and returns.

    Args:
        consumer: N: commands come on this partition of `metadata_topic`.
        group: the consumer group whose offsets are used. It must have no subscribed member.
        bootstrap_servers: `host:port` of brokers, separated by commas.
        client_config: librdkafka's properties, such as those of security.
        settings: see there.
        metadata_topic: must exist with more than N partitions.
        stop: ends the consumer.
        observe: is told of each report that is sent.

    Raises:
        ConsumerError: it cannot go on: another consumer has taken over from it, or a client of its own failed for good;
            or it had to leave with a batch that the lake did not take.
    """
    try:
        with ConsumerProcess(
            consumer, group, bootstrap_servers, client_config, settings, metadata_topic, stop, observe
        ) as process:
            process.run()
    except FencedError as error:
        raise ConsumerError(f"consumer {consumer}: {error}") from error
    except FatalKafkaError as error:
        raise ConsumerError(f"consumer {consumer}: the Kafka client failed for good: {error}") from error


@dataclass(frozen=True, slots=True)
class _TakeOver:
    """Partitions that are being taken over, each with the stint that it is for."""

    stints: Mapping[TopicPartition, Order]
    positions: Future[dict[TopicPartition, int]]
    give_up_at: float
    """On the monotonic clock."""

    @property
    def ended(self) -> bool:
        return self.positions.done() or time.monotonic() >= self.give_up_at


class ConsumerProcess:
    """One incarnation of a consumer; the arguments are those of `run`. A context that closes its clients at its end."""

    def __init__(
        self,
        consumer: ConsumerId,
        group: str,
        bootstrap_servers: str,
        client_config: Mapping[str, str],
        settings: ConsumerSettings,
        metadata_topic: str,
        stop: threading.Event,
        observe: Callable[[ConsumerReport], None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._stop = stop
        self._observe = observe
        self._metadata_topic = metadata_topic
        self._group = group
        self._holding = Holding(consumer, incarnation=uuid.uuid4().hex)
        self._writer = writer(consumer, self._holding.incarnation)
        self._log = log.bind(consumer=consumer, incarnation=self._holding.incarnation)
        common = common_config(bootstrap_servers, consumer, client_config)
        try:
            reading = reading_config(common, group)
            self._reporter = Reporter(common, metadata_topic)
            self._commands = CommandReader(reading, metadata_topic, consumer)
            self._offsets = GroupOffsets(common, reading, group, self._writer)
            self._fetcher = Fetcher(fetching_config(common, group, settings.batch_bytes))
        except KafkaException as error:
            raise ConsumerError(
                f"consumer {consumer}: the Kafka client refuses its settings: {brief(error)}"
            ) from error
        self._lake = Lake(settings.spark_remote, settings.lake_root, f"{group}/{self._writer}", settings.tables)
        self._phase = FetchPhase(settings.batch_bytes, settings.wait_time_secs)
        self._seal: dict[TopicPartition, tuple[str, ...]] = {}
        """Whom the controller wants sealed before the partition is read."""
        self._taking_over: _TakeOver | None = None
        self._claimed: dict[TopicPartition, int] = {}
        """The partitions that this process claims, and the positions that it has committed."""
        self._ready = False
        self._fault: str | None = None
        self._largest_bytes = 0
        self._version = 0
        self._reports = 0
        self._reported_at = 0.0
        self._reported: tuple[ConsumerState, str | None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reporter.close(LAST_REPORT_LIMIT_S)
        self._commands.close()
        self._fetcher.close()
        if self._taking_over is None:  # its thread would be in the middle of a request
            self._offsets.close()
        self._lake.close()

    def run(self) -> None:
        """Begins, goes through cycles until it is stopped, and leaves."""
        self._take_place()
        self._report()
        self._open_session()
        self._ready = True
        while not self._stop.is_set():
            self._cycle()
        self._release(self._holding.partitions)
        self._report(leaving=True)
        self._log.info("leaves")

    def _take_place(self) -> None:
        """Finds its place among the commands, and among those that commit.

        Nobody has heard of this process before: no command is for it yet, and nobody wants to fence it.

        Raises:
            ConsumerError: there was none within the limit.
        """
        began = time.monotonic()
        failures = 0
        while True:
            try:
                self._commands.begin()
                self._offsets.open()
            except KafkaException as error:
                failures += 1
                fault = f"partition {self._holding.consumer} of {self._metadata_topic}: {brief(error)}"
                self._log.warning("has no place yet", reason=fault)
                if time.monotonic() - began > self._settings.give_up_after_s:
                    raise ConsumerError(
                        f"consumer {self._holding.consumer} cannot read its commands, {fault}"
                    ) from error
                if self._stop.wait(pause_s(failures)):
                    return
            else:
                return

    def _open_session(self) -> None:
        """Opens a Spark session, however long a server takes to come up within the limit.

        Raises:
            ConsumerError: there was none within the limit.
        """
        began = time.monotonic()
        failures = 0
        while not self._stop.is_set():
            opening = in_thread(self._lake.connect)
            self._wait_for([opening], self._settings.write_limit_s)
            fault = _fault_of(opening, self._settings.write_limit_s)
            if fault is None:
                self._log.info("has a Spark session", remote=self._settings.spark_remote)
                return
            failures += 1
            self._set_fault(fault)
            if time.monotonic() - began > self._settings.give_up_after_s:
                raise ConsumerError(f"consumer {self._holding.consumer} has no Spark session: {fault}")
            self._pause(pause_s(failures))

    def _cycle(self) -> None:
        began = time.monotonic()
        batch = self._gather()
        fetched = time.monotonic()
        done: Cycle | None = None
        if batch.records:
            reads = batch.reads(self._holding.stints)
            self._write(batch)
            written = time.monotonic()
            self._claim(batch.next_offsets)
            done = Cycle(
                bytes=batch.bytes,
                records=batch.records,
                fetch_s=fetched - began,
                write_s=written - fetched,
                reads=reads,
            )
        self._set_fault(None)
        obeyed = not self._stop.is_set() and self._obey()
        if done is not None or obeyed:
            self._report(done)
        self._place_what_was_started()
        self._beat()

    def _gather(self) -> Batch:
        """The fetch phase: a batch."""
        batch = Batch()
        began = time.monotonic()
        largest_bytes = 0
        while True:
            elapsed_s = time.monotonic() - began
            taken_over = self._taking_over is not None and self._taking_over.ended
            interrupted = self._stop.is_set() or taken_over or self._commands.waiting()
            ask = self._phase.next_ask(batch.bytes, elapsed_s, self._largest_bytes, interrupted)
            if ask is None:
                break
            fetched = self._fetcher.fetch(ask.records, ask.wait_s)
            batch.add(fetched.records, fetched.first_at, fetched.last_at)
            largest_bytes = max(largest_bytes, *(record.bytes for record in fetched.records), 0)
            self._largest_bytes = max(self._largest_bytes, largest_bytes)
            self._beat()
        if batch.records:
            self._largest_bytes = largest_bytes
        return batch

    def _write(self, batch: Batch) -> None:
        """Writes the batch, every topic at the same time, and again what failed until nothing does.

        Raises:
            ConsumerError: it is told to leave, and the lake does not take the batch; or Spark is gone.
        """
        self._version += 1
        today = datetime.now(UTC).date()
        left = {topic: rows(records, today) for topic, records in batch.by_topic.items()}
        batch.by_topic.clear()
        failures = 0
        while True:
            writes = {topic: in_thread(self._append(topic, table)) for topic, table in left.items()}
            self._wait_for(writes.values(), self._settings.write_limit_s)
            faults = {topic: _fault_of(write, self._settings.write_limit_s) for topic, write in writes.items()}
            left = {topic: left[topic] for topic, fault in faults.items() if fault is not None}
            if not left:
                return
            failures += 1
            fault = next(fault for fault in faults.values() if fault is not None)
            self._set_fault(fault)
            if self._stop.is_set():
                raise ConsumerError(f"consumer {self._holding.consumer} leaves a batch unwritten: {fault}")
            self._pause(pause_s(failures))
            self._open_session()

    def _append(self, topic: str, table: pa.Table) -> Callable[[], None]:
        return lambda: self._lake.append(topic, self._version, table)

    def _obey(self) -> bool:
        """Takes all commands that wait, follows those that count, and persists that. Whether any counted."""
        holding, change = self._holding.apply(self._commands.take())
        if holding.applied == self._holding.applied:
            return False
        self._fetcher.stop(change.stop)
        self._release(change.stop)
        for partition in change.stop:
            self._seal.pop(partition, None)
        self._seal.update(dict.fromkeys(change.start, change.seal))
        self._fetcher.start(change.start)
        self._until_committed(lambda: self._commands.persist(holding.incarnation, holding.applied))
        # Not before it is persisted: a heartbeat in between would acknowledge it.
        self._holding = holding
        self._log.info(
            "obeyed",
            applied=tuple(holding.applied),
            stopped=[str(partition) for partition in change.stop],
            started=[str(partition) for partition in change.start],
        )
        return True

    def _place_what_was_started(self) -> None:
        """Begins to take over what was started, or to read what has been taken over."""
        if self._taking_over is None:
            if partitions := self._fetcher.settle():
                self._taking_over = self._begin_to_take_over(partitions)
            return
        if not self._taking_over.ended:
            return
        ended, self._taking_over = self._taking_over, None
        still_held = {
            partition for partition, stint in ended.stints.items() if self._holding.stints.get(partition) == stint
        }
        try:
            if not ended.positions.done():
                raise LakeError(f"no answer within {self._settings.write_limit_s:g} s")
            positions = {
                partition: offset for partition, offset in ended.positions.result().items() if partition in still_held
            }
        except LakeError as error:
            self._fetcher.hinder(still_held, f"cannot be taken over: {error}")
            self._open_session()
        except KafkaException as error:
            self._fetcher.hinder(still_held, f"cannot be taken over: {brief(error)}")
        else:
            self._claim(positions)
            self._fetcher.place(positions)

    def _begin_to_take_over(self, partitions: Collection[TopicPartition]) -> _TakeOver:
        told = {writer for partition in partitions for writer in self._seal.get(partition, ())}
        self._log.info("takes over", partitions=[str(partition) for partition in partitions], seal=sorted(told))
        return _TakeOver(
            {partition: self._holding.stints[partition] for partition in partitions},
            in_thread(lambda: take_over(partitions, told, self._writer, self._offsets, self._lake, self._group)),
            time.monotonic() + self._settings.write_limit_s,
        )

    def _claim(self, positions: Mapping[TopicPartition, int]) -> None:
        """Commits the positions as one who reads on."""
        self._commit({partition: Committed(offset, claim(self._writer)) for partition, offset in positions.items()})
        self._claimed.update(positions)

    def _release(self, partitions: Collection[TopicPartition]) -> None:
        """Commits the positions of those that it claims as one who reads no more."""
        claimed = [partition for partition in partitions if partition in self._claimed]
        self._commit({partition: Committed(self._claimed[partition], RELEASED) for partition in claimed})
        for partition in claimed:
            del self._claimed[partition]

    def _commit(self, positions: Mapping[TopicPartition, Committed]) -> None:
        if positions:
            self._until_committed(lambda: self._offsets.commit(positions))

    def _until_committed(self, commit: Callable[[], None]) -> None:
        """Calls `commit` until the brokers have taken it.

        Raises:
            ConsumerError: it is told to leave, and they have not.
        """
        failures = 0
        while True:
            committing = in_thread(commit)
            while not committing.done():
                self._wait_for([committing], LOOK_EVERY_S)
            try:
                committing.result()
            except KafkaException as error:
                failures += 1
                self._set_fault(f"commit: {brief(error)}")
                if self._stop.is_set():
                    raise ConsumerError(
                        f"consumer {self._holding.consumer} leaves without a commit: {brief(error)}"
                    ) from error
                self._pause(pause_s(failures))
            else:
                return

    def _wait_for(self, futures: Collection[Future[None]], limit_s: float) -> None:
        """Waits until all are done, at most so long, and keeps the heartbeat."""
        until = time.monotonic() + limit_s
        while (left_s := until - time.monotonic()) > 0:
            if not wait_for(futures, timeout=min(left_s, LOOK_EVERY_S)).not_done:
                return
            self._beat()

    def _pause(self, seconds: float) -> None:
        """Waits so long, or until it is told to leave, and keeps the heartbeat."""
        until = time.monotonic() + seconds
        while (left_s := until - time.monotonic()) > 0:
            if self._stop.wait(min(left_s, LOOK_EVERY_S)):
                return
            self._beat()

    def _set_fault(self, fault: str | None) -> None:
        if fault is not None and fault != self._fault:
            self._log.warning("keeps its data and tries again", reason=fault)
        self._fault = fault
        self._beat()

    @property
    def _state(self) -> tuple[ConsumerState, str | None]:
        fault = self._fault or self._fetcher.fault
        if not self._ready:
            return ConsumerState.STARTING, fault
        return (ConsumerState.READY if fault is None else ConsumerState.DEGRADED), fault

    def _beat(self) -> None:
        """Reports if the state has changed, or if the last report is long ago."""
        if self._state != self._reported or time.monotonic() - self._reported_at >= self._settings.heartbeat_s:
            self._report()

    def _report(self, cycle: Cycle | None = None, *, leaving: bool = False) -> None:
        state, reason = (ConsumerState.LEAVING, None) if leaving else self._state
        self._reports += 1
        self._reported = state, reason
        self._reported_at = time.monotonic()
        applied = self._holding.applied
        report = ConsumerReport(
            consumer=self._holding.consumer,
            incarnation=self._holding.incarnation,
            sequence=self._reports,
            sent_at=time.time(),
            state=state,
            reason=reason,
            applied_epoch=applied.epoch,
            applied_sequence=applied.sequence,
            partitions=() if leaving else tuple(map(PartitionRef.of, self._holding.partitions)),
            cycle=cycle,
        )
        self._reporter.send(report)
        self._observe(report)


def in_thread(call: Callable[[], Result]) -> Future[Result]:
    """Runs `call` in a thread that does not keep the process from ending, whatever it waits for."""
    future: Future[Result] = Future()

    def body() -> None:
        try:
            result = call()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=body, daemon=True).start()
    return future


def _fault_of(future: Future[None], limit_s: float) -> str | None:
    """Why the lake did not do what was asked; none if it did."""
    if not future.done():
        return f"no answer within {limit_s:g} s"
    error = future.exception()
    if error is None or isinstance(error, LakeError):
        return None if error is None else str(error)
    raise error
