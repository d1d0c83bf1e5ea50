"""One consumer: the four-phase cycle, from its first report to its last.

Fetch, batch by topic, write and commit, obey and acknowledge. One thread goes round: it gathers the next batch while
the one before is written, and keeps the heartbeat. Writes, commits and the opening of a session go on in threads of
their own, because they may not answer.

The order is what keeps records: the lake first, then the commit to Kafka, then the acknowledgement. Commands are obeyed
only while no batch is being written for the first time, so what was fetched of a partition that is stopped is committed
by then; or only gathered, and is dropped: whoever reads it next fetches it again; or it is refused by the lake, and the
partition is let go without a commit: whoever reads it next seals this process, and finds what is there. Before a
partition is read it is taken over (`consumer.takeover`), beside the reading of others, and claimed; it is released
before a stop is acknowledged. Whatever is interrupted when, the next reader begins at the first record that is not in
the lake, and nobody else writes it.

Before each request for records, each write and each commit the lease is looked at (`consumer.lease`).

Memory: one batch that is gathered, one that is written, and the queue of the Kafka client, which is as large; the one
that is written is there several times over while it is on its way to Spark.
"""

import threading
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, Future
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
TOLD_FOR_S = 600.0
"""How long reports tell of what was passed over."""
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


@dataclass(slots=True)
class _TopicWrite:
    """What a batch has of one topic, and its way into the lake."""

    write: BatchWrite
    batch: Batch
    reads: tuple[Read, ...]
    began: float
    """On the monotonic clock."""
    positions: dict[TopicPartition, int]
    """To be committed once it is written."""
    failures: int = 0
    fault: str = ""
    """Why it is not written, once that has failed."""
    tries: bool = True
    """Whether an attempt has not been settled yet."""
    try_again_at: float = 0.0
    """On the monotonic clock."""

    def has_failed(self, fault: str) -> None:
        self.tries = False
        self.failures += 1
        self.fault = fault
        self.try_again_at = time.monotonic() + pause_s(self.failures)


@dataclass(slots=True)
class _Writing:
    """The batch that is written."""

    left: dict[str, _TopicWrite]
    """What is neither written nor has failed yet, by topic."""
    batch: Batch
    fetch_s: float
    saturated: bool
    """Whether the consumer had enough to do all the time."""
    began: float
    """On the monotonic clock."""
    written: list[_TopicWrite] = field(default_factory=list)

    @property
    def under_way(self) -> list[Future[None]]:
        return [attempt for each in self.left.values() for attempt in each.write.under_way]


