"""Kafka and the lake as one consumer's process sees them, in memory: for tests of what it does in which order.

They keep the rules that were seen in the real ones (docs/decisions/0007-exactly-once.md): a fenced writer's commit is
refused; the lake passes over an append that is not newer than the newest of its writer. A call of a step may be held
up, as if the process were frozen there, or had no answer yet.
"""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException

from brokers.transactions import FencedError
from consumer import runner
from consumer.decide.batch import Record
from consumer.decide.claims import Committed
from consumer.decide.events import Fetched
from consumer.decide.out_of_range import PassedOver
from consumer.decide.reached import Reached
from consumer.decide.spans import Span
from consumer.lake import LAST_VERSION
from consumer.session import LakeError
from consumer.sink import RefusedError, TableError
from domain.assignment import ConsumerId
from domain.messages import Action, ConsumerCommand, ConsumerReport, Order, PartitionRef
from domain.partitions import OffsetRange, TopicPartition
from tests.consumer.clock import Clock
from tests.patience import wait_until

GROUP = "group"
RECORD_BYTES = 100


class Commit(NamedTuple):
    writer: str
    partition: TopicPartition
    position: Committed


class Services:
    """Brokers and lake of a group whose consumers live in this process."""

    def __init__(self) -> None:
        self.clock = Clock()
        """Of the consumers."""
        self.ends: Counter[TopicPartition] = Counter()
        """Of the partitions in Kafka."""
        self.epoch: int | None = None
        """Of the leaders, if it is known."""
        self.committed: dict[TopicPartition, Committed] = {}
        self.fenced: set[str] = set()
        self.versions: Counter[tuple[str, str]] = Counter()
        """The newest name that each table took of each writer."""
        self.rows: defaultdict[TopicPartition, list[int]] = defaultdict(list)
        self.refused: set[tuple[TopicPartition, int]] = set()
        """Records that the table of their topic does not take."""
        self.dead_letters: defaultdict[TopicPartition, list[int]] = defaultdict(list)
        self.happened: list[Commit | ConsumerReport] = []
        """Commits that were taken and reports that were sent, in their order."""
        self.ahead: list[Commit] = []
        """Commits of what was not in the lake."""
        self.leaderless: set[TopicPartition] = set()
        self.refusing: set[str] = set()
        """Topics whose tables take nothing, nobody knows why."""
        self.at_fault: set[str] = set()
        """Topics whose tables take nothing, and say so."""
        self.answers_nothing: set[str] = set()
        """Topics whose tables take what they are given, and say that they do not."""
        self.refuses_commits = False
        self.passed_over: list[PassedOver] = []
        """To be told of by the next that asks."""
        self.reports_arrive = True
        self.inboxes: defaultdict[ConsumerId, list[ConsumerCommand]] = defaultdict(list)
        self._held_up: dict[tuple[str, ConsumerId], threading.Event] = {}
        self._reached: set[tuple[str, ConsumerId]] = set()
        self._sequence = 0

    # What a test does

    def hold_up(self, step: str, consumer: ConsumerId) -> None:
        """From now on the consumer gets no further than to this step."""
        self._held_up[step, consumer] = threading.Event()

    def let_go(self, step: str, consumer: ConsumerId) -> None:
        self._held_up.pop((step, consumer)).set()

    def let_go_of_all(self) -> None:
        for step, consumer in list(self._held_up):
            self.let_go(step, consumer)

    def wait_until_held_up(self, step: str, consumer: ConsumerId) -> None:
        self.wait_until(lambda: (step, consumer) in self._reached)

    def command(
        self, action: Action, partition: TopicPartition, to: ConsumerReport, seal: Collection[str] = ()
    ) -> Order:
        self._sequence += 1
        order = Order(1, self._sequence)
        command = ConsumerCommand(
            consumer=to.consumer,
            incarnation=to.incarnation,
            epoch=order.epoch,
            plan=1,
            sequence=order.sequence,
            action=action,
            partitions=(PartitionRef.of(partition),),
            seal=tuple(seal),
        )
        self.inboxes[to.consumer].append(command)
        return order

    @property
    def reports(self) -> list[ConsumerReport]:
        return [each for each in list(self.happened) if isinstance(each, ConsumerReport)]

    @property
    def commits(self) -> list[Commit]:
        return [each for each in list(self.happened) if isinstance(each, Commit)]

    def wait_for(self, condition: Callable[[ConsumerReport], bool]) -> ConsumerReport:
        """The first report that meets the condition."""
        self.wait_until(lambda: any(map(condition, self.reports)))
        return next(filter(condition, self.reports))

    def wait_until(self, condition: Callable[[], bool]) -> None:
        wait_until(condition, lambda: f"it did not come about; lately: {self.happened[-3:]}", every_s=0.002)

    # What the adapters do

    def pass_by(self, step: str, writer: str) -> None:
        consumer = int(writer.partition("/")[0])
        held_up = self._held_up.get((step, consumer))
        if held_up is not None:
            self._reached.add((step, consumer))
            held_up.wait()

    def serve(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Consumers that begin from now on have these services."""
        self.clock.serve(monkeypatch.setattr)
        monkeypatch.setattr(runner, "Reporter", lambda *_: _Reporter(self))
        monkeypatch.setattr(runner, "CommandReader", lambda _, __, consumer, ___: _CommandReader(self, consumer))
        monkeypatch.setattr(runner, "GroupOffsets", lambda _, __, ___, writer: _GroupOffsets(self, writer))
        monkeypatch.setattr(runner, "Fetcher", lambda config, _: _Fetcher(self, str(config["client.id"])))
        monkeypatch.setattr("consumer.lake.Lake", lambda _, __, writer, *___: _Lake(self, writer))


class _Reporter:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._arrived: float | None = None

    def send(self, report: ConsumerReport) -> None:
        self._services.happened.append(report)
        if self._services.reports_arrive:
            self._arrived = self._services.clock.monotonic()

    def newest_arrived(self) -> float | None:
        return self._arrived

    def close(self, wait_s: float) -> None:
        del wait_s


class _CommandReader:
    taken_to = 0

    def __init__(self, services: Services, consumer: ConsumerId) -> None:
        self._inbox = services.inboxes[consumer]

    def begin(self) -> None:
        self._inbox.clear()

    def take(self) -> tuple[ConsumerCommand, ...]:
        taken = tuple(self._inbox)
        del self._inbox[: len(taken)]
        return taken

    def close(self) -> None: ...


class _GroupOffsets:
    def __init__(self, services: Services, writer: str) -> None:
        self._services = services
        self._writer = writer

    def open(self) -> None: ...

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Committed | None]:
        self._services.pass_by("look", self._writer)
        return {partition: self._services.committed.get(partition) for partition in partitions}

    def ranges(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetRange]:
        told = [partition for partition in partitions if partition not in self._services.leaderless]
        return {partition: OffsetRange(0, self._services.ends[partition]) for partition in told}

    def fence(self, writer: str) -> None:
        self._services.fenced.add(writer)

    def commit(self, positions: Mapping[TopicPartition, Committed]) -> None:
        services = self._services
        services.pass_by("obey" if any(not position.own for position in positions.values()) else "commit", self._writer)
        if self._writer in services.fenced:
            raise FencedError("another consumer has taken over from this one")
        if services.refuses_commits:
            raise KafkaException(KafkaError(KafkaError.COORDINATOR_NOT_AVAILABLE))
        for partition, position in positions.items():
            if not position.own:  # the place among the commands, and the newest that counted
                continue
            commit = Commit(self._writer, partition, position)
            if position.offset > len({*services.rows[partition], *services.dead_letters[partition]}):
                services.ahead.append(commit)
            services.committed[partition] = position
            services.happened.append(commit)

    def close(self) -> None: ...


class _Fetcher:
    compression = fault = None

    def __init__(self, services: Services, client: str) -> None:
        self._services = services
        self._consumer = client.rpartition("-")[2]
        self.placed: dict[TopicPartition, int] = {}
        self._held_back: set[str] = set()

    def stop(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self.placed.pop(partition, None)

    def settle(self, to_place: Collection[TopicPartition]) -> tuple[TopicPartition, ...]:
        return tuple(sorted(to_place))

    def take_passed_over(self) -> tuple[PassedOver, ...]:
        taken, self._services.passed_over = tuple(self._services.passed_over), []
        return taken

    def hold_back(self, topic: str, positions: Mapping[TopicPartition, Reached]) -> None:
        self._held_back.add(topic)
        self.place(positions)

    def resume(self, topic: str) -> None:
        self._held_back.discard(topic)

    def place(self, positions: Mapping[TopicPartition, Reached]) -> None:
        self.placed.update((each, reached.offset) for each, reached in positions.items())

    def fetch(self, most_records: int, wait_s: float) -> Fetched:
        self._services.pass_by("fetch", self._consumer)
        now = time.time()
        for partition, position in self.placed.items():
            end = min(self._services.ends[partition], position + most_records)
            if end > position and partition.topic not in self._held_back:
                self.placed[partition] = end
                value, epoch = b"." * RECORD_BYTES, self._services.epoch
                fetched = (
                    Record(partition, offset, None, None, value, (), epoch=epoch) for offset in range(position, end)
                )
                return Fetched(self._services.clock.monotonic(), tuple(fetched), now, now)
        time.sleep(min(wait_s, 0.005))
        return Fetched(self._services.clock.monotonic(), (), now, now)

    def close(self) -> None: ...


class _Lake:
    def __init__(self, services: Services, writer: str) -> None:
        self._services = services
        self._writer = writer
        self._name = writer.removeprefix(f"{GROUP}/")

    def connect(self) -> None: ...

    def append(self, topic: str, version: int, rows: pa.Table, epochs: Mapping[int, int]) -> None:
        del epochs
        services = self._services
        services.pass_by("write", self._name)
        if topic in services.refusing:
            raise LakeError(f"{topic}: refused")
        if topic in services.at_fault:
            raise TableError(f"{topic}: another type")
        if version > services.versions[topic, self._writer]:
            services.versions[topic, self._writer] = version
            records = _records(topic, rows)
            if services.refused.intersection(records):
                raise RefusedError(f"{topic}: its constraint")
            for partition, offset in records:
                services.rows[partition].append(offset)
        services.pass_by("answer", self._name)
        if topic in services.answers_nothing:
            raise LakeError(f"{topic}: no answer")

    def set_aside(self, topic: str, record: pa.Table, reason: str, epochs: Mapping[int, int]) -> None:
        del reason, epochs
        self._services.pass_by("set aside", self._name)
        ((partition, offset),) = _records(topic, record)
        if offset not in self._services.dead_letters[partition]:
            self._services.dead_letters[partition].append(offset)
        self._services.pass_by("is set aside", self._name)

    def seal(self, topic: str, writer: str) -> None:
        if topic in self._services.refusing:
            raise LakeError(f"{topic}: refused")
        self._services.versions[topic, writer] = LAST_VERSION

    def last_appended(self, topic: str, partitions: Collection[int]) -> dict[int, Reached]:
        rows = {number: self._services.rows[TopicPartition(topic, number)] for number in partitions}
        return {number: Reached(offsets[-1], self._services.epoch) for number, offsets in rows.items() if offsets}

    def last_set_aside(self, topic: str, partitions: Collection[int]) -> dict[int, Reached]:
        dead = {number: self._services.dead_letters[TopicPartition(topic, number)] for number in partitions}
        return {number: Reached(offsets[-1], self._services.epoch) for number, offsets in dead.items() if offsets}

    def last_offsets(self, topic: str, spans: Mapping[int, Span]) -> dict[int, int]:
        of_spans = {number: self._services.rows[TopicPartition(topic, number)] for number in spans}
        found = {number: max(offsets) for number, offsets in of_spans.items() if offsets}
        self._services.pass_by("after the look", self._name)
        return found

    def close(self) -> None: ...


def _records(topic: str, rows: pa.Table) -> list[tuple[TopicPartition, int]]:
    places = zip(rows["partition"].to_pylist(), rows["offset"].to_pylist(), strict=True)
    return [(TopicPartition(topic, number), offset) for number, offset in places]
