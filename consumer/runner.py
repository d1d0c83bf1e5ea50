"""One consumer at work: it performs what its machine decides (`consumer.decide.machine`), and tells it what happens.

One thread goes round: it looks for commands and at how the reading stands, performs, and fetches or waits. What may not
answer goes on in threads of its own: writes, commits, take-overs and the opening of a session.

Memory: one batch that is gathered, one that is written, and the queue of the Kafka client, which is as large; the one
that is written is there several times over while it is on its way to Spark.
"""

import queue
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow as pa
import structlog
from confluent_kafka import KafkaException

from brokers.errors import FatalKafkaError, in_one_line
from consumer.channel import CommandReader, Reporter
from consumer.decide import actions, events
from consumer.decide.batch import Batch
from consumer.decide.claims import writer
from consumer.decide.columns import Column
from consumer.decide.commands import Holding
from consumer.decide.machine import ConsumerError as ConsumerError
from consumer.decide.machine import ConsumerMachine
from consumer.decide.machine import LeaseError as LeaseError
from consumer.decide.parts import Part
from consumer.decide.reached import Reached
from consumer.decide.takeover import ClaimsError, take_over
from consumer.fetcher import Fetcher
from consumer.kafka import common_config, fetching_config, reading_config, reporting_config
from consumer.offsets import COMMIT_LIMIT_S, GroupOffsets
from consumer.settings import ConsumerSettings
from consumer.sink import RefusedError, RegistryError, Sink, SinkError, SinkGoneError, TableError
from consumer.table import last_rows, rows
from consumer.threads import in_thread
from domain import topics
from domain.assignment import ConsumerId
from domain.messages import ConsumerReport
from domain.partitions import TopicPartition

if TYPE_CHECKING:
    from consumer.maintenance import Upkeep

LAST_REPORT_LIMIT_S = 5.0
"""How long the end waits for the last report to arrive."""
LAST_COMMIT_LIMIT_S = 2 * COMMIT_LIMIT_S
"""How long it waits for a commit that is under way: for its offsets, and for the end of its transaction."""

log = structlog.get_logger(__name__)


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
    holding = Holding(consumer, incarnation=uuid.uuid4().hex)
    name = writer(consumer, holding.incarnation)
    common = common_config(bootstrap_servers, consumer, client_config)
    reading = reading_config(common, group)
    try:
        process = _Process(
            ConsumerMachine(holding, group, TopicPartition(metadata_topic, consumer), settings, time.monotonic()),
            Reporter(reporting_config(common, settings.lease_s), metadata_topic),
            CommandReader(reading, metadata_topic, consumer, group),
            GroupOffsets(common, reading, group, name),
            Fetcher(fetching_config(common, group, settings.batch_bytes), settings.beyond_log_end),
            _sink(settings, consumer, group, f"{group}/{name}"),
            _upkeep(settings, consumer),
            settings.columns,
            group,
            name,
            stop,
            observe,
            log.bind(consumer=consumer, incarnation=holding.incarnation),
        )
    except KafkaException as error:
        raise ConsumerError(
            f"consumer {consumer}: the Kafka client refuses its settings: {in_one_line(error)}"
        ) from error
    except RegistryError as error:
        raise ConsumerError(f"consumer {consumer}: {error}") from error
    try:
        process.run()
    except (FatalKafkaError, SinkGoneError) as error:
        raise ConsumerError(f"consumer {consumer} cannot go on: {error}") from error
    finally:
        process.close()


def _sink(settings: ConsumerSettings, consumer: ConsumerId, group: str, writer: str) -> Sink:
    """Where the records go. Each kind is imported where it is used: PySpark takes a second, and memory."""
    sink = _plain_sink(settings, consumer, group, writer)
    if not settings.registered and not settings.without_value:
        return sink
    from consumer.decoding import DecodingSink, decoding_of

    return DecodingSink(sink, decoding_of(settings))


