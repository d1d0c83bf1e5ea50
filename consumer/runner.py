"""One consumer: the four-phase cycle, from its first report to its last.

Fetch, batch by topic, write and commit, obey and acknowledge. One thread goes round: it gathers the next batch while
the one before is written, and keeps the heartbeat. Writes, commits and the opening of a session go on in threads of
their own, because they may not answer.

The order is what keeps records: the lake first, then the commit to Kafka, then the acknowledgement. Commands are obeyed
only while nothing is being written, so what was fetched of a partition that is stopped is either committed by then, or
only gathered, and is dropped: whoever reads it next fetches it again. Before a partition is read it is taken over
(`consumer.takeover`), beside the reading of others, and claimed; it is released before a stop is acknowledged. Whatever
is interrupted when, the next reader begins at the first record that is not in the lake, and nobody else writes it.

Before each request for records, each write and each commit the lease is looked at (`consumer.lease`).

Memory: one batch that is gathered, one that is written, and the queue of the Kafka client, which is as large; the one
that is written is there several times over while it is on its way to Spark.
"""

import threading
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

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
from consumer.lake import Lake
from consumer.lease import Lease
from consumer.offsets import FencedError, GroupOffsets
from consumer.rate import Pace, SaturatedRate
from consumer.session import LakeError, SparkGoneError
from consumer.settings import ConsumerSettings
from consumer.takeover import ClaimsError, take_over
from consumer.threads import in_thread
from consumer.writing import BatchWrite, fault_of
from domain import topics
from domain.assignment import ConsumerId
from domain.messages import ConsumerReport, ConsumerState, Cycle, PartitionRef, Read
from domain.partitions import TopicPartition

LOOK_EVERY_S = 0.1
"""How often a wait looks at what else there is to do."""
LAST_REPORT_LIMIT_S = 5.0
"""How long the end waits for the last report to arrive."""

log = structlog.get_logger(__name__)


class ConsumerError(RuntimeError):
    """The consumer cannot go on; a new process may. Nothing that it read and did not write was committed."""


class LeaseError(ConsumerError):
    """Its lease has run out: others may read its partitions by now."""


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
        ConsumerError: it cannot go on: another consumer has taken over from it, its lease has run out, or a client of
            its own failed for good; or it had to leave with a batch that the lake did not take.
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


class _GivenUpError(RuntimeError):
    """A take-over goes no further: its partitions are somebody else's by now, or are taken over anew."""


@dataclass(frozen=True, slots=True)
class _TakeOver:
    """Partitions that are being taken over, all under the starts that held when it began."""

    partitions: tuple[TopicPartition, ...]
    positions: Future[dict[TopicPartition, int]]
    give_up_at: float
    """On the monotonic clock."""
    given_up: threading.Event
    """Its thread, whatever it waits for, does nothing more once this is set, and what it finds counts for nothing."""

    @property
    def ended(self) -> bool:
        return self.positions.done() or time.monotonic() >= self.give_up_at


@dataclass(slots=True)
class _Gathering:
    """The batch that grows."""

    batch: Batch = field(default_factory=Batch)
    began: float = field(default_factory=time.monotonic)
    """On the monotonic clock."""
    starved: bool = False
    """Whether a request for records came back empty."""