@dataclass(slots=True)
class _Opening:
    """A session of Spark in place of one that may be lost. Moments are on the monotonic clock."""

    began: float
    asked: Future[None] | None = None
    no_answer_at: float = 0.0
    failures: int = 0
    fault: str | None = None
    try_again_at: float = 0.0


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
            self._fetcher = Fetcher(fetching_config(common, group, settings.batch_bytes), settings.beyond_log_end)
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
        self._taking_over: dict[str, _TakeOver] = {}
        """By topic: none waits for the table of another."""
        self._asked: list[Future[dict[TopicPartition, int]]] = []
        """By take-overs, also those that were given up, whose threads may not have ended."""
        self._claimed: dict[TopicPartition, int] = {}
        """The partitions that this process claims, and the positions that it has committed."""
        self._gathering = _Gathering()
        self._writing: _Writing | None = None
        self._refused: dict[str, _TopicWrite] = {}
        """By topic, what the lake has not taken yet. Nothing more of these topics is read until it has."""
        self._opening: _Opening | None = None
        self._renewed_at = time.monotonic()
        self._wrote_at = 0.0
        """When the lake last took something, on the monotonic clock."""
        self._lease: Lease | None = None
        """From the first report on."""
        self._ready = False
        self._fault: str | None = None
        self._passed_over: tuple[str, float] | None = None
        """What was passed over last, and until when it is told; on the monotonic clock."""
        self._lost = 0
        """Offsets that were deleted before they were read."""
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
        self._finish_what_was_refused()
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
        else:
            self._look_at_write()
        self._renew_claims()
        self._look_at_session()
        self._look_at_what_was_refused()
        self._place_what_was_started()
        self._gather()
        self._set_fault(self._standing_fault)

    @property
    def _standing_fault(self) -> str | None:
        """Why something of what was read is not in the lake yet."""
        refused = next((each.fault for _, each in sorted(self._refused.items())), None)
        return refused or (self._opening.fault if self._opening is not None else None)

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
            wait_for(self._writing.under_way, timeout=LOOK_EVERY_S, return_when=FIRST_COMPLETED)
        elif self._opening is not None and gathering.batch.records:
            self._stop.wait(LOOK_EVERY_S)
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
        today, limit_s = datetime.now(UTC).date(), self._settings.write_limit_s
        began = time.monotonic()
        self._pace = self._pace.after(batch.bytes, began)
        left = {}
        for topic, of_topic in batch.split().items():
            reads, positions = of_topic.reads(self._holding.stints), of_topic.next_offsets
            write = BatchWrite(self._lake, self._version, of_topic, today, limit_s, self._columns)
            left[topic] = _TopicWrite(write, of_topic, reads, began, positions)
        self._writing = _Writing(left, batch, fetch_s, saturated, began)
        for each in left.values():
            each.write.begin()

    def _finish_write(self) -> None:
        """Waits until all of the batch is in the lake, or has failed for now."""
        while (writing := self._writing) is not None:
            wait_for(writing.under_way, timeout=LOOK_EVERY_S)
            self._beat()
            self._look_at_write()

    def _look_at_write(self) -> None:
        """Commits what is in the lake by now, and holds back the topics of what has failed; reports when that is all.

        Raises:
            ConsumerError: Spark is gone.
        """
        if (writing := self._writing) is None:
            return
        ended = {topic: each for topic, each in writing.left.items() if not each.write.under_way}
        faults = {topic: each.write.settle() for topic, each in ended.items()}
        written = [each for topic, each in ended.items() if faults[topic] is None]
        if written:
            self._wrote_at = time.monotonic()
            self._claim({partition: offset for each in written for partition, offset in each.positions.items()})
            writing.written += written
        for topic, each in ended.items():
            del writing.left[topic]
            if (fault := faults[topic]) is not None:
                self._hold_back(topic, each, fault)
        if writing.left:
            return
        self._writing = None
        if sum(each.batch.records for each in writing.written) == writing.batch.records:
            self._measure(writing)
        else:
            self._written_at = None
        self._set_fault(self._standing_fault)
        if writing.written:
            self._report(_cycle(writing.written, writing.fetch_s))

    def _hold_back(self, topic: str, failed: _TopicWrite, fault: str) -> None:
        """Reads no more of a topic whose table does not take its rows: they would only pile up behind them."""
        failed.has_failed(fault)
        self._set_fault(fault)
        self._refused[topic] = failed
        self._fetcher.hold_back(topic, self._gathering.batch.drop_topic(topic))
        self._want_session(failed)

    def _look_at_what_was_refused(self) -> None:
        """Asks the lake again for what it has not taken, when it is time to; reads the topic on once it has.

        Raises:
            ConsumerError: Spark is gone.
        """
        for topic, refused in list(self._refused.items()):
            if not refused.tries:
                if self._opening is None and time.monotonic() >= refused.try_again_at:
                    self._require_lease()
                    refused.tries = True
                    refused.write.begin()
            elif not refused.write.under_way:
                fault = refused.write.settle()
                if fault is not None:
                    refused.has_failed(fault)
                    self._want_session(refused)
                    continue
                self._wrote_at = time.monotonic()
                self._written_at = None
                self._claim(refused.positions)
                del self._refused[topic]
                self._fetcher.resume(topic)
                self._set_fault(self._standing_fault)
                self._report(_cycle([refused], 0.0))

    def _finish_what_was_refused(self) -> None:
        """Waits for attempts that are under way.

        Raises:
            ConsumerError: the lake does not take what was read.
        """
        while attempts := [attempt for each in self._refused.values() for attempt in each.write.under_way]:
            wait_for(attempts, timeout=LOOK_EVERY_S)
            self._beat()
        for topic, refused in list(self._refused.items()):
            fault = refused.write.settle() if refused.tries else refused.fault
            if fault is not None:
                raise ConsumerError(f"consumer {self._holding.consumer} leaves a batch unwritten: {fault}")
            self._claim(refused.positions)
            del self._refused[topic]

    def _want_session(self, failed: _TopicWrite | None = None) -> None:
        """What has failed may have failed for want of a session, unless the lake has taken something since."""
        if self._opening is None and (failed is None or self._wrote_at <= failed.began):
            self._opening = _Opening(time.monotonic())

    def _look_at_session(self) -> None:
        """Opens a session in place of the one there was, while nothing is being written through that.

        Raises:
            ConsumerError: there was none within the limit.
        """
        if (opening := self._opening) is None:
            return
        now = time.monotonic()
        if opening.asked is None:
            busy = self._writing is not None or any(each.write.under_way for each in self._refused.values())
            if now >= opening.try_again_at and not busy:
                opening.asked = in_thread(self._lake.connect)
                opening.no_answer_at = now + self._settings.write_limit_s
            return
        if not opening.asked.done() and now < opening.no_answer_at:
            return
        try:
            fault = fault_of(opening.asked, self._settings.write_limit_s)
        except SparkGoneError as error:
            raise ConsumerError(f"consumer {self._holding.consumer} cannot go on: {error}") from error
        if fault is None:
            self._log.info("has a new Spark session", spark=self._settings.spark)
            self._opening = None
            return
        opening.asked, opening.fault = None, fault
        opening.failures += 1
        opening.try_again_at = now + pause_s(opening.failures)
        if now - opening.began > self._settings.give_up_after_s:
            raise ConsumerError(f"consumer {self._holding.consumer} has no Spark session: {fault}")

    def _measure(self, written: _Writing) -> None:
        """Takes note of how long the batch took, and of what its records are like."""
        now = time.monotonic()
        if written.saturated and self._written_at is not None:
            self._rate = self._rate.after(written.batch.bytes, now - self._written_at)
        self._written_at = now
        self._record_bytes = written.batch.record_bytes

    def _obey(self) -> bool:
        """Takes all commands that wait, follows those that count, and persists that. Whether any counted.

        Nothing is being written but what the lake has refused before.
        """
        commands = self._commands.take()
        holding, change = self._holding.apply(commands)
        if holding.applied == self._holding.applied:
            return False
        self._written_at = None
        self._give_up_taking_over(change.stop)
        self._fetcher.stop(change.stop)
        self._gathering.batch.drop(change.stop)
        self._leave_unsettled(change.stop)
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

    def _leave_unsettled(self, stopped: Collection[TopicPartition]) -> None:
        """Lets go of partitions of which the lake has refused rows, without a commit.

        Nobody knows whether their rows will be there. So the claim stays as it is, and whoever reads them next puts
        this process out of action, which settles that.
        """
        for refused in self._refused.values():
            for partition in refused.positions.keys() & set(stopped):
                self._log.warning("lets go unsettled", partition=str(partition), reason=refused.fault)
                del refused.positions[partition]
                self._claimed.pop(partition, None)

    def _place_what_was_started(self) -> None:
        """Begins to take over what was started, or to read what has been taken over."""
        for topic, taking_over in list(self._taking_over.items()):
            if taking_over.ended:
                del self._taking_over[topic]
                self._end_taking_over(taking_over)
        under_way = {partition for each in self._taking_over.values() for partition in each.partitions}
        partitions = self._fetcher.settle(under_way)
        for passed_over in self._fetcher.take_passed_over():
            self._passed_over = str(passed_over), time.monotonic() + TOLD_FOR_S
            self._lost += passed_over.lost
        for topic in sorted({partition.topic for partition in partitions}):
            if self._opening is None and topic not in self._taking_over:
                of_topic = [partition for partition in partitions if partition.topic == topic]
                self._taking_over[topic] = self._begin_to_take_over(of_topic)

    def _end_taking_over(self, ended: _TakeOver) -> None:
        ended.given_up.set()
        try:
            if not ended.positions.done():
                raise LakeError(f"no answer within {self._settings.write_limit_s:g} s")
            positions = ended.positions.result()
        except LakeError as error:
            self._fetcher.hinder(ended.partitions, f"cannot be taken over: {error}")
            self._want_session()
        except ClaimsError as error:
            self._fetcher.hinder(ended.partitions, f"cannot be taken over: {error}")
        except KafkaException as error:
            self._fetcher.hinder(ended.partitions, f"cannot be taken over: {brief(error)}")
        else:
            self._claim(positions)
            self._fetcher.place(positions)
            if untold := [partition for partition in ended.partitions if partition not in positions]:
                self._fetcher.hinder(untold, "no broker tells what its log holds")

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
        for topic, taking_over in list(self._taking_over.items()):
            if not set(stopped).isdisjoint(taking_over.partitions):
                taking_over.given_up.set()
                del self._taking_over[topic]

    def _claim(self, positions: Mapping[TopicPartition, int]) -> None:
        """Commits the positions as one who reads on."""
        self._commit({partition: Committed(offset, claim(self._writer)) for partition, offset in positions.items()})
        self._claimed.update(positions)

    def _renew_claims(self) -> None:
        """Commits all again from time to time, before Kafka forgets it; and before it forgets who commits, also where
        that has nothing: then the place among the commands."""
        if time.monotonic() - self._renewed_at < self._settings.renew_claims_s:
            return
        self._renewed_at = time.monotonic()
        if self._claimed:
            self._claim(dict(self._claimed))
        else:
            commands = TopicPartition(self._metadata_topic, self._holding.consumer)
            self._commit({commands: Committed(self._commands.taken_to)})

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
            ConsumerError: they have not, and it is told to leave, or has tried for long.
        """
        began = time.monotonic()
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
                if self._stop.is_set() or time.monotonic() - began > self._settings.give_up_after_s:
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
        if fault is not None:
            return ConsumerState.DEGRADED, fault
        told, until = self._passed_over or (None, 0.0)
        return ConsumerState.READY, told if time.monotonic() < until else None

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
            lost=self._lost,
            throughput=self._rate.throughput(self._record_bytes, self._fetcher.compression),
        )
        self._reporter.send(report)
        self._observe(report)


def _cycle(written: Collection[_TopicWrite], fetch_s: float) -> Cycle:
    return Cycle(
        bytes=sum(each.batch.bytes for each in written),
        records=sum(each.batch.records for each in written),
        fetch_s=fetch_s,
        write_s=time.monotonic() - min(each.began for each in written),
        reads=tuple(sorted((read for each in written for read in each.reads), key=lambda read: read.key)),
    )