def _plain_sink(settings: ConsumerSettings, consumer: ConsumerId, group: str, writer: str) -> Sink:
    if settings.sink == "command":
        from consumer.command_sink import CommandSink

        return CommandSink(settings.command, group, writer, settings.write_limit_s)
    from consumer.lake import Lake

    sparks, root, conf = settings.sparks_of(consumer), settings.lake_root, settings.spark_conf
    return Lake(sparks, root, writer, settings.places, settings.columns, conf, settings.layouts)


def _upkeep(settings: ConsumerSettings, consumer: ConsumerId) -> "Upkeep | None":
    """Who takes care of tables, if they are to be; imported where it is used, as above."""
    if settings.maintenance is None:
        return None
    from consumer.maintenance import Upkeep

    return Upkeep(settings, settings.maintenance, consumer, time.time())


@dataclass(slots=True)
class _Process:
    """One incarnation of a consumer."""

    machine: ConsumerMachine
    reporter: Reporter
    commands: CommandReader
    offsets: GroupOffsets
    fetcher: Fetcher
    sink: Sink
    upkeep: "Upkeep | None"
    columns: Mapping[str, Sequence[Column]]
    group: str
    writer: str
    stop: threading.Event
    observe: Callable[[ConsumerReport], None]
    log: structlog.stdlib.BoundLogger
    noticed: list[events.Event] = field(default_factory=list)
    """What came of the last action."""
    answers: queue.SimpleQueue[tuple[int, Future[Any]]] = field(default_factory=queue.SimpleQueue)
    asked: set[Future[Any]] = field(default_factory=set)
    """What may not be answered yet, also what nobody waits for any more."""
    commit: Future[Any] | None = None
    """The newest one."""
    rows: WeakKeyDictionary[Batch, pa.Table] = field(default_factory=WeakKeyDictionary)
    """Of batches that are not written yet."""

    def run(self) -> None:
        """Goes round until it has left; raises what no further attempt can mend."""
        while not self.machine.ended:
            for action in self.machine.handle(*self._happened()):
                self._perform(action)

    def close(self) -> None:
        self.reporter.close(LAST_REPORT_LIMIT_S)
        self.commands.close()
        self.fetcher.close()
        if self.commit is not None:  # an open transaction has whoever reads next wait until the brokers end it
            wait([self.commit], LAST_COMMIT_LIMIT_S)
        if all(asked.done() for asked in self.asked):  # else one may be in the middle of a request
            self.offsets.close()
        self.sink.close()

    def _happened(self) -> list[events.Event]:
        """What has happened since it was asked last."""
        happened, self.noticed = self.noticed, []
        while not self.answers.empty():
            happened.append(self._answer(*self.answers.get()))
        arrived = self.reporter.newest_arrived()
        ready, fetcher = self.machine.ready, self.fetcher
        commands = self.commands.take() if ready else ()
        found = fetcher.settle(self.machine.to_place) if ready else ()
        reading = found, fetcher.take_passed_over(), fetcher.fault, fetcher.compression
        now, stop = time.monotonic(), self.stop.is_set()
        return [*happened, events.Looked(now, stop, arrived, commands, self.commands.taken_to, *reading)]

    def _perform(self, action: actions.Action) -> None:
        match action:
            case actions.TakePlace(ask=ask):
                self._ask(ask, self._take_place)
                self.answers.put(self.answers.get())  # waits for the answer, which is looked at in its turn
            case actions.OpenSession(ask=ask):
                self._ask(ask, self.sink.connect)
            case actions.TakeOver(ask=ask):
                self._ask(ask, lambda: self._take_over(action))
            case actions.Write(ask=ask, topic=topic, version=version, batch=batch, part=part):
                table, epochs = self._rows_of(topic, batch, part), batch.epochs(whole=part.is_whole)
                append = partial(self.sink.append, topic, version, table, epochs)
                self._ask(ask, append if part.is_whole else lambda: _then(append, topic, table, epochs))
            case actions.SetAside(ask=ask, topic=topic, batch=batch, part=part, reason=reason):
                record, epochs = self._rows_of(topic, batch, part), batch.epochs(whole=part.is_whole)
                set_aside = partial(self.sink.set_aside, topic, record, reason, epochs)
                self._ask(ask, lambda: _then(set_aside, topic, record, epochs))
            case actions.Commit(ask=ask, positions=committed):
                self.commit = self._ask(ask, lambda: self.offsets.commit(committed))
            case actions.StopReading(partitions=partitions):
                self.fetcher.stop(partitions)
            case actions.ReadFrom(positions=positions):
                self.fetcher.place(positions)
            case actions.HoldBack(topic=topic, positions=positions):
                self.fetcher.hold_back(topic, positions)
            case actions.Resume(topic=topic):
                self.fetcher.resume(topic)
            case actions.Send(report=report):
                sent = report.model_copy(update={"sent_at": time.time()})
                self.reporter.send(sent)
                if self.upkeep is not None:
                    read = set(sent.partitions) - set(sent.taking_over)
                    self.upkeep.look(sent.sent_at, (partition.key for partition in read))
                self.observe(sent)
            case actions.Note(event=event, details=details):
                (self.log.warning if "reason" in details else self.log.info)(event, **details)
            case actions.Fetch(records=most_records, wait_s=wait_s):
                self.noticed.append(self.fetcher.fetch(most_records, wait_s))
            case actions.Wait(seconds=seconds):
                with suppress(queue.Empty):
                    self.noticed.append(self._answer(*self.answers.get(timeout=seconds)))

    def _ask(self, ask: int, call: Callable[[], object]) -> Future[Any]:
        """Calls it in a thread, and takes note of the answer, if there ever is one."""
        answer: Future[Any] = in_thread(call)
        self.asked = {answer, *(asked for asked in self.asked if not asked.done())}
        answer.add_done_callback(lambda answered: self.answers.put((ask, answered)))
        return answer

    def _answer(self, ask: int, answered: Future[Any]) -> events.Event:
        now = time.monotonic()
        try:
            return events.Done(now, ask, answered.result())
        except SinkGoneError:
            raise
        except (SinkError, RegistryError, ClaimsError, KafkaException) as error:
            of_sink, of_record, of_table = (isinstance(error, kind) for kind in (SinkError, RefusedError, TableError))
            place = error.place if isinstance(error, RefusedError) else None
            return events.Failed(now, ask, in_one_line(error), of_sink, of_record, of_table, place)

    def _take_place(self) -> None:
        """Nobody has heard of this process before: no command is for it yet, and nobody wants to fence it."""
        self.commands.begin()
        self.offsets.open()

    def _take_over(self, action: actions.TakeOver) -> dict[TopicPartition, Reached]:
        def require_right() -> None:
            if not self.machine.is_asked(action.ask, time.monotonic()):
                raise ClaimsError("it is not wanted any more")

        partitions, seal = action.partitions, action.seal
        self.log.info(
            "partitions are taken over", partitions=[str(partition) for partition in partitions], seal=sorted(seal)
        )
        return take_over(partitions, seal, self.writer, self.offsets, self.sink, self.group, require_right)

    def _rows_of(self, topic: str, batch: Batch, part: Part) -> pa.Table:
        """A part of the batch as it is written, also when it is written again; the batch lets its records go."""
        if batch not in self.rows:
            today = datetime.now(UTC).date()
            self.rows[batch] = rows(batch.take()[topic], today, self.columns.get(topic, ()))
        whole = self.rows[batch]
        return whole if part.is_whole else whole.take(pa.array(range(part.first, part.end)))  # PySpark takes no slices


def _then(
    write: Callable[[], None], topic: str, rows: pa.Table, epochs: Mapping[int, int]
) -> dict[TopicPartition, Reached]:
    """Where each partition goes on once these rows are written."""
    write()
    return {TopicPartition(topic, number): last.next for number, last in last_rows(rows, epochs).items()}