@dataclass(frozen=True, slots=True)
class _Writing:
    """The batch that is written."""

    write: BatchWrite
    batch: Batch
    reads: tuple[Read, ...]
    fetch_s: float
    saturated: bool
    """Whether the consumer had enough to do all the time."""
    began: float
    """On the monotonic clock."""


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
            self._commands = CommandReader(reading, metadata_topic, consumer, group)
            self._offsets = GroupOffsets(common, reading, group, self._writer)
            self._fetcher = Fetcher(fetching_config(common, group, settings.batch_bytes))
        except KafkaException as error:
            raise ConsumerError(
                f"consumer {consumer}: the Kafka client refuses its settings: {brief(error)}"
            ) from error
        self._lake = Lake(
            settings.spark,
            settings.lake_root,
            f"{group}/{self._writer}",
            settings.tables,
            settings.columns,
            settings.spark_conf,
        )
        self._columns = settings.columns
        self._phase = FetchPhase(settings.batch_bytes, settings.wait_time_secs)
        self._seal: dict[TopicPartition, tuple[str, ...]] = {}
        """Whom the controller wants sealed before the partition is read."""
        self._taking_over: _TakeOver | None = None
        self._asked: list[Future[dict[TopicPartition, int]]] = []
        """By take-overs, also those that were given up, whose threads may not have ended."""
        self._claimed: dict[TopicPartition, int] = {}
        """The partitions that this process claims, and the positions that it has committed."""
        self._gathering = _Gathering()
        self._writing: _Writing | None = None
        self._lease: Lease | None = None
        """From the first report on."""
        self._ready = False
        self._fault: str | None = None
        self._largest_bytes = 0
        self._rate = SaturatedRate()
        self._pace = Pace(settings.rate_limit)
        self._record_bytes = 0.0
        self._written_at: float | None = None
        """When the last write ended, on the monotonic clock; none where the time since then tells nothing of the rate:
        there was none, a command was obeyed, or a write failed."""
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
        if all(positions.done() for positions in self._asked):  # else its thread is in the middle of a request
            self._offsets.close()
        self._lake.close()

    def run(self) -> None:
        """Begins, goes through cycles until it is stopped, finishes the write in hand, and leaves."""
        self._take_place()
        self._report()
        self._open_session()
        self._ready = True
        while not self._stop.is_set():
            self._go_on()
        self._finish_write()
        self._give_up_taking_over(self._holding.partitions)
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
            try:
                fault = fault_of(opening, self._settings.write_limit_s)
            except SparkGoneError as error:
                raise ConsumerError(f"consumer {self._holding.consumer} cannot go on: {error}") from error
            if fault is None:
                self._log.info("has a Spark session", spark=self._settings.spark)
                return
            failures += 1
            self._set_fault(fault)
            if time.monotonic() - began > self._settings.give_up_after_s:
                raise ConsumerError(f"consumer {self._holding.consumer} has no Spark session: {fault}")
            self._pause(pause_s(failures))

    def _go_on(self) -> None:
        """Does what can be done now: obeys, places, fetches or writes."""
        if self._commands.waiting():
            self._finish_write()
            if self._obey():
                self._report()
        elif self._writing is not None and not self._writing.write.under_way:
            self._finish_write()
        self._place_what_was_started()
        self._gather()
        self._set_fault(None)

    def _gather(self) -> None:
        """Asks for records, or begins to write those that there are once they are a batch."""
        gathering = self._gathering
        elapsed_s = time.monotonic() - gathering.began
        ask = self._phase.next_ask(gathering.batch.bytes, elapsed_s, self._largest_bytes, self._writing is not None)
        if ask is not None:
            self._require_lease()
            fetched = self._fetcher.fetch(ask.records, ask.wait_s)
            gathering.batch.add(fetched.records, fetched.first_at, fetched.last_at)
            gathering.starved = gathering.starved or not fetched.records
            self._largest_bytes = max(self._largest_bytes, *(record.bytes for record in fetched.records), 0)
        elif self._writing is not None:
            wait_for(self._writing.write.under_way, timeout=LOOK_EVERY_S)
        elif gathering.batch.records and (wait_s := self._pace.wait_s(time.monotonic())):
            self._stop.wait(min(wait_s, LOOK_EVERY_S))
        else:
            self._gathering = _Gathering()
            if gathering.batch.records:
                self._begin_write(gathering, elapsed_s)

    def _begin_write(self, gathering: _Gathering, fetch_s: float) -> None:
        self._require_lease()
        batch = gathering.batch
        saturated = batch.bytes >= self._settings.batch_bytes and not gathering.starved
        self._version += 1
        self._largest_bytes = batch.largest_bytes
        reads = batch.reads(self._holding.stints)
        today, limit_s = datetime.now(UTC).date(), self._settings.write_limit_s
        write = BatchWrite(self._lake, self._version, batch, today, limit_s, self._columns)
        began = time.monotonic()
        self._pace = self._pace.after(batch.bytes, began)
        self._writing = _Writing(write, batch, reads, fetch_s, saturated, began)
        write.begin()

    def _finish_write(self) -> None:
        """Waits until the batch that is written is in the lake, writes again what failed, commits, and reports.

        Raises:
            ConsumerError: it is told to leave, and the lake does not take the batch; or Spark is gone.
        """
        if self._writing is None:
            return
        writing = self._writing
        failures = 0
        while True:
            while under_way := writing.write.under_way:
                wait_for(under_way, timeout=LOOK_EVERY_S)
                self._beat()
            fault = writing.write.settle()
            if fault is None:
                break
            failures += 1
            self._set_fault(fault)
            if self._stop.is_set():
                raise ConsumerError(f"consumer {self._holding.consumer} leaves a batch unwritten: {fault}")
            self._pause(pause_s(failures))
            self._open_session()
            self._require_lease()
            writing.write.begin()
        if failures:
            self._written_at = None
        write_s = time.monotonic() - writing.began
        self._claim(writing.batch.next_offsets)
        self._writing = None
        self._measure(writing)
        self._set_fault(None)
        self._report(
            Cycle(
                bytes=writing.batch.bytes,
                records=writing.batch.records,
                fetch_s=writing.fetch_s,
                write_s=write_s,
                reads=writing.reads,
            )
        )

    def _measure(self, written: _Writing) -> None:
        """Takes note of how long the batch took, and of what its records are like."""
        now = time.monotonic()
        if written.saturated and self._written_at is not None:
            self._rate = self._rate.after(written.batch.bytes, now - self._written_at)
        self._written_at = now
        self._record_bytes = written.batch.record_bytes

    def _obey(self) -> bool:
        """Takes all commands that wait, follows those that count, and persists that. Whether any counted.

        Nothing is being written.
        """
        commands = self._commands.take()
        holding, change = self._holding.apply(commands)
        if holding.applied == self._holding.applied:
            return False
        self._written_at = None
        self._give_up_taking_over(change.stop)
        self._fetcher.stop(change.stop)
        self._gathering.batch.drop(change.stop)
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
            plans=sorted({command.plan for command in commands}),
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
        ended.given_up.set()
        try:
            if not ended.positions.done():
                raise LakeError(f"no answer within {self._settings.write_limit_s:g} s")
            positions = ended.positions.result()
        except LakeError as error:
            self._fetcher.hinder(ended.partitions, f"cannot be taken over: {error}")
            self._open_session()
        except ClaimsError as error:
            self._fetcher.hinder(ended.partitions, f"cannot be taken over: {error}")
        except KafkaException as error:
            self._fetcher.hinder(ended.partitions, f"cannot be taken over: {brief(error)}")
        else:
            self._claim(positions)
            self._fetcher.place(positions)

    def _begin_to_take_over(self, partitions: Collection[TopicPartition]) -> _TakeOver:
        told = {writer for partition in partitions for writer in self._seal.get(partition, ())}
        self._log.info("takes over", partitions=[str(partition) for partition in partitions], seal=sorted(told))
        given_up = threading.Event()

        def require_right() -> None:
            self._require_lease()
            if given_up.is_set():
                raise _GivenUpError

        def find_positions() -> dict[TopicPartition, int]:
            return take_over(partitions, told, self._writer, self._offsets, self._lake, self._group, require_right)

        give_up_at = time.monotonic() + self._settings.write_limit_s
        positions = in_thread(find_positions)
        self._asked = [*(asked for asked in self._asked if not asked.done()), positions]
        return _TakeOver(tuple(partitions), positions, give_up_at, given_up)

    def _give_up_taking_over(self, stopped: Collection[TopicPartition]) -> None:
        """Lets go of a take-over that concerns any of these partitions, before the stop is acknowledged: others may
        claim them from then on. What else it concerns is taken over anew."""
        if self._taking_over is not None and not set(stopped).isdisjoint(self._taking_over.partitions):
            self._taking_over.given_up.set()
            self._taking_over = None

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
            self._require_lease()
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

    def _require_lease(self) -> None:
        """To be called before what only the reader of the partitions may do; from any thread.

        Raises:
            LeaseError: the lease has run out.
        """
        if self._lease is not None and self._lease.over(time.monotonic()):
            raise LeaseError(
                f"consumer {self._holding.consumer}: its lease has run out: no report has reached the brokers for "
                f"{self._lease.length_s:g} s, and others may read its partitions by now"
            )

    def _beat(self) -> None:
        """Renews the lease; reports if the state has changed, or if the last report is long ago."""
        arrived = self._reporter.newest_arrived()
        if self._lease is not None and arrived is not None:
            self._lease = self._lease.renewed(arrived, time.monotonic())
        if self._state != self._reported or time.monotonic() - self._reported_at >= self._settings.heartbeat_s:
            self._report()

    def _report(self, cycle: Cycle | None = None, *, leaving: bool = False) -> None:
        state, reason = (ConsumerState.LEAVING, None) if leaving else self._state
        self._reports += 1
        self._reported = state, reason
        self._reported_at = time.monotonic()
        if self._lease is None:
            self._lease = Lease(self._settings.lease_s, self._reported_at)
        applied = self._holding.applied
        held = () if leaving else self._holding.partitions
        report = ConsumerReport(
            group=self._group,
            consumer=self._holding.consumer,
            incarnation=self._holding.incarnation,
            sequence=self._reports,
            sent_at=time.time(),
            state=state,
            reason=reason,
            applied_epoch=applied.epoch,
            applied_sequence=applied.sequence,
            partitions=tuple(map(PartitionRef.of, held)),
            taking_over=tuple(PartitionRef.of(each) for each in held if each not in self._fetcher.placed),
            cycle=cycle,
            throughput=self._rate.throughput(self._record_bytes, self._fetcher.compression),
        )
        self._reporter.send(report)
        self._observe(report)
